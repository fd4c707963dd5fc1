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
    """A gap with the evidence of both clusters.

    Attributes:
        case: The kind of the gap.
        text: The sentence about it for people.
        next_upstream: The upstream offset to copy next.
        start: The log start offset of the source now.
        end: The log end offset of the source now.
        agreed: The upstream offset up to which the source's log is still the one that was copied.
        epoch: The epoch of records of ours that the row does not include (DOUBT only); -1: there are none.
        acked_downstream: The last downstream offset that the target had acknowledged; -1: unknown.
        target_end: The log end offset of the target now; -1: unknown.
        decision: What the policy decided; None: the partition halts.
    """

    case: GapCase
    text: str
    next_upstream: int
    start: int
    end: int
    agreed: int = -1
    epoch: int = -1
    acked_downstream: int = -1
    target_end: int = -1
    decision: "GapDecision | None" = None

    @property
    def on_target(self) -> bool:
        """The target has lost records or its topic."""
        return self.case in (GapCase.TARGET_TRUNCATED, GapCase.TARGET_RECREATED)

    @property
    def lost_downstream(self) -> tuple[int, int] | None:
        """Downstream offsets (first, last) whose records the target has lost; None: there are none, or it is unknown.

        If the topic was re-created, this is all that its former log may have held from 0 on.
        """
        begin = {GapCase.TARGET_TRUNCATED: self.target_end, GapCase.TARGET_RECREATED: 0}.get(self.case, -1)
        return (begin, self.acked_downstream) if 0 <= begin <= self.acked_downstream else None

    def halts(self, code: ReasonCode) -> Reason:
        """Return the reason why the partition halts, with the facts from the clusters."""
        details = {name: value for name, value in self.facts().items() if isinstance(value, str | int)}
        return code.to_reason(**details, text=self.text, key=self.case.key)

    def facts(self) -> dict[str, Any]:
        """Return the fields of the event. `target_wanted` is the downstream offset for the next record."""
        facts: dict[str, Any] = {
            "case": self.case.value,
            "wanted": self.next_upstream,
            "source_start": self.start,
            "source_end": self.end,
        }
        target_facts: dict[str, Any] = {
            "target_wanted": self.acked_downstream + 1,
            "target_end": self.target_end,
            "gone": self.lost_downstream,
        }
        return facts | (target_facts if self.target_end >= 0 else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class GapDecision:
    """The decision to continue at `begin`, in a new epoch of the chain.

    `policy` is the value of the key that decided. `skipped` has the upstream offsets (first, last) that will not be
    copied, `repeated` those whose records the target may hold twice. `lost_downstream` has the downstream offsets that
    the target lost and that are not copied again. None: there are none, or it is unknown.
    """

    begin: int
    policy: str
    skipped: tuple[int, int] | None = None
    repeated: tuple[int, int] | None = None
    lost_downstream: tuple[int, int] | None = None

    def text(self, key: str) -> str:
        """Return where the copy goes on, by which value of which key, and at what cost."""
        text = f"going on at offset {self.begin} ({key}={self.policy})"
        if self.skipped:
            text += f"; offsets {self.skipped[0]} to {self.skipped[1]} are not copied"
        if self.repeated:
            text += f"; offsets {self.repeated[0]} to {self.repeated[1]} may be on the target twice"
        if self.lost_downstream:
            begin, end = self.lost_downstream
            text += f"; what the target had at its offsets {begin} to {end} stays gone"
        return text

    def facts(self) -> dict[str, Any]:
        """Return the ranges of offsets, as fields of the event."""
        return {"lost": self.skipped, "again": self.repeated, "gone": self.lost_downstream}


def decide_gap(gap: GapFound, policy: str) -> GapDecision | None:
    """Return what a policy makes of a case; None: halt. `policy` is the value of the key that decides the case.

    | case | skip, or progress | restart |
    |---|---|---|
    | RECORDS_GONE | at the log's start | the same |
    | SOURCE_TRUNCATED | where the logs part: what came after that is new | at the log's start |
    | SOURCE_RECREATED | at the new log's end | at the new log's start |
    | TARGET_TRUNCATED | at `next_upstream`: what the target lost stays lost | at the source's log start |
    | TARGET_RECREATED | at `next_upstream`: what the target held before stays gone | at the source's log start |
    | DOUBT | after the last progress written: what came behind it may be doubled | - |
    """
    if policy == "halt":
        return None
    if policy == "restart" or gap.case is GapCase.RECORDS_GONE:
        return _from_start(gap, policy)
    begin = gap.next_upstream
    if gap.case is GapCase.SOURCE_TRUNCATED:
        begin = max(gap.start, min(gap.agreed, gap.end))
    elif gap.case is GapCase.SOURCE_RECREATED:
        begin = gap.end
    skipped = (gap.start, begin - 1) if gap.case is GapCase.SOURCE_RECREATED else (gap.next_upstream, begin - 1)
    return GapDecision(
        begin=begin,
        policy=policy,
        skipped=skipped if skipped[0] <= skipped[1] else None,
        repeated=(begin, gap.end - 1) if gap.case is GapCase.DOUBT and begin < gap.end else None,
        lost_downstream=gap.lost_downstream,
    )


def goes_back(committed: int | None, decision: GapDecision) -> bool:
    """Return whether committed progress is beyond a decision.

    `committed` is its last upstream offset; None: it has none.

    In transactions the greater of the row and of committed progress counts, at the first start with them too. MM2 goes
    on behind the progress alone. So progress beyond the decision is taken back before the row is written, or the
    decision would have no effect. Progress below the decision may only follow the row. Otherwise a run in between would
    continue as decided without an event and a count.
    """
    return committed is not None and committed >= decision.begin


def lost_on_target(gap: GapFound, decision: GapDecision) -> int:
    """Return how many downstream offsets stay lost. The log of a deleted topic cannot be counted."""
    lost = decision.lost_downstream if gap.case is GapCase.TARGET_TRUNCATED else None
    return lost[1] - lost[0] + 1 if lost else 0


def count_gap(gaps: tuple[tuple[str, int], ...], case: GapCase) -> tuple[tuple[str, int], ...]:
    """Return the counts of `PartitionProgress.gaps` with one more gap of this case."""
    times = dict(gaps)
    times[case.value] = times.get(case.value, 0) + 1
    return tuple(sorted(times.items()))


def _from_start(gap: GapFound, policy: str) -> GapDecision:
    """Return the decision to copy again from the source's log start.

    The target will have records twice, unless its topic or the source's was re-created.
    """
    same_log = gap.case in (GapCase.RECORDS_GONE, GapCase.SOURCE_TRUNCATED, GapCase.TARGET_TRUNCATED)
    removed = (gap.next_upstream, gap.start - 1)
    before = (gap.start, min(gap.next_upstream, gap.end) - 1)
    return GapDecision(
        begin=gap.start,
        policy=policy,
        skipped=removed if gap.case is not GapCase.SOURCE_RECREATED and removed[0] <= removed[1] else None,
        repeated=before if same_log and before[0] <= before[1] else None,
    )
