"""The other runs of a slot and other leaders of the drivers, as the state topic shows them (no I/O, no clock)."""

from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_state.rows.state_rows import Leader, SlotStatus


class SlotSuccession:
    """The runs before and after one run of a slot."""

    def __init__(self, spec: SlotSpec) -> None:
        self._spec = spec
        self._before: set[str] = set()
        """Runs of the same slot whose status was read before this one's first status."""
        self._has_spoken = False
        self.ended_cleanly = True
        """True if the run before this one released all its partitions."""
        self.successor = ""
        """The leader or run that has taken over since this run began; "" if none has."""

    def see_leader(self, row: Leader, term: int) -> bool:
        """Note the leader of the drivers, and return whether it takes over. It then starts slots of its own."""
        if self.successor or not self._spec.is_succeeded_by(row, term):
            return False
        self.successor = row.instance
        return True

    def see_status(self, row: SlotStatus) -> bool:
        """Note the status of a run of this slot, and return whether a later run takes over.

        A later run matters only where no broker refuses the appends of an earlier one (`read_back`). A run that was
        seen before this one spoke is an earlier run that woke up late.
        """
        if row.run == self._spec.run:
            self._has_spoken = True
            return False
        self.ended_cleanly = row.phase == "released"
        if not self._has_spoken:
            self._before.add(row.run)
        if self.successor or row.run in self._before or not self._spec.settings.data_plane.read_back:
            return False
        self.successor = f"run {row.run}"
        return True
