"""Every code of a `Reason`, and the sentence that people read for it.

A sentence may be worded anew at any time: nothing decides from it. A code keeps its meaning for ever.
"""

from enum import StrEnum

from lockstep_protocol.reason import Detail, Reason


class ReasonCode(StrEnum):
    """The codes of this release. Each has the template of its sentence, with the names of details in braces."""

    sentence: str

    def __new__(cls, word: str, sentence: str) -> "ReasonCode":
        member = str.__new__(cls, word)
        member._value_ = word
        member.sentence = sentence
        return member

    def to_reason(self, **details: Detail) -> Reason:
        """Return the reason of this code with the values that its sentence names, and others worth keeping."""
        return Reason(self.value, tuple(sorted(details.items())))

    UNKNOWN = "unknown", "{text}"
    """An earlier release wrote only a text. It is shown, and means: not known."""

    REPORTED = "reported", "{text}"
    """A cluster, a library or a service said so, in words of its own."""

    NO_REPLICA = "no-replica", "no replica of it runs"
    """A service's group has no member: it does not run, or joins its group again."""

    REPLICAS_UNKNOWN = "replicas-unknown", "its replicas are not known"
    """The target did not describe the service's group."""

    RESTARTS_SPENT = "restarts-spent", "failed {count} times and waits for the command restart: {text}"

    GROUPS_NOT_READ = "groups-not-read", "the checkpoint service has not read them yet"

    GROUP_GONE = "group-gone", "it has no offsets in mirrored topics on the source any more"


_CODES = {code.value: code for code in ReasonCode}


def read_reason(cause: Reason, text: str) -> Reason:
    """Return why something is so by a row that has both fields.

    An earlier release wrote a text without a cause: that is `unknown` with the text, and decides nothing.
    """
    return cause if cause or not text else ReasonCode.UNKNOWN.to_reason(text=text)


def format_sentence(reason: Reason) -> str:
    """Return the sentence of a reason, without a full stop; "" for no reason.

    A code that this release does not know, or that lacks a value, is shown as such.
    """
    if not reason:
        return ""
    code = _CODES.get(reason.code)
    if code is not None:
        try:
            return code.sentence.format(**dict(reason.details))
        except (KeyError, ValueError):
            pass  # another release wrote it with other values
    values = ", ".join(f"{name} {value}" for name, value in reason.details)
    return f"{reason.code}, a reason that this release does not know" + (f" ({values})" if values else "")
