"""Both clusters of a flow, as they were reached."""

from dataclasses import dataclass

from lockstep_config import FlowSettings
from lockstep_kafka.session.broker_session import BrokerSession
from lockstep_ops.cluster_snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class FlowClusters:
    """A flow both clusters of which accept the login, what they say, and an open connection to each."""

    settings: FlowSettings
    source: ClusterSnapshot
    target: ClusterSnapshot
    source_session: BrokerSession | None
    target_session: BrokerSession | None
