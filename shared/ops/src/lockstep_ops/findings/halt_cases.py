"""The cases of a halted partition, with where to look.

The table of `docs/troubleshoot/halted-partition.md` is made of these.
"""

from dataclasses import dataclass, field

from lockstep_ops.findings.finding_kind import GuidedFindingKind
from lockstep_rules.offsets.gap_policy import GapCase

REFUSED, TRANSFORM = "refused", "transform"
"""Cases that are no gap."""


@dataclass(frozen=True, slots=True)
class HaltCase(GuidedFindingKind):
    """A case of a halted partition. `title` says what it means."""

    FAMILY = "case of a halted partition"
    PAGE = "docs/troubleshoot/halted-partition.md"
    SECTION = "the-cases"

    key: str = field(kw_only=True)
    """The configuration key that decides it; "": none does."""


def _gap(case: GapCase, title: str, look_at: str) -> HaltCase:
    return HaltCase(case.value, title, "", _fix(case.key), look_at=look_at, key=case.key)


def _fix(key: str) -> str:
    return f"[Decide](#decide), or let `{key}` decide such cases."


HALT_CASES = (
    _gap(
        GapCase.RECORDS_GONE,
        "the source removed records before they were copied",
        "retention of the source topic; how long the flow was down",
    ),
    _gap(
        GapCase.SOURCE_TRUNCATED,
        "the source's log is not the one that was copied",
        "unclean leader elections on the source; a restored backup",
    ),
    _gap(
        GapCase.SOURCE_RECREATED,
        "the source topic was deleted and created again",
        "event `TopicRecreated` with `side` source",
    ),
    _gap(
        GapCase.TARGET_TRUNCATED,
        "the target lost records that it had acknowledged",
        "unclean leader elections on the target; `gone` in `GapFound`",
    ),
    _gap(
        GapCase.TARGET_RECREATED,
        "the remote topic is another one than before",
        "event `TopicRecreated` with `side` target; changes to `replication.policy.*`",
    ),
    _gap(
        GapCase.DOUBT,
        "the target's log does not say how far the copy is",
        "the reason; what happened to the target's log and to the state topic",
    ),
    HaltCase(
        REFUSED,
        "the target refuses a record, or a batch cannot be read",
        "",
        "What the [table of errors](#the-case-refused) says, or let `lockstep.on.refused` decide such cases.",
        look_at="the reason: Kafka's error, and the offsets if the target names them",
        key="lockstep.on.refused",
    ),
    HaltCase(
        TRANSFORM,
        "nothing evaluates the transform of the topic",
        "",
        "[What evaluates it](#the-case-transform).",
        look_at="the reason; the log of the data plane",
        key="",
    ),
)
