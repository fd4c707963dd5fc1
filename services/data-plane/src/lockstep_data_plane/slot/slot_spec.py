"""What one run of a slot is given with its task."""

import os
from dataclasses import dataclass

from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_config.resolve.precedence import Side
from lockstep_protocol.rows.state_rows import Leader

DRIVER = "data-plane"
"""As which the drivers of a flow claim to lead it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSpec:
    """The identity and settings of one run of a slot. Everything else it reads from Kafka."""

    settings: FlowSettings
    slot: int
    run: str
    producer_id: int
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

    def is_succeeded_by(self, row: Leader, term: int) -> bool:
        """Whether the row, read at offset `term`, names another leader of the flow's drivers since the run began. That
        leader starts slots of its own."""
        return row.service == DRIVER and row.instance != self.instance and term > self.term


def slot_count(settings: FlowSettings) -> int:
    """How many slots the flow may have: `tasks.max`, or one per core where it is not set."""
    return settings.data_plane.tasks_max or os.cpu_count() or 1
