"""Log the first few of many failures for one missing permission. Pure."""

from collections import Counter
from collections.abc import Iterable

from lockstep_state.reasons.reason import Reason

LOGGED = 3
"""Lines for each cause. The next failure is logged as one of more, and the others have rows and events only."""


class LogDedup:
    """Count failures by the command that grants the missing permission, for as long as they last."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def count(self, cause: Reason) -> int:
        """Return how many failures the same command ends, this one included; 0 if there is no command.

        A failure without a command is always logged.
        """
        grant = str(cause.detail("grant") or "")
        if not grant:
            return 0
        self._counts[grant] += 1
        return self._counts[grant]

    def keep_only(self, causes: Iterable[Reason]) -> None:
        """Forget what is not among the present failures. It is logged again if it comes back."""
        present = {cause.detail("grant") for cause in causes}
        for grant in self._counts.keys() - present:
            del self._counts[grant]
