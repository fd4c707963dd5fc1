"""Both clusters of a flow, as they were reached."""

from dataclasses import dataclass

from lockstep_cli.doctor.access_reader import AccessReader
from lockstep_config import FlowSettings
from lockstep_runtime.kafka.admin import Admin


@dataclass(frozen=True, slots=True)
class FlowClusters:
    """A flow whose clusters both let us in, and the ways to them."""

    settings: FlowSettings
    source: Admin
    target: Admin
    source_way: AccessReader
    target_way: AccessReader
