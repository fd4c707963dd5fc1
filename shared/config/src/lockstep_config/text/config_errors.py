"""Mistakes in a configuration, in words by which its author can mend it.

All mistakes of a file are collected first and raised once, as one `ConfigurationError`. So a file is mended in one
round, not in ten.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One finding about one key.

    `line` is 1-based, and 0 if no line is to blame (a missing key). `message` says what to do. It never contains the
    value of a key that may hold a secret (`lockstep_config.text.secrets`).
    """

    file: Path
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else f"{self.file}"
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


class ConfigurationError(Exception):
    """The configuration cannot be used.

    `problems` has all of its mistakes, in the order of the file, and is never empty. `notes` and `unused` are its
    warnings, and `unknown` are those problems that are unknown keys. `str()` is the text for the terminal: one line
    for each problem, then for each warning, and the way out last. Commands exit with code 2 after it.
    """

    def __init__(
        self,
        problems: Iterable[Problem],
        notes: Iterable[Problem] = (),
        unused: Iterable[Problem] = (),
        unknown: Iterable[Problem] = (),
    ) -> None:
        self.problems = tuple(sorted(problems))
        self.notes = tuple(notes)
        self.unused = tuple(unused)
        self.unknown = tuple(problem for problem in self.problems if problem in frozenset(unknown))
        if not self.problems:
            raise ValueError("a ConfigurationError needs at least one problem")
        super().__init__(self.problems)

    @property
    def way_out(self) -> str:
        """The sentence that says how the unknown keys become warnings; empty if there are none."""
        if not self.unknown:
            return ""
        if len(self.unknown) == len(self.problems):
            many = "this" if len(self.unknown) == 1 else f"all {len(self.unknown)} lines"
        else:
            many = f"{len(self.unknown)} of {len(self.problems)} lines"
        return f"With --unknown warn, {many} would be a warning: an unknown key has no effect in MirrorMaker"

    def __str__(self) -> str:
        return "\n".join([*map(str, (*self.problems, *self.notes, *self.unused)), *filter(None, [self.way_out])])

    def __reduce__(self) -> "tuple[type[ConfigurationError], tuple[tuple[Problem, ...], ...]]":
        return (ConfigurationError, (self.problems, self.notes, self.unused, self.unknown))


class UnknownFlow(LookupError):
    """The file does not run the flow that was asked for. The message names the flows that it runs."""

    def __init__(self, flow: str, flows: Iterable[str], file: Path) -> None:
        self.flow = flow
        self.flows = tuple(flows)
        self.file = file
        super().__init__(f"{file} runs no flow {flow}; the flows it runs: {', '.join(self.flows) or 'none'}")

    def __reduce__(self) -> "tuple[type[UnknownFlow], tuple[str, tuple[str, ...], Path]]":
        return (UnknownFlow, (self.flow, self.flows, self.file))
