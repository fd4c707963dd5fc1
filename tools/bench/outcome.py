"""What every kind of part has in common: a value in the flat keys, and a system that failed. Pure."""

from dataclasses import dataclass

Scalar = float | int | str | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A system that did not do what was asked: why, and the file that holds its log."""

    reason: str
    log: str = ""

    def __str__(self) -> str:
        return f"FAILED: {self.reason}" + (f" (log: {self.log})" if self.log else "")
