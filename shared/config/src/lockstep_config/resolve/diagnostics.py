"""The findings about a file: mistakes, lines without effect, and what deserves a second look."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from lockstep_config.resolve.value_typos import find_typo, find_unfilled
from lockstep_config.text.config_errors import Problem
from lockstep_config.text.properties import Entry
from lockstep_config.text.secrets import is_secret

_WORDS = re.compile(r"[\s,;=\"']+")


@dataclass(slots=True)
class Diagnostics:
    """The findings about a file. `problems` stop the start, `unused` and `notes` are shown once."""

    file: Path
    problems: list[Problem] = field(default_factory=list)
    unused: list[Problem] = field(default_factory=list)
    notes: list[Problem] = field(default_factory=list)
    stated: frozenset[str] = frozenset()
    """Every key of the file."""
    unknown_keys: str = ""
    """The result for each unknown key, `error` or `warn`; if it is empty `unknown_key` decides by the key."""
    refused_keys: list[Problem] = field(default_factory=list)
    """The members of `problems` that are unknown keys, which `warn` would let pass."""

    def problem(self, subject: Entry | str, message: str) -> None:
        """Add a problem of a line, or of a key that has no line.

        If a slip of writing made the value of the line wrong, it is named.
        """
        typo = ""
        if isinstance(subject, Entry) and not subject.referenced:
            typo = find_unfilled(subject.value) if is_secret(subject.key) else find_typo(subject.value)
        self.plain_problem(subject, f"{message}; {typo}" if typo and typo not in message else message)

    def plain_problem(self, subject: Entry | str, message: str) -> None:
        """Add a problem without the slip, for what is wrong with every value."""
        self.problems.append(self._problem_with(subject, _sentence(subject, message)))

    def without_effect(self, entry: Entry, reason: str) -> None:
        self.unused.append(self._problem_with(entry, f"has no effect: {reason}"))

    def unknown_key(self, entry: Entry, message: str, *, near: bool) -> None:
        """Report an unknown key.

        Args:
            entry: The line.
            message: The sentence about it.
            near: The key is near to one that decides what is copied, so that it is a mistake unless `warn` is stated.
        """
        if self.unknown_keys == "error" or (near and self.unknown_keys != "warn"):
            self.plain_problem(entry, message)
            self.refused_keys.append(self.problems[-1])
        else:
            self.without_effect(entry, f"it {message}" if message.startswith("is ") else message)

    def note(self, subject: Entry | str, message: str) -> None:
        self.notes.append(self._problem_with(subject, _sentence(subject, message)))

    def place_of(self, entry: Entry) -> str:
        """Return the place of a line: `FILE:LINE: KEY`."""
        return str(self._problem_with(entry, "")).removesuffix(": ")

    def _problem_with(self, subject: Entry | str, message: str) -> Problem:
        if isinstance(subject, str):
            return Problem(self.file, 0, subject, message)
        return Problem(subject.file or self.file, subject.line, subject.shown, message)


def _sentence(subject: Entry | str, message: str) -> str:
    """Return the message, unless it shows a value of a config provider, which may be a secret under any key."""
    if isinstance(subject, str) or not subject.referenced:
        return message
    lowered = message.casefold()
    if any(part and part in lowered for part in _WORDS.split(subject.value.casefold())):
        return "has a value that does not fit; it comes from a config provider and is not shown: check it in its file"
    return message
