"""The other runs of a slot and other leaders of the drivers, as the state topic shows them (no I/O, no clock)."""

from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_state.rows.state_rows import Leader, SlotStatus


class SlotSuccession:
    """What one run of a slot knows of the run before it, and of one after it."""

    def __init__(self, spec: SlotSpec) -> None:
        self._spec = spec
        self._before: set[str] = set()
        """Runs of the same slot that have spoken before this one."""
        self._has_spoken = False
        self.ended_cleanly = True
        """The run of this slot before this one let go of all that it had."""
        self.successor = ""
        """The leader or run that has taken over since this run began; "": none has."""

    def see_leader(self, row: Leader, term: int) -> bool:
        """Note the leader of the drivers. Returns whether it takes over: then it starts slots of its own."""
        if self.successor or not self._spec.is_succeeded_by(row, term):
            return False
        self.successor = row.instance
        return True

    def see_status(self, row: SlotStatus) -> bool:
        """Note what a run of this slot says. Returns whether a later run takes over, which matters only where no broker
        refuses the appends of the earlier one. One that has spoken before may wake up late, and is not later."""
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
