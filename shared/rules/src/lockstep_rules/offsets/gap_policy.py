"""The cases in which a copy cannot simply go on, and what each policy makes of them (no I/O).

Without a policy that says otherwise the partition halts. `docs/reference/no-silent-loss.md` has the table of this file.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode


class GapCase(Enum):
    """The reasons why a partition cannot simply continue. The values are stored in its row."""

    RECORDS_GONE = "records-gone"
    SOURCE_TRUNCATED = "source-truncated"
    SOURCE_RECREATED = "source-recreated"
    TARGET_TRUNCATED = "target-truncated"
    TARGET_RECREATED = "target-recreated"
    DOUBT = "in-doubt"

    @property
    def is_recreated(self) -> bool:
        """A topic was re-created, so earlier offsets have no meaning any more."""
        return self in (GapCase.SOURCE_RECREATED, GapCase.TARGET_RECREATED)

    @property
    def key(self) -> str:
        """The configuration key that decides the case."""
        if self is GapCase.DOUBT:
            return "lockstep.on.doubt"
        return "lockstep.on.recreate" if self.is_recreated else "lockstep.on.gap"


@dataclass(frozen=True, slots=True, kw_only=True)
class GapFound:
    """A case with the evidence of both clusters.

    `wanted` is the next upstream offset to copy. `start` and `end` are those of the source's log now. Up to `agreed`
    its log still is the one that was copied. `epoch` (DOUBT only) is that of our records which the row does not know,
    and whose own row may still come; -1: there are none. The target's cases use the next two. `held` is the last
    downstream offset that the target had acknowledged, and `target_end` is the end of its log now; -1: unknown.
    `decision` is the policy's; None: halt.
    """

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
        """The target has lost records or its topic."""
        return self.case in (GapCase.TARGET_TRUNCATED, GapCase.TARGET_RECREATED)

    @property
    def gone(self) -> tuple[int, int] | None:
        """Downstream offsets (first, last) whose records the target has lost; None: there are none, or it is unknown.

        If the topic was re-created, this is all that its former log may have held from 0 on.
        """
        first = {GapCase.TARGET_TRUNCATED: self.target_end, GapCase.TARGET_RECREATED: 0}.get(self.case, -1)
        return (first, self.held) if 0 <= first <= self.held else None

    def halts(self, code: ReasonCode) -> Reason:
        """Return the reason why the partition halts, with the facts from the clusters."""
        details = {name: value for name, value in self.facts().items() if isinstance(value, str | int)}
        return code.to_reason(**details, text=self.text, key=self.case.key)

    def facts(self) -> dict[str, Any]:
        """Return the fields of the event. `target_wanted` is the downstream offset for the next record."""
        facts: dict[str, Any] = {
            "case": self.case.value,
            "wanted": self.wanted,
            "source_start": self.start,
            "source_end": self.end,
        }
        target_facts: dict[str, Any] = {
            "target_wanted": self.held + 1,
            "target_end": self.target_end,
            "gone": self.gone,
        }
        return facts | (target_facts if self.target_end >= 0 else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class GapDecision:
    """The decision to continue at `begin`, in a new epoch of the chain.

    `lost` has the upstream offsets (first, last) that will not be copied, `again` those whose records the target may
    hold twice. `gone` has the downstream offsets that the target lost and that are not copied again. None: there are
    none, or it is unknown.
    """

    begin: int
    word: str
    lost: tuple[int, int] | None = None
    again: tuple[int, int] | None = None
    gone: tuple[int, int] | None = None

    def text(self, key: str) -> str:
        """Return where the copy goes on, by which value of which key, and at what cost."""
        text = f"going on at offset {self.begin} ({key}={self.word})"
        if self.lost:
            text += f"; offsets {self.lost[0]} to {self.lost[1]} are not copied"
        if self.again:
            text += f"; offsets {self.again[0]} to {self.again[1]} may be on the target twice"
        if self.gone:
            text += f"; what the target had at its offsets {self.gone[0]} to {self.gone[1]} stays gone"
        return text

    def facts(self) -> dict[str, Any]:
        """Return the ranges of offsets, as fields of the event."""
        return {"lost": self.lost, "again": self.again, "gone": self.gone}


def decide_gap(gap: GapFound, policy: str) -> GapDecision | None:
    """Return what a policy makes of a case; None: halt. `policy` is the value of the key that decides the case.

    | case | skip, or progress | restart |
    |---|---|---|
    | RECORDS_GONE | at the log's start | the same |
    | SOURCE_TRUNCATED | where the logs part: what came after that is new | at the log's start |
    | SOURCE_RECREATED | at the new log's end | at the new log's start |
    | TARGET_TRUNCATED | at `wanted`: what the target lost stays lost | at the source's log start |
    | TARGET_RECREATED | at `wanted`: what the target held before stays gone | at the source's log start |
    | DOUBT | after the last progress written: what came behind it may be doubled | - |
    """
    if policy == "halt":
        return None
    if policy == "restart" or gap.case is GapCase.RECORDS_GONE:
        return _from_start(gap, policy)
    begin = gap.wanted
    if gap.case is GapCase.SOURCE_TRUNCATED:
        begin = max(gap.start, min(gap.agreed, gap.end))
    elif gap.case is GapCase.SOURCE_RECREATED:
        begin = gap.end
    lost = (gap.start, begin - 1) if gap.case is GapCase.SOURCE_RECREATED else (gap.wanted, begin - 1)
    return GapDecision(
        begin=begin,
        word=policy,
        lost=lost if lost[0] <= lost[1] else None,
        again=(begin, gap.end - 1) if gap.case is GapCase.DOUBT and begin < gap.end else None,
        gone=gap.gone,
    )


def goes_back(committed: int | None, decision: GapDecision) -> bool:
    """Return whether committed progress is beyond a decision.

    `committed` is its last upstream offset; None: it has none.

    In transactions the greater of the row and of committed progress counts. So progress beyond the decision is taken
    back before the row is written, or the decision would have no effect. Progress below the decision may only follow
    the row. Otherwise a run in between would continue as decided without an event and a count.
    """
    return committed is not None and committed >= decision.begin


def lost_on_target(gap: GapFound, decision: GapDecision) -> int:
    """Return how many downstream offsets stay lost. The log of a deleted topic cannot be counted."""
    lost = decision.gone if gap.case is GapCase.TARGET_TRUNCATED else None
    return lost[1] - lost[0] + 1 if lost else 0


def missing_between(gaps: tuple[tuple[str, int], ...], case: GapCase) -> tuple[tuple[str, int], ...]:
    """Return the counts of `PartitionProgress.gaps` with one more of this case."""
    times = dict(gaps)
    times[case.value] = times.get(case.value, 0) + 1
    return tuple(sorted(times.items()))


def _from_start(gap: GapFound, policy: str) -> GapDecision:
    """Return the decision to copy again from the source's log start.

    The target will have records twice, unless its topic or the source's was re-created.
    """
    same_log = gap.case in (GapCase.RECORDS_GONE, GapCase.SOURCE_TRUNCATED, GapCase.TARGET_TRUNCATED)
    gone = (gap.wanted, gap.start - 1)
    before = (gap.start, min(gap.wanted, gap.end) - 1)
    return GapDecision(
        begin=gap.start,
        word=policy,
        lost=gone if gap.case is not GapCase.SOURCE_RECREATED and gone[0] <= gone[1] else None,
        again=before if same_log and before[0] <= before[1] else None,
    )
