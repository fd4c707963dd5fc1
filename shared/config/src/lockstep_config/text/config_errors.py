"""What can be wrong with a configuration, said so that its author can mend it.

Everything wrong with a file is collected first and raised once, as one `ConfigurationError`. So a file is mended in one
round, not in ten.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing about one key. `line` is 1-based, 0 when no line is to blame (a missing key); `message` says what to
    do.

    A message never contains the value of a key that may hold a secret (`lockstep_config.text.secrets`).
    """

    file: Path
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else f"{self.file}"
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


class ConfigurationError(Exception):
    """The configuration cannot be used. `problems` has all of them, in the order of the file, never none.

    `str()` is the text for the terminal: one line for each problem. Commands exit with code 2 after it.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        if not self.problems:
            raise ValueError("a ConfigurationError needs at least one problem")
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)

    def __reduce__(self) -> "tuple[type[ConfigurationError], tuple[tuple[Problem, ...]]]":
        return (ConfigurationError, (self.problems,))


class UnknownFlow(LookupError):
    """Somebody asked for a flow that the file does not run; the message names the flows there are."""

    def __init__(self, flow: str, known: Iterable[str], file: Path) -> None:
        self.flow = flow
        self.known = tuple(known)
        self.file = file
        there_are = ", ".join(self.known) or "none"
        super().__init__(f"{file} runs no flow {flow}; the flows it runs: {there_are}")

    def __reduce__(self) -> "tuple[type[UnknownFlow], tuple[str, tuple[str, ...], Path]]":
        return (UnknownFlow, (self.flow, self.known, self.file))
