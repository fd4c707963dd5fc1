"""What is wrong with one run of a slot, as its driver sees it (no I/O, no clock)."""

from __future__ import annotations

from enum import Enum

from lockstep_protocol.rows.state_rows import SlotStatus
from lockstep_runtime.util.liveness_timer import LivenessTimer

STARTS_WITHIN_S = 20.0
FIRST_WORD_WITHIN_S = 180.0
"""From when Spark has begun the task: an executor first fetches and unpacks its Python, and a slot reads the whole
state topic before it says anything."""

FROZEN_AFTER_S = 30.0
DRAINS_ALONE_WITHIN_S = 10.0
"""How long a slot that is to end, alone, gets to drain: whoever ends it by hand may do so because it hangs."""


class SlotProblem(Enum):
    """LATE: it waits for a place, and will start. FROZEN, UNDRAINED: its task is to be ended."""

    LATE = "late"
    FROZEN = "frozen"
    UNDRAINED = "undrained"


class SlotHealth:
    """Of one run, which began at `since`; all times are seconds of a clock that does not go back. Each ailment is told
    once: a run that was late may freeze later, and one that froze is not told of again."""

    def __init__(self, since: float) -> None:
        self._since = since
        self._timer = LivenessTimer()
        self._reported: set[SlotProblem] = set()
        self._before_its_first_word = LivenessTimer()
        self._wordless_s = 0.0
        self.started_at: float | None = None
        """When it was first heard."""
        self.silent_s = 0.0
        """For how long nothing was heard of it, of a run that froze."""

    @property
    def late(self) -> bool:
        """Whether it was late and has still said nothing: then `at_work` wants to know."""
        return SlotProblem.LATE in self._reported and self.started_at is None

    def at_work(self, is_at_work: bool, now: float) -> None:
        """Whether Spark has begun its task, of one that has said nothing."""
        self._wordless_s = self._before_its_first_word.silent_for(is_at_work or None, now)

    def check(self, said: SlotStatus | None, now: float, troubled_at: float) -> SlotProblem | None:
        """What is newly wrong. `said`: its last status, None as long as it has said nothing. `troubled_at`: when the
        target was last away; a slot cannot say then that it lives, so silence counts from there."""
        silent_s = self._timer.silent_for(said, now)
        limit = FROZEN_AFTER_S
        if said is not None and self.started_at is None:
            self.started_at = now
        if said is None:
            if now - self._since > STARTS_WITHIN_S and SlotProblem.LATE not in self._reported:
                return self._report(SlotProblem.LATE)
            silent_s, limit = self._wordless_s, FIRST_WORD_WITHIN_S
        if min(silent_s, now - troubled_at) <= limit or SlotProblem.FROZEN in self._reported:
            return None
        self.silent_s = silent_s
        return self._report(SlotProblem.FROZEN)

    def check_ending(self, stop_requested_at: float, now: float) -> SlotProblem | None:
        """What is newly wrong with one that was told to end at `stop_requested_at`."""
        if now - stop_requested_at <= DRAINS_ALONE_WITHIN_S or SlotProblem.UNDRAINED in self._reported:
            return None
        return self._report(SlotProblem.UNDRAINED)

    def _report(self, ailment: SlotProblem) -> SlotProblem:
        self._reported.add(ailment)
        return ailment
