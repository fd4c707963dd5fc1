"""Of many that fail for one permission that is missing the first few are worth a line each. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lockstep_config.credentials.permissions import cause_of

__all__ = ["SAID", "LogDedup"]

SAID = 3
"""Lines about one cause; who comes next is said to be one of more, and the rest has rows and events only."""


class LogDedup:
    """Counts sentences by their cause, for as long as somebody has it."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def count(self, sentence: str) -> int:
        """The how-manieth this is about its cause; 0 where it names no permission, and is worth a line whatever."""
        cause = cause_of(sentence)
        if not cause:
            return 0
        self._counts[cause] += 1
        return self._counts[cause]

    def only(self, sentences: Iterable[str]) -> None:
        """These are true now: what else was said is over, and is news when it comes again."""
        present = {cause_of(sentence) for sentence in sentences}
        for cause in self._counts.keys() - present:
            del self._counts[cause]
