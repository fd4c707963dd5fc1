"""Both clusters of a flow, as they were reached."""

from dataclasses import dataclass

from lockstep_cli.doctor.access_reading import AccessReading
from lockstep_config import FlowSettings
from lockstep_runtime.kafka.admin import Admin


@dataclass(frozen=True, slots=True)
class FlowClusters:
    """A flow whose clusters both let us in, and the ways to them."""

    settings: FlowSettings
    source: Admin
    target: Admin
    source_way: AccessReading
    target_way: AccessReading
