"""The base of rows with a reason: a code with details, and the sentence of both for earlier releases."""

from dataclasses import dataclass, field
from typing import Any, Self

from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import format_sentence, read_reason
from lockstep_state.rows.row import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonedRow(Row):
    """A row with a `cause`. Its `reason` follows from it, and is never set."""

    cause: Reason = NO_REASON
    """The reason as a code with details. Programs decide by it. An earlier release wrote none, only `reason`."""
    reason: str = field(default="", init=False)
    """The sentence of `cause`, for people and for earlier releases."""

    def __post_init__(self) -> None:
        if self.cause:
            object.__setattr__(self, "reason", format_sentence(self.cause))

    @classmethod
    def from_fields(cls, values: dict[str, Any]) -> Self:
        """Return the row of these fields. A text without a cause gets the code `unknown`."""
        if text := values.pop("reason", ""):
            values["cause"] = read_reason(values.get("cause", NO_REASON), text)
        return cls(**values)
