"""What is to become of a partition whose copy cannot simply go on: the cases, and what each policy makes of them (no
I/O). The table in `docs/no-silent-loss.md` is this file's.

Nothing here is decided by itself: without a policy that says otherwise the partition halts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Case", "Decision", "Found", "Policies", "counted", "decide"]


class Case(Enum):
    """Why a partition cannot simply go on; the values stand in its state."""

    RECORDS_GONE = "records-gone"
    SOURCE_TRUNCATED = "source-truncated"
    SOURCE_RECREATED = "source-recreated"
    TARGET_TRUNCATED = "target-truncated"
    TARGET_RECREATED = "target-recreated"
    DOUBT = "in-doubt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """What the file says for the topic: `lockstep.on.gap`, `lockstep.on.recreate`, `lockstep.on.doubt`."""

    gap: str = "halt"
    recreate: str = "halt"
    doubt: str = "halt"

    def of(self, case: Case) -> tuple[str, str]:
        """The key that decides a case, and its value."""
        if case is Case.DOUBT:
            return "lockstep.on.doubt", self.doubt
        if case in (Case.SOURCE_RECREATED, Case.TARGET_RECREATED):
            return "lockstep.on.recreate", self.recreate
        return "lockstep.on.gap", self.gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A case, with what the clusters say. `wanted` is the next upstream offset to copy, `start` and `end` are those of
    the source's log now; `agreed` (SOURCE_TRUNCATED only): up to where its log still is the one that was copied;
    `epoch`: the newest epoch of our chain that the target knows."""

    case: Case
    text: str
    wanted: int
    start: int
    end: int
    agreed: int = -1
    epoch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Go on at `begin`, in a new epoch of the chain. `lost`: upstream offsets (first, last) that will not be copied;
    `again`: those whose records the target may hold twice; None where there are none, or nobody can tell."""

    begin: int
    word: str
    lost: tuple[int, int] | None = None
    again: tuple[int, int] | None = None


def decide(found: Found, policies: Policies) -> Decision | None:
    """What the policy makes of a case; None: halt.

    | case | skip, or progress | restart |
    |---|---|---|
    | RECORDS_GONE | at the log's start | the same |
    | SOURCE_TRUNCATED | where the logs part: what came there since is new | at the log's start |
    | SOURCE_RECREATED | at the new log's end | at the new log's start |
    | TARGET_TRUNCATED | where we were: what the target lost stays lost | at the source's log start |
    | TARGET_RECREATED | where we were: what the target held before stays gone | at the source's log start |
    | DOUBT | after the last progress written: what came behind it may be doubled | - |
    """
    _, word = policies.of(found.case)
    if word == "halt":
        return None
    if word == "restart" or found.case is Case.RECORDS_GONE:
        return _from_start(found, word)
    begin = found.wanted
    if found.case is Case.SOURCE_TRUNCATED:
        begin = max(found.start, min(found.agreed, found.end))
    elif found.case is Case.SOURCE_RECREATED:
        begin = found.end
    lost = (found.start, begin - 1) if found.case is Case.SOURCE_RECREATED else (found.wanted, begin - 1)
    return Decision(
        begin=begin,
        word=word,
        lost=lost if lost[0] <= lost[1] else None,
        again=(begin, found.end - 1) if found.case is Case.DOUBT and begin < found.end else None,
    )


def counted(gaps: tuple[tuple[str, int], ...], case: Case) -> tuple[tuple[str, int], ...]:
    """How often each case was led past (`PartitionProgress.gaps`), with one more."""
    times = dict(gaps)
    times[case.value] = times.get(case.value, 0) + 1
    return tuple(sorted(times.items()))


def _from_start(found: Found, word: str) -> Decision:
    """At the beginning of what the source has. What the target has of it already, it will have twice, unless the
    target's topic, or the source's, is another one."""
    same_log = found.case in (Case.RECORDS_GONE, Case.SOURCE_TRUNCATED, Case.TARGET_TRUNCATED)
    gone = (found.wanted, found.start - 1)
    before = (found.start, min(found.wanted, found.end) - 1)
    return Decision(
        begin=found.start,
        word=word,
        lost=gone if found.case is not Case.SOURCE_RECREATED and gone[0] <= gone[1] else None,
        again=before if same_log and before[0] <= before[1] else None,
    )
