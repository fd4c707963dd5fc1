"""What is to become of a partition whose copy cannot simply go on: the cases, and what each policy makes of them (no
I/O). The table in `docs/reference/no-silent-loss.md` is this file's.

Nothing here is decided by itself: without a policy that says otherwise the partition halts."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode


class GapCase(Enum):
    """Why a partition cannot simply continue; the values are stored in its state."""

    RECORDS_GONE = "records-gone"
    SOURCE_TRUNCATED = "source-truncated"
    SOURCE_RECREATED = "source-recreated"
    TARGET_TRUNCATED = "target-truncated"
    TARGET_RECREATED = "target-recreated"
    DOUBT = "in-doubt"

    @property
    def is_recreated(self) -> bool:
        """What offsets meant before means nothing any more."""
        return self in (GapCase.SOURCE_RECREATED, GapCase.TARGET_RECREATED)

    @property
    def key(self) -> str:
        """The key that decides it."""
        if self is GapCase.DOUBT:
            return "lockstep.on.doubt"
        return "lockstep.on.recreate" if self.is_recreated else "lockstep.on.gap"


@dataclass(frozen=True, slots=True, kw_only=True)
class GapFound:
    """A case, with the evidence of both clusters. `wanted` is the next upstream offset to copy. `start` and `end` are
    those of the source's log now; `agreed`: up to where its log still is the one that was copied. `epoch` (DOUBT only):
    of records of ours that the row does not know, whose own row may still come; -1: there are none. The target's cases
    use the next two. `held` is the last downstream offset that the target had acknowledged, `target_end` where its log
    ends now; -1: unknown. `decision` is the policy's; None: halt."""

    case: GapCase
    text: str
    wanted: int
    start: int
    end: int
    agreed: int = -1
    epoch: int = -1
    held: int = -1
    target_end: int = -1
    decision: "GapDecision | None" = None

    @property
    def on_target(self) -> bool:
        """It is the target that has not what it had."""
        return self.case in (GapCase.TARGET_TRUNCATED, GapCase.TARGET_RECREATED)

    @property
    def gone(self) -> tuple[int, int] | None:
        """Downstream offsets (first, last) whose records the target had and has no more; None: there are none, or it is
        unknown. If the topic is another one: all that its log may have held, which began at 0 once."""
        first = {GapCase.TARGET_TRUNCATED: self.target_end, GapCase.TARGET_RECREATED: 0}.get(self.case, -1)
        return (first, self.held) if 0 <= first <= self.held else None

    def halts(self, code: ReasonCode) -> Reason:
        """Return why the partition halts for it, with what the clusters said."""
        details = {name: value for name, value in self.facts().items() if isinstance(value, str | int)}
        return code.to_reason(**details, text=self.text, key=self.case.key)

    def facts(self) -> dict[str, Any]:
        """As the event has them. `target_wanted`: the downstream offset where the next record was to be appended."""
        facts: dict[str, Any] = {
            "case": self.case.value,
            "wanted": self.wanted,
            "source_start": self.start,
            "source_end": self.end,
        }
        there: dict[str, Any] = {"target_wanted": self.held + 1, "target_end": self.target_end, "gone": self.gone}
        return facts | (there if self.target_end >= 0 else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class GapDecision:
    """Continue at `begin`, in a new epoch of the sequence. `lost`: upstream offsets (first, last) that will not be
    copied. `again`: those whose records the target may hold twice. `gone`: downstream offsets that the target lost and
    that are not copied again. None: there are none, or it is unknown."""

    begin: int
    word: str
    lost: tuple[int, int] | None = None
    again: tuple[int, int] | None = None
    gone: tuple[int, int] | None = None

    def text(self, key: str) -> str:
        """Where the copy goes on, by which value of which key, and what that costs."""
        text = f"going on at offset {self.begin} ({key}={self.word})"
        if self.lost:
            text += f"; offsets {self.lost[0]} to {self.lost[1]} are not copied"
        if self.again:
            text += f"; offsets {self.again[0]} to {self.again[1]} may be on the target twice"
        if self.gone:
            text += f"; what the target had at its offsets {self.gone[0]} to {self.gone[1]} stays gone"
        return text

    def facts(self) -> dict[str, Any]:
        """The same ranges, as the event has them."""
        return {"lost": self.lost, "again": self.again, "gone": self.gone}


def decide_gap(found: GapFound, word: str) -> GapDecision | None:
    """What a policy makes of a case, `word` being the value of its key; None: halt.

    | case | skip, or progress | restart |
    |---|---|---|
    | RECORDS_GONE | at the log's start | the same |
    | SOURCE_TRUNCATED | where the logs part: what came there since is new | at the log's start |
    | SOURCE_RECREATED | at the new log's end | at the new log's start |
    | TARGET_TRUNCATED | where we were: what the target lost stays lost | at the source's log start |
    | TARGET_RECREATED | where we were: what the target held before stays gone | at the source's log start |
    | DOUBT | after the last progress written: what came behind it may be doubled | - |
    """
    if word == "halt":
        return None
    if word == "restart" or found.case is GapCase.RECORDS_GONE:
        return _from_start(found, word)
    begin = found.wanted
    if found.case is GapCase.SOURCE_TRUNCATED:
        begin = max(found.start, min(found.agreed, found.end))
    elif found.case is GapCase.SOURCE_RECREATED:
        begin = found.end
    lost = (found.start, begin - 1) if found.case is GapCase.SOURCE_RECREATED else (found.wanted, begin - 1)
    return GapDecision(
        begin=begin,
        word=word,
        lost=lost if lost[0] <= lost[1] else None,
        again=(begin, found.end - 1) if found.case is GapCase.DOUBT and begin < found.end else None,
        gone=found.gone,
    )


def goes_back(committed: int | None, decision: GapDecision) -> bool:
    """Whether committed progress is beyond a decision. Its argument is the last upstream offset that committed progress
    names; None: it names none. In transactions the greater of the row and of committed progress counts. So progress
    beyond the decision is taken back before the row is written, or the decision would have no effect. Progress below
    the decision may only follow the row. Otherwise a run in between would continue as decided without an event and a
    count of it."""
    return committed is not None and committed >= decision.begin


def lost_on_target(found: GapFound, decision: GapDecision) -> int:
    """How many downstream offsets stay gone, where that can be counted. What a deleted topic had left of its log is
    unknown."""
    gone = decision.gone if found.case is GapCase.TARGET_TRUNCATED else None
    return gone[1] - gone[0] + 1 if gone else 0


def missing_between(gaps: tuple[tuple[str, int], ...], case: GapCase) -> tuple[tuple[str, int], ...]:
    """How often each case was led past (`PartitionProgress.gaps`), with one more."""
    times = dict(gaps)
    times[case.value] = times.get(case.value, 0) + 1
    return tuple(sorted(times.items()))


def _from_start(found: GapFound, word: str) -> GapDecision:
    """At the beginning of what the source has. What the target has of it already, it will have twice, unless the
    target's topic, or the source's, is another one."""
    same_log = found.case in (GapCase.RECORDS_GONE, GapCase.SOURCE_TRUNCATED, GapCase.TARGET_TRUNCATED)
    gone = (found.wanted, found.start - 1)
    before = (found.start, min(found.wanted, found.end) - 1)
    return GapDecision(
        begin=found.start,
        word=word,
        lost=gone if found.case is not GapCase.SOURCE_RECREATED and gone[0] <= gone[1] else None,
        again=before if same_log and before[0] <= before[1] else None,
    )
