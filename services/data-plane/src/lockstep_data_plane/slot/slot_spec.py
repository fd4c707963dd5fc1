"""The identity and settings that one run of a slot gets with its Spark task."""

import os
from dataclasses import dataclass

from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_config.resolve.precedence import Side
from lockstep_data_plane.transform.compiled_transform import PlannedTransform
from lockstep_state.rows.state_rows import Leader

DRIVER = "data-plane"
"""The service under whose name the drivers of a flow claim to lead it."""


CUT_OFF_ENDS_S = 5.0
"""Seconds for which a run that was cut off may still append. Spark kills the worker of a cancelled task after two
seconds, and the workers of a killed JVM end within two.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSpec:
    """The identity and settings of one run of a slot. It reads everything else from Kafka."""

    settings: FlowSettings
    slot: int
    run: str
    producer_id: int
    source_cluster_id: str = ""
    """The id of the source cluster; "" if it is not known. If another cluster answers at its address, nothing is
    copied.
    """
    cut_off_ms: int = 0
    """The end of the run before this one, in Unix milliseconds of this machine's clock; 0 if it is not known."""
    instance: str = ""
    term: int = 0
    """The driver that began this run (`instance`), and its term."""
    log_level: str = "info"
    log_format: str = "text"
    verifies: bool = False
    """True if the slot copies nothing and compares copies with their source. `slot` is its number among such slots."""
    beside_driver: bool = False
    """True if the slot runs on the driver's own machine, so that it reaches the brokers that the driver reaches."""
    transforms: tuple[PlannedTransform, ...] = ()
    """The transforms of the flow, as the driver has compiled them."""

    @property
    def driver_clusters(self) -> frozenset[str]:
        """The aliases of the clusters whose failures the driver notices itself.

        It connects to them in the same way as the slot, on the same machine.
        """
        flow = self.settings.flow
        sides: tuple[tuple[Side, str], ...] = (("source", flow.source), ("target", flow.target))
        alike = (alias for side, alias in sides if client_settings.connects_in_one_way(self.settings, side))
        return frozenset(alike if self.beside_driver else ())

    def appends_of_others_s(self, now_ms: int) -> float:
        """Return how many seconds the run before this one may still append, if it was cut off."""
        since_s = (now_ms - self.cut_off_ms) / 1000 if self.cut_off_ms else 0.0
        return CUT_OFF_ENDS_S - min(max(0.0, since_s), CUT_OFF_ENDS_S)

    def is_succeeded_by(self, row: Leader, term: int) -> bool:
        """Return whether the row names another leader of the flow's drivers since the run began.

        That leader starts slots of its own.

        Args:
            row: A claim to lead.
            term: The offset at which the row was read.
        """
        return row.service == DRIVER and row.instance != self.instance and term > self.term


def slot_count(settings: FlowSettings) -> int:
    """Return how many slots the flow may have: `tasks.max`, or one per core if it is not set."""
    return settings.data_plane.tasks_max or os.cpu_count() or 1
