"""Both clusters of a flow, as they were reached."""

from dataclasses import dataclass

from lockstep_config import FlowSettings
from lockstep_kafka.admin.admin import Admin
from lockstep_ops.doctor.access_reader import AccessReader


@dataclass(frozen=True, slots=True)
class FlowClusters:
    """A flow both clusters of which accept the login, and the connections to them."""

    settings: FlowSettings
    source: Admin
    target: Admin
    source_way: AccessReader
    target_way: AccessReader
