"""Logs the first few of many failures for one missing permission. No I/O."""

from collections import Counter
from collections.abc import Iterable

from lockstep_config.credentials.permissions import remedy_command

SAID = 3
"""Lines for each cause. The next failure is logged as one of more, and the others have rows and events only."""


class LogDedup:
    """Counts sentences by their cause, while anything fails for it."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def count(self, sentence: str) -> int:
        """How many sentences had this cause, this one included; 0 if it names no permission and is always logged."""
        cause = remedy_command(sentence)
        if not cause:
            return 0
        self._counts[cause] += 1
        return self._counts[cause]

    def only(self, sentences: Iterable[str]) -> None:
        """These are the present failures. Other causes are over, and are logged anew if they come back."""
        present = {remedy_command(sentence) for sentence in sentences}
        for cause in self._counts.keys() - present:
            del self._counts[cause]
