"""What became of a request about many resources: partial success is a value, never an exception."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lockstep_runtime.util.errors import NotPermitted, RequestRefused

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """Each resource asked about is a key of exactly one of the three."""

    done: dict[str, T] = field(default_factory=dict)
    failed: dict[str, RequestRefused] = field(default_factory=dict)
    denied: dict[str, NotPermitted] = field(default_factory=dict)

    def merge(self, other: "Outcome[T]") -> None:
        """Take in what became of other resources."""
        self.done.update(other.done)
        self.failed.update(other.failed)
        self.denied.update(other.denied)

    def troubles(self) -> dict[str, NotPermitted | RequestRefused]:
        """What did not work, for any reason, by resource."""
        return {**self.failed, **self.denied}
