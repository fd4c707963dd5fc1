"""The reason why something is as it is: a code, by which programs decide, and the values that its sentence names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

Detail: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class Reason:
    """A code of `reason_catalogue.ReasonCode` with named plain values. Build it with `ReasonCode.to_reason`.

    Decisions compare `code` with codes that they know. A code that they do not know means: do not commit, not ready.
    `reason_catalogue.format_sentence` makes the text, and only where it is shown or written for other programs.
    """

    code: str = ""
    """A word such as `target-recreated`; "": there is nothing to say. A newer release may write others."""
    details: tuple[tuple[str, Detail], ...] = ()
    """(name, value), by name."""

    def __bool__(self) -> bool:
        return bool(self.code)

    def detail(self, name: str) -> Detail | None:
        """Return one value; None if the reason has none of this name."""
        return dict(self.details).get(name)

    def to_json(self) -> dict[str, Any]:
        """Return it as in rows, events and answers: an object with `code` and `details`."""
        return {"code": self.code, "details": dict(self.details)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Reason":
        """Return the reason that `to_json` wrote. Fields that a newer release adds are passed over.

        Raises:
            ValueError: It is none, or a value is neither a text nor an integer.
        """
        if body == _NOTHING:  # nearly every row has none
            return NO_REASON
        code, details = body.get("code"), body.get("details", {})
        if not isinstance(code, str) or not isinstance(details, Mapping):
            raise ValueError(f"not a reason: an object with code and details is expected, there is {body!r}")
        for name, value in details.items():
            if not isinstance(value, str | int) or isinstance(value, bool):
                raise ValueError(f"not a reason: detail {name!r} of {code!r} is {value!r}")
        return cls(code, tuple(sorted(details.items())))


NO_REASON = Reason()
_NOTHING = NO_REASON.to_json()
