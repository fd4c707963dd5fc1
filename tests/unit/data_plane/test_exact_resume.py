"""Whatever happens in between, the target gets each of the source's records once, in order; and a row always tells the
truth (`architecture.md` §5, "An append is a compare-and-swap"; `resume.md`).

A model of the rule, in memory (`copying_model.py`); real brokers are for the integration and fault tests."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.provenance import appended_since
from lockstep_data_plane.core.target_log.content_match import AmbiguousMatch, ContentMatch
from lockstep_data_plane.core.target_log.surviving_appends import SurvivingAppends
from lockstep_data_plane.core.target_log.target_tail import LastAppend, last_append_in
from tests.unit.data_plane.copying_model import Slot
from tests.unit.data_plane.modelled_copy import HAPPENINGS, LIMITS, ROUTES, World, run
from tests.unit.data_plane.modelled_logs import KINDS, OUR_EPOCH, OURS, SEQUENCES, SourceLog

parts = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 5)), min_size=1, max_size=12)
happenings = st.lists(st.tuples(st.sampled_from(HAPPENINGS), st.integers(0, 3)), max_size=30)
ALL_KINDS = [(kind, 3) for kind in KINDS]


@settings(max_examples=150)
@given(made_of=parts, happens=happenings)
@example(made_of=ALL_KINDS, happens=[])
@example(
    made_of=ALL_KINDS, happens=[*[("round", 0)] * 9, ("crash", 1), *[("round", 1)] * 3, ("write", 0), ("crash", 3)]
)
@example(made_of=[("tiny", 5)] * 4, happens=[("ahead", 3), ("one refused", 0)])
@example(made_of=[("plain", 1), ("passed on", 1)] * 4, happens=[("ahead", 3), ("one refused", 0), ("crash", 1)])
@example(made_of=[("plain", 2)] * 4, happens=[("round", 0), ("foreign", 0), ("round", 0), ("crash", 0)])
def test_each_record_arrives_once_and_in_order_whatever_happens(
    made_of: list[tuple[str, int]], happens: list[tuple[str, int]]
) -> None:
    run(made_of, happens)


@settings(max_examples=150)
@given(made_of=parts, happens=happenings)
@example(made_of=[("plain", 2)] * 6, happens=[*[("round", 0)] * 2, ("crash", 0)])
@example(made_of=[("plain", 2)] * 6, happens=[*[("round", 0)] * 2, ("crash", 0), ("fetch", 0)])
@example(made_of=[("plain", 5)] * 6, happens=[("ahead", 3), ("appended", 0), ("cut", 0)])
@example(made_of=[("plain", 5)] * 6, happens=[("ahead", 3), ("appended", 0), ("cut", 0), ("leave", 0)])
@example(made_of=[("plain", 5)] * 6, happens=[("ahead", 3), ("one refused for good", 0), ("crash", 0)])
@example(made_of=[("plain", 1)], happens=[("ahead", 0), ("leave", 0)])
def test_row_of_a_partition_at_rest_covers_all_records_of_the_target(
    made_of: list[tuple[str, int]], happens: list[tuple[str, int]]
) -> None:
    """At whatever moment it is told, and whatever was killed or failed before. Nobody else has the partition."""
    world = World(SourceLog.from_parts(made_of))
    for what, choice in happens:
        if what not in ("zombie", "stray"):
            world.happens(what, choice)
    if world.slots[0].partition.leaving:
        world.slots[0].come_to_rest()
        world.happens("crash", 0)  # it left for another
    slot = world.slots[0]
    slot.come_to_rest()
    row, appended = slot.partition.row(), len(world.target.ours)
    assert row.located
    assert appended_since(world.first_row, row.sequence, row.others) == appended
    assert sum(record.offset <= row.upstream for record in world.source.visible) == appended
    world.check()
    again = Slot(world.source, world.target, row, LIMITS[0])
    assert not again.partition.records_to_skip, "and who copies next finds nothing more"
    assert not again.partition.row().located, "and says so no more"


@pytest.mark.parametrize("landed", range(5))
def test_no_batch_lands_behind_a_refused_one_of_five_in_flight(landed: int) -> None:
    world = World(SourceLog.from_parts([("plain", 2)] * 12))
    slot = world.slots[0]
    for what in (*ROUTES["round"], *ROUTES["fetch"] * 2, *["send"] * 5):  # the first goes alone, and is answered
        world.step(what, 3)
    appended = len(world.target.ours)
    assert len(slot.socket) == 5
    assert slot.partition.routing.records_held > 10, "more waits behind them"
    sizes = [sent.outgoing.count for sent in slot.socket]
    for what in (*["broker"] * landed, *ROUTES["one refused for good"]):
        world.step(what, 0)
        world.check()
    assert slot.partition.phase is Phase.HALTED
    assert len(world.target.ours) == appended + sum(sizes[:landed])
    for what in ROUTES["round"]:
        world.step(what, 0)
    assert len(world.target.ours) == appended + sum(sizes[:landed]), "until somebody decides"
    world.happens("leave", 0)
    world.finish()
    world.check()


@settings(max_examples=40)
@given(made_of=parts, happens=happenings, before_the_end=st.integers(1, 12))
def test_resume_is_exact_where_sequences_wrap_to_zero(
    made_of: list[tuple[str, int]], happens: list[tuple[str, int]], before_the_end: int
) -> None:
    run(made_of, happens, first_sequence=SEQUENCES - before_the_end)


@settings(max_examples=60)
@given(made_of=parts, batches=st.integers(0, 12), killed=st.data())
def test_killed_at_any_point_and_resumed_from_any_row_written_before(
    made_of: list[tuple[str, int]], batches: int, killed: st.DataObject
) -> None:
    """One slot copies; of the rows it could have written, any one is what the next slot finds."""
    world = World(SourceLog.from_parts(made_of))
    rows = [world.row]
    for _ in range(batches):
        for what in ROUTES["round"]:
            world.step(what, 0)
            rows.append(world.slots[0].partition.row())
    world.row = killed.draw(st.sampled_from(rows), label="the row that was written last")
    appended = len(world.target.ours)
    limits = killed.draw(st.sampled_from(LIMITS), label="what the target takes by then")
    slot = Slot(world.source, world.target, world.row, limits)
    assert slot.partition.records_to_skip == appended - appended_since(
        world.first_row, world.row.sequence, world.row.others
    )
    while not slot.all_done():
        slot.fetch(3)
        slot.deliver()
        slot.send()
        if slot.socket:
            break
    rest = [r.offset for r in world.source.visible[appended:]]
    if slot.socket:
        assert slot.socket[0].outgoing.offsets[0] == rest[0], "the next record is the first one that is not there"
    world.finish()
    world.check()


@settings(max_examples=40)
@given(made_of=parts, batches=st.integers(1, 6))
def test_resume_sends_no_record_that_is_on_the_target(made_of: list[tuple[str, int]], batches: int) -> None:
    world = run(made_of, [("round", 0)] * batches)
    end = world.target.end
    world.slots = [Slot(world.source, world.target, world.row, LIMITS[1])]
    while not world.slots[0].all_done():
        world.slots[0].fetch(2)
        world.slots[0].deliver()
        assert not world.slots[0].partition.routing.records_held
    assert world.target.end == end
    world.check()


@given(
    counts=st.lists(st.integers(1, 4), min_size=2, max_size=5),
    appended=st.integers(1, 4),
    gone=st.sets(st.integers(0, 8), max_size=4),
    gone_there=st.sets(st.integers(0, 8), max_size=9),
)
@example(counts=[2, 2, 2], appended=2, gone={1}, gone_there=set())
@example(counts=[2, 2, 2], appended=2, gone={0, 1, 2, 3}, gone_there=set())
@example(counts=[2, 2, 2], appended=2, gone={1}, gone_there={3})
@example(counts=[2, 2, 2], appended=2, gone={1}, gone_there={0, 1, 2, 3})
@example(counts=[2, 2, 2], appended=2, gone={0}, gone_there={2, 3})
def test_records_deleted_after_their_copy_are_never_miscounted(
    counts: list[int], appended: int, gone: set[int], gone_there: set[int]
) -> None:
    """Counting would arrive too far on and leave records out: it arrives right, or the records themselves tell, or
    nobody can tell and somebody has to decide."""
    world = World(SourceLog.from_parts([("plain", count) for count in counts]))
    for _ in range(appended):
        for what in ROUTES["round"]:
            world.step(what, 0)
    on_target = len(world.target.ours)
    cleaned = world.source.cleaned(gone)
    world.target.cleaned(gone_there)
    slot = Slot(cleaned, world.target, world.row, LIMITS[0])
    slot.fetch(10)
    slot.deliver()
    counting_failed = bool(slot.troubles)
    assert all("gone from" in str(trouble) or "more records of ours" in str(trouble) for trouble in slot.troubles)
    expected = [r.offset for r in cleaned.visible if r.offset >= world.source.visible[on_target - 1].offset + 1]
    if not counting_failed and not slot.partition.records_to_skip:
        slot.send()
        queued = slot.socket[0].outgoing if slot.socket else None
        assert (queued.offsets[0] if queued else None) == (expected[0] if expected else None)
        return
    assert gone & set(range(on_target)), "what was left alone is never in doubt"
    row = world.row
    append_sequence = last_append_in(
        LastAppend(row.sequence, row.downstream), world.target.tail(row.downstream + 1), OURS, OUR_EPOCH
    )
    remains = SurvivingAppends(row, append_sequence)
    for batch in world.target.tail(row.downstream + 1):
        remains.add_batch(batch)
    remains.ends()
    alignment = ContentMatch(
        remains.records, remains.gone_before, appended_since(row, append_sequence.sequence, append_sequence.others)
    )
    try:
        match = alignment.compare(r for r in cleaned.visible if r.offset > row.upstream)
        if not match:
            alignment.ends()
    except AmbiguousMatch:
        assert gone_there & set(range(on_target)), "the target has lost some of ours, too"
        return
    assert (alignment.next if match else None) == (expected[0] if expected else None)
