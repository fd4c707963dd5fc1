"""The making of a `Reason` from a code, and of the sentence that is shown for it."""

from enum import StrEnum
from string import Formatter
from typing import Any, Self

from lockstep_state.reasons.reason import Detail, Reason

TO_GRANT = "; to grant it: "
"""The words in front of the command that ends a refusal."""


_CODES: dict[str, "CatalogueCode"] = {}
"""The codes of every catalogue by their words. `reason_catalogue` loads all catalogues, so import from there."""


class CatalogueCode(StrEnum):
    """A code with the template of its sentence, which has the names of details in braces.

    `{count:record}` is a number with its noun: `1 record`, `2,000 records`.
    """

    sentence: str
    meaning: str
    """An explanation beyond the sentence; "" if the sentence says all."""
    fix: str
    """A remedy in Markdown, with links as on a page in `docs/troubleshoot`; "" if the sentence says it."""

    def __new__(cls, word: str, sentence: str, meaning: str = "", fix: str = "") -> Self:
        member = str.__new__(cls, word)
        member._value_ = word
        member.sentence, member.meaning, member.fix = sentence, meaning, fix
        _CODES[word] = member
        return member

    def to_reason(self, **details: Detail) -> Reason:
        """Return the reason of this code with the values that its sentence names, and others worth keeping.

        An empty text is left out unless the sentence names it.
        """
        named = {name for _, name, _, _ in Formatter().parse(self.sentence)}
        kept = {name: value for name, value in details.items() if value != "" or name in named}
        return Reason(self.value, tuple(sorted(kept.items())))

    def because(self, cause: Reason, **details: Detail) -> Reason:
        """Return the reason of this code because of another one.

        The detail `text` is the other reason's sentence, and `because` is its code. The command that ends it stays in
        `grant`.
        """
        plain = Reason(cause.code, tuple(detail for detail in cause.details if detail[0] != "grant"))
        more = {"text": format_sentence(plain), "because": cause.code, "grant": cause.detail("grant") or ""}
        return self.to_reason(**details, **more)


class _CountFormatter(Formatter):
    """A formatter that writes a number with its noun, if the template has one."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, int) and format_spec.isalpha():
            return f"{value:,} {format_spec}{'' if value == 1 else 's'}"
        return str(super().format_field(value, format_spec))


_FORMATTER = _CountFormatter()


def is_known(reason: Reason) -> bool:
    """Return whether this release knows the code. If not, nothing is committed and nothing is ready."""
    return reason.code in _CODES


def format_sentence(reason: Reason) -> str:
    """Return the sentence of a reason, without a full stop; "" for no reason.

    A detail `text` that the sentence does not name follows it after a colon, and the command in `grant` ends it. A
    code that this release does not know, or that lacks a value, is shown with its details.
    """
    if not reason:
        return ""
    code = _CODES.get(reason.code)
    if code is not None:
        try:
            sentence = _FORMATTER.vformat(code.sentence, (), dict(reason.details))
            text, grant = reason.detail("text"), reason.detail("grant")
            sentence = f"{sentence}: {text}" if text and "{text}" not in code.sentence else sentence
            return f"{sentence}{TO_GRANT}{grant}" if grant else sentence
        except (KeyError, ValueError):
            pass  # another release wrote it with other values
    values = ", ".join(f"{name} {value}" for name, value in reason.details)
    return f"{reason.code}, a reason that this release does not know" + (f" ({values})" if values else "")
