"""A partition's phases are the table that the documentation shows."""

from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_data_plane.core.effects import CopyTrouble, Halted
from lockstep_data_plane.core.events import (
    Acked,
    AllAnswered,
    Failed,
    Fetched,
    Leave,
    NothingCopied,
    PartitionEvent,
    Quarantined,
    Refused,
    Resumed,
    TopicChanged,
)
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import TRANSITIONS, Phase, PhaseEvent
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.record_batch.classify import AbortedTransactions, TargetLimits
from tests.support.batch_bytes import batch, records
from tests.support.reasons import reported
from tests.unit.data_plane.partition_steps import (
    ROW,
    admit,
    append,
    launch,
    partition,
    phase_after,
    reports,
    resumed,
    stops_fetching,
    waits,
)

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "internals" / "partition-states.md"


def drawn() -> str:
    """The table as the diagram of `docs/internals/partition-states.md`."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {Phase.RESUMING.value}"]
    for phase, moves in TRANSITIONS.items():
        goals: dict[Phase, list[str]] = {}
        for happening, goal in moves.items():
            goals.setdefault(goal, []).append(happening.value)
        lines += [f"    {phase.value} --> {goal.value}: {', '.join(names)}" for goal, names in goals.items()]
    return "\n".join([*lines, "```"]) + "\n"


REFUSED = Refused(reported("timestamps"))
ROUTES: dict[Phase, tuple[PartitionEvent, ...]] = {
    Phase.RESUMING: (Failed(), AllAnswered()),
    Phase.COPYING: (),
    Phase.SETTLING: (Failed(),),
    Phase.DRAINING: (REFUSED,),
    Phase.LOCATING: (Failed(), AllAnswered(), Leave("paused"), Resumed(ROW, LastAppend(4, 4))),
    Phase.HALTED: (REFUSED, AllAnswered()),
    Phase.RELEASED: (Leave(goes_on=True), AllAnswered()),
}
"""How a partition that copies gets into each phase."""

STEPS: dict[PhaseEvent, PartitionEvent] = {
    PhaseEvent.RESUMED: Resumed(ROW, LastAppend(-1, -1)),
    PhaseEvent.FAILED: Failed("why"),
    PhaseEvent.REFUSED: Refused(reported("because")),
    PhaseEvent.SETTLED: AllAnswered(),
    PhaseEvent.QUARANTINED: Quarantined(None),
    PhaseEvent.LEAVE: Leave(goes_on=True),
    PhaseEvent.REST: Leave("paused"),
    PhaseEvent.FOUND: NothingCopied(),
}
"""The events that say what happens; how the others come about is in the tests behind this."""

LATE = (PhaseEvent.FAILED, PhaseEvent.REFUSED, PhaseEvent.LEAVE, PhaseEvent.REST)
"""They may come for a partition that is past them, and change nothing then."""


def in_phase(phase: Phase) -> PartitionState:
    p = partition()
    for event in ROUTES[phase]:
        p.step(event)
    assert p.phase is phase
    return p


class TestTheTable:
    def test_the_document_shows_it(self) -> None:
        assert drawn() in DOCUMENT.read_text(), "docs/internals/partition-states.md is to hold drawn() as it is now"

    def test_each_phase_has_its_row(self) -> None:
        assert set(TRANSITIONS) == set(Phase)

    @pytest.mark.parametrize("event", [PhaseEvent.RESUMED, *LATE, PhaseEvent.QUARANTINED])
    @pytest.mark.parametrize("phase", Phase)
    def test_partition_event_changes_the_phase_by_the_table_or_raises(self, phase: Phase, event: PhaseEvent) -> None:
        p = in_phase(phase)
        if p.resolves_end and event in (PhaseEvent.RESUMED, PhaseEvent.REFUSED):
            event = PhaseEvent.FOUND if event is PhaseEvent.RESUMED else PhaseEvent.REFUSED_AT_REST
        if event in TRANSITIONS[phase]:
            assert p.can(event)
            step = STEPS.get(event) or STEPS[PhaseEvent.REFUSED]
            assert phase_after(p, step) is p.phase is TRANSITIONS[phase][event]
        elif event in (*LATE, PhaseEvent.REFUSED_AT_REST):
            before = p.phase, p.cause, p.leaving, p.halted
            assert reports(p.step(STEPS.get(event) or STEPS[PhaseEvent.REFUSED])) == []
            assert (p.phase, p.cause, p.leaving, p.halted) == before
        else:
            with pytest.raises(KeyError):
                p.step(STEPS.get(event) or STEPS[PhaseEvent.RESUMED])
            assert p.phase is phase

    @pytest.mark.parametrize("phase", [p for p in Phase if p not in (Phase.SETTLING, Phase.DRAINING)])
    def test_only_a_partition_that_waits_for_answers_may_have_them_all(self, phase: Phase) -> None:
        with pytest.raises(KeyError):
            in_phase(phase).step(AllAnswered())

    def test_every_phase_can_be_reached_and_left_but_the_last(self) -> None:
        reached = {Phase.RESUMING} | {goal for moves in TRANSITIONS.values() for goal in moves.values()}
        assert reached == set(Phase)
        assert [phase for phase, moves in TRANSITIONS.items() if not moves] == [Phase.RELEASED]

    def test_every_event_is_in_the_table(self) -> None:
        assert {event for moves in TRANSITIONS.values() for event in moves} == set(PhaseEvent)

    def test_partition_can_leave_in_every_phase(self) -> None:
        for event in (PhaseEvent.LEAVE, PhaseEvent.REST):
            assert all(event in moves for phase, moves in TRANSITIONS.items() if phase is not Phase.RELEASED)

    def test_partition_refused_by_the_target_drains_and_halts_with_the_reason(self) -> None:
        p = partition()
        admit(p, batch(records(0, 2)))
        assert reports(p.step(REFUSED)) == []
        assert not p.drained, "what was queued before the refused batch still goes"
        append(p, 0)
        assert p.drained
        assert reports(p.step(AllAnswered())) == [Halted(reported("timestamps"), 1)]
        assert p.phase is Phase.HALTED
        row = p.row()
        assert (row.phase, row.case, row.reason, row.upstream, row.sequence) == (
            *("halted", "refused", "timestamps"),
            *(1, 1),
        )

    def test_partition_refused_by_the_target_frees_unsent_batches(self) -> None:
        p = partition()
        admit(p, batch(records(0, 2)), batch(records(2, 2)))
        p.step(Refused(reported("timestamps"), sent=launch(p)))
        assert p.drained
        p.step(AllAnswered())
        assert (p.phase, p.routing.bytes_held) == (Phase.HALTED, 0)

    def test_partition_that_leaves_is_released_also_after_a_refusal(self) -> None:
        p = partition()
        p.step(Leave(goes_on=True))
        p.step(REFUSED)
        assert phase_after(p, AllAnswered()) is Phase.RELEASED

    def test_partition_to_be_paused_is_paused_once_appends_are_acknowledged(self) -> None:
        p = partition()
        admit(p, batch(records(0, 2)))
        sent = launch(p)
        assert stops_fetching(p.step(Leave("paused")))
        assert p.row().phase == "copying"
        p.step(Acked(sent, 0, now_ms=0))
        p.step(AllAnswered())
        assert (p.row().phase, p.row().upstream) == ("paused", 1)

    @pytest.mark.parametrize("event", [Failed(), Leave(goes_on=True), Leave()])
    def test_partition_that_failed_or_leaves_sends_nothing_more(self, event: PartitionEvent) -> None:
        p = partition()
        admit(p, batch(records(0, 2)))
        p.step(event)
        assert not waits(p)
        assert p.drained

    def test_failure_is_reported_once(self) -> None:
        p = partition()
        assert reports(p.step(Failed("why"))) == [CopyTrouble("why")]
        assert reports(p.step(Failed("why"))) == []

    def test_batches_are_smaller_after_one_was_too_large(self) -> None:
        p = partition()
        admit(p, batch(records(0, 2)))
        p.step(Failed("too large", launch(p), split_above=0))
        assert (p.limits.split_above, p.limits.max_bytes) == (1, TargetLimits().max_bytes)

    @pytest.mark.parametrize(
        ("ids", "phase"),
        [(("s", "t"), Phase.COPYING), (("other", "t"), Phase.SETTLING), (("s", "other"), Phase.SETTLING)],
    )
    def test_topic_created_again_makes_a_copying_partition_settle(self, ids: tuple[str, str], phase: Phase) -> None:
        p = resumed(replace(ROW, source_topic_id="s", target_topic_id="t"))
        effects = p.step(TopicChanged(TargetLimits(500), *ids, 1))
        assert (p.phase, len(reports(effects)), p.limits.max_bytes) == (phase, phase is not Phase.COPYING, 500)

    @pytest.mark.parametrize(("before", "now"), [("", "s"), ("s", "")])
    def test_topic_that_gets_an_id_is_not_called_created_again(self, before: str, now: str) -> None:
        """Its cluster is upgraded: which broker answers decides whether the id is known."""
        p = resumed(replace(ROW, source_topic_id=before, target_topic_id="t"))
        effects = p.step(TopicChanged(TargetLimits(), now, "t", 1))
        assert reports(effects) == [CopyTrouble("its topic has an id now, or none")]

    def test_fetched_batches_of_an_earlier_incarnation_are_thrown_away(self) -> None:
        p = partition()
        for event in (Failed(), AllAnswered(), Resumed(ROW, LastAppend(-1, -1))):
            p.step(event)
        late = p.step(Fetched(1, [batch(records(0, 2))], AbortedTransactions(), 2, size=0, now_ms=0))
        assert (late, p.routing.records_held, p.incarnation) == ((), 0, 2)
