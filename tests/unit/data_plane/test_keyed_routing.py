"""Whatever happens in between, readers of committed records see each of the source's records once, in the partition
that its key chooses, in order."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_data_plane.core.append_sequence import WINDOW
from lockstep_data_plane.core.events import (
    Acked,
    Leave,
    Resumed,
    TargetSized,
    TransactionCommitted,
    TransactionJoined,
    TransactionOpened,
)
from lockstep_data_plane.core.keyed_routing import KeyedRouting
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.core.transaction_state import TransactionStage, TransactionState
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_state.codecs.murmur2 import partition_for
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import CONTROL, LZ4, TRANSACTIONAL, batch, record, records
from tests.unit.data_plane.keyed_model import KeyedLog, KeyedSlot, Target
from tests.unit.data_plane.modelled_logs import KINDS, SourceLog
from tests.unit.data_plane.partition_steps import admit, counted, joins, launched, waits

PARTITIONS = 3
LIMITS = (TargetLimits(), TargetLimits(250, LZ4), TargetLimits(400))
STEPS = (*("fetch", "open", "send", "broker", "answer") * 3, "end", "end", "cut", "crash", "leave")
kinds = [kind for kind in KINDS if kind not in ("passed on", "came from the target")]
parts = st.lists(st.tuples(st.sampled_from(kinds), st.integers(1, 5)), min_size=1, max_size=12)
steps = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3)), max_size=80)


def comparable(record: PlainRecord) -> tuple[object, ...]:
    return record.timestamp, record.key, record.value, tuple(record.headers)


def check(source: SourceLog, target: Target, without: frozenset[int] = frozenset()) -> None:
    """What is committed is the source up to the committed progress: once, in place, in order."""
    wanted = [r for r in source.visible if r.offset <= target.progress and r.offset not in without]
    seen = [comparable(r) for there in target.committed for r in there]
    assert sorted(seen, key=repr) == sorted((comparable(r) for r in wanted), key=repr)
    for number, there in enumerate(target.committed):
        keyed = [r for r in wanted if r.key is not None and partition_for(r.key, PARTITIONS) == number]
        assert [comparable(r) for r in there if r.key is not None] == [comparable(r) for r in keyed]


@settings(max_examples=150, deadline=None)
@given(parts, steps, st.sampled_from(LIMITS))
def test_each_record_is_committed_once_in_its_place_whatever_happens(
    made: list[tuple[str, int]], happened: list[tuple[str, int]], limits: TargetLimits
) -> None:
    source, target = KeyedLog.from_parts(made), Target(PARTITIONS)
    slot = KeyedSlot(source, target, limits)
    for step, choice in happened:
        if step == "crash":
            slot = KeyedSlot(source, target, limits)
        elif step == "leave":
            slot.partition.step(Leave(goes_on=True))
        else:
            getattr(slot, step)(choice)
        check(source, target)
    slot = KeyedSlot(source, target, limits)
    slot.finish()
    check(source, target)
    assert slot.partition.row().upstream == source.end - 1
    assert slot.partition.caught_up
    assert slot.partition.routing.bytes_held == 0


def test_keyed_partition_that_leaves_ends_its_round_and_drops_the_rest() -> None:
    source, target = KeyedLog.from_parts([("plain", 5), ("plain", 5)]), Target(PARTITIONS)
    slot = KeyedSlot(source, target, TargetLimits())
    slot.fetch(0)
    slot.open()
    slot.send(0)
    slot.fetch(0)
    slot.partition.step(Leave(goes_on=True))
    assert not slot.partition.drained, "a part of the round is not sent yet"
    for _ in range(10):
        slot.send(0)
        slot.broker()
        slot.answer()
    assert slot.partition.drained
    slot.end()
    assert target.progress == 4
    check(source, target)


def test_keyed_partition_with_a_refused_record_commits_all_before_it_only() -> None:
    source, target = KeyedLog.from_parts([("plain", 5), ("plain", 5), ("plain", 4)]), Target(PARTITIONS)
    refused = source.visible[7]
    target.refuses = frozenset({refused.value or b""})
    slot = KeyedSlot(source, target, TargetLimits())
    slot.finish()
    partition = slot.partition
    assert (partition.phase, partition.row().reason) == (Phase.DRAINING, "no")
    assert target.progress == refused.offset - 1
    assert partition.refusal is not None
    assert partition.refusal.ranges == ((refused.offset, refused.offset),)
    check(source, target)

    # Put aside, it is passed over.
    slot = KeyedSlot(source, target, TargetLimits(), partition.refusal.ranges)
    slot.finish()
    check(source, target, without=frozenset({refused.offset}))
    assert target.progress == source.end - 1


def test_a_record_too_large_is_met_in_the_same_way() -> None:
    source, target = KeyedLog.from_parts([("tiny", 6), ("large", 2), ("tiny", 2)]), Target(PARTITIONS)
    slot = KeyedSlot(source, target, TargetLimits(90))
    slot.finish()
    assert slot.partition.phase is Phase.DRAINING
    assert "max.message.bytes" in slot.partition.row().reason
    assert target.progress == 6
    check(source, target)


def partition(upstream: int = -1) -> tuple[PartitionState, TransactionState]:
    p, transactions = PartitionState("t", 0, "t", 100, routing=KeyedRouting(0)), TransactionState("id")
    p.step(TargetSized(PARTITIONS))
    row = PartitionProgress(topic="t", partition=0, upstream=upstream, producer_id=7, transactional=True)
    p.step(Resumed(row, LastAppend(-1, -1), transactions=transactions))
    return p, transactions


def test_keyed_partition_sends_nothing_before_its_transaction() -> None:
    p, _ = partition()
    admit(p, batch([record(0, key=b"a"), record(1, key=b"b")]))
    assert p.wants_transaction
    joining = joins(p)
    p.step(TransactionOpened(0.0))
    assert joining == {partition_for(b"a", PARTITIONS), partition_for(b"b", PARTITIONS)}
    assert not waits(p)
    p.step(TransactionJoined(joining))
    assert {number for number in p.routing.numbers if p.may_launch(number, WINDOW)} == joining
    assert joins(p) == set()


def test_keyed_partition_counts_skipped_records_with_the_round() -> None:
    p, transactions = partition()
    admit(p, batch(records(0, 1), attributes=CONTROL | TRANSACTIONAL))
    assert (p.row().upstream, p.position) == (0, 1)
    admit(p, batch(records(1, 1)))
    admit(p, batch(records(2, 1), attributes=CONTROL | TRANSACTIONAL))
    assert (p.row().upstream, p.position) == (0, 3)
    p.step(TransactionJoined(joins(p)))
    p.step(TransactionOpened(0.0))
    [number] = [number for number in p.routing.numbers if p.may_launch(number, WINDOW)]
    sent = launched(p, number, WINDOW)
    assert sent is not None
    assert counted(p.step(Acked(sent, 10, now_ms=0))) == []
    admit(p, batch(records(3, 1), attributes=CONTROL | TRANSACTIONAL))
    assert (p.row().upstream, p.progress, p.routing.all_sent) == (0, (3, 0), True)
    assert len(counted(p.step(TransactionCommitted(now_ms=0)))) == 1
    row = p.row()
    assert (row.upstream, row.downstream, row.sequence, row.records) == (3, -1, -1, 1)
    assert transactions.stage is TransactionStage.CLOSED
    assert row.open_run == ()
    assert p.acked.runs.due() == []


def test_a_target_with_another_number_of_partitions_does_not_fit() -> None:
    p, _ = partition()
    assert p.routing.fits_partitions(PARTITIONS)
    assert not p.routing.fits_partitions(PARTITIONS + 1)
    p.step(TargetSized(PARTITIONS + 1))
    assert list(p.routing.numbers) == [0, 1, 2, 3]
    assert not p.routing.in_one_log
    assert p.with_identity_routing().routing.in_one_log
