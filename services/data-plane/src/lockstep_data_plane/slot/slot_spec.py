"""What one run of a slot is given with its task."""

import os
from dataclasses import dataclass

from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_config.resolve.precedence import Side
from lockstep_state.rows.state_rows import Leader

DRIVER = "data-plane"
"""As which the drivers of a flow claim to lead it."""


CUT_OFF_ENDS_S = 5.0
"""How long a run may append that was cut off before this one began. Spark kills the worker of a cancelled task after
two seconds, and the workers of a killed JVM end within two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSpec:
    """The identity and settings of one run of a slot. Everything else it reads from Kafka."""

    settings: FlowSettings
    slot: int
    run: str
    producer_id: int
    source_cluster_id: str = ""
    """The cluster that is copied. Of another one at its address nothing is copied. "": not known."""
    cut_off_ms: int = 0
    """When the run before this one was over, Unix milliseconds, on this machine; 0: not known."""
    instance: str = ""
    term: int = 0
    """The driver that began this run, and its term."""
    log_level: str = "info"
    log_format: str = "text"
    verifies: bool = False
    """It copies nothing: it compares copies with their source. `slot` is its number among those that do."""
    beside_driver: bool = False
    """On the driver's own machine, so that it reaches what the driver does."""

    @property
    def driver_clusters(self) -> frozenset[str]:
        """The clusters of which the driver notices as well when they cannot be reached."""
        flow = self.settings.flow
        sides: tuple[tuple[Side, str], ...] = (("source", flow.source), ("target", flow.target))
        alike = (alias for side, alias in sides if client_settings.connects_in_one_way(self.settings, side))
        return frozenset(alike if self.beside_driver else ())

    def appends_of_others_s(self, now_ms: int) -> float:
        """Return how many seconds the run before this one may still append, if it was cut off."""
        since_s = (now_ms - self.cut_off_ms) / 1000 if self.cut_off_ms else 0.0
        return CUT_OFF_ENDS_S - min(max(0.0, since_s), CUT_OFF_ENDS_S)

    def is_succeeded_by(self, row: Leader, term: int) -> bool:
        """Whether the row, read at offset `term`, names another leader of the flow's drivers since the run began. That
        leader starts slots of its own."""
        return row.service == DRIVER and row.instance != self.instance and term > self.term


def slot_count(settings: FlowSettings) -> int:
    """How many slots the flow may have: `tasks.max`, or one per core where it is not set."""
    return settings.data_plane.tasks_max or os.cpu_count() or 1
