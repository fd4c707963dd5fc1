"""The place of a halted partition when an operator decided about it. The decision counts only there. Pure.

Two operators may decide at once, in two consoles. The first change of the offset counts, and the other one is refused.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from lockstep_state.rows.state_rows import PartitionProgress

DECIDED = "decided"
"""The argument of `offsets-alter` that has the place."""


@dataclass(frozen=True, slots=True)
class DecidedPlace:
    """The position at which a partition was halted when an operator decided about it.

    `before` is the first upstream offset that its row reaches only after the copy has gone on.
    """

    topic: str
    partition: int
    before: int
    begins: str = ""
    """`PartitionProgress.begins` then."""

    @classmethod
    def of(cls, row: PartitionProgress) -> Self:
        """Return the place of a partition by its row while it is halted."""
        wanted = row.cause.detail("wanted")
        before = max(row.upstream + 1, wanted if isinstance(wanted, int) else 0)
        return cls(row.topic, row.partition, before, row.begins)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Return the place in the argument of a command.

        Raises:
            ValueError: It is none.
        """
        kinds = {"topic": str, "partition": int, "before": int, "begins": str}
        if not isinstance(value, Mapping) or any(type(value.get(name)) is not kind for name, kind in kinds.items()):
            raise ValueError(f"{DECIDED} is an object with {', '.join(kinds)}")
        return cls(**{name: value[name] for name in kinds})

    def to_json(self) -> dict[str, Any]:
        """Return the argument of the command."""
        return asdict(self)

    def is_left(self, present: PartitionProgress) -> bool:
        """Return whether the copy has gone on since, or another decision was made, so that this one does not count."""
        return present.upstream >= self.before or present.begins != self.begins
