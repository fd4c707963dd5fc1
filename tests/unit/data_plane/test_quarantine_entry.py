"""What is kept of what cannot be copied, and how a partition goes on behind it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockstep_data_plane.common.window_sizing import WINDOW
from lockstep_data_plane.core.machine import BatchRejected, PartitionMachine
from lockstep_data_plane.core.phases import PartitionEvent, Phase
from lockstep_data_plane.core.quarantine_entry import refused_batch, refused_piece, refused_record
from lockstep_data_plane.core.target_tail import LastAppend
from lockstep_data_plane.record_batch.classify import AbortedTransactions, TargetLimits
from lockstep_data_plane.record_batch.layout import scan
from lockstep_data_plane.record_batch.outgoing_batch import as_outgoing
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_protocol.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import GZIP, batch, record, records
from tests.support.message_sets import Message, message_set

ROW = PartitionProgress(topic="t", partition=3, producer_id=4000)


def resumed(row: PartitionProgress = ROW, limits: TargetLimits | None = None) -> PartitionMachine:
    p = PartitionMachine("t", 3, "a.t", 100)
    p.limits = limits or TargetLimits()
    p.resumed(row, LastAppend(row.sequence, row.downstream))
    return p


def queued(p: PartitionMachine) -> list[int]:
    offsets: list[int] = []
    while p.append_sequence.may_launch(WINDOW):
        flight = p.target_partitions[0].launch()
        offsets.extend(flight.piece.offsets)
        p.acknowledged(flight, p.acked.downstream + 1)
    return offsets


def test_quarantine_entry_has_the_whole_record_and_its_origin() -> None:
    refusal = refused_record(record(7, b"v", key=None, timestamp=5, headers=[("h", None), ("h", b"2")]), "too large")
    (entry,) = refusal.entries
    assert refusal.ranges == ((7, 7),)
    key, value, headers = entry.record("orders", 3, refusal.why)
    assert (key, value) == (None, b"v")
    assert dict(headers[:7]) == {
        "lockstep.topic": b"orders",
        "lockstep.partition": b"3",
        "lockstep.offset": b"7",
        "lockstep.last.offset": b"7",
        "lockstep.timestamp": b"5",
        "lockstep.content": b"record",
        "lockstep.reason": b"too large",
    }
    assert headers[7:] == [("h", b""), ("h", b"2")]


def test_a_batch_that_cannot_be_read_is_kept_as_its_bytes() -> None:
    found = batch(records(10, 3))
    refusal = refused_batch(found, "its CRC does not match its bytes")
    assert refusal is not None
    assert refusal.ranges == ((10, 12),)
    assert refusal.entries[0].value == bytes(found.data)
    assert refusal.entries[0].batch


def test_quarantine_of_a_batch_has_only_the_records_that_are_refused() -> None:
    piece = as_outgoing(batch(records(10, 4)))
    refusal = refused_piece(piece, [2, 0, 2, 9], "no key")
    assert refusal is not None
    assert refusal.ranges == ((10, 10), (12, 12))
    assert refused_piece(piece, [], "no word of which") is None


def test_a_partition_that_cannot_read_a_batch_offers_it() -> None:
    good, bad = batch(records(0, 2)), batch(records(2, 2))
    broken = bytearray(bad.data)
    broken[-1] ^= 1
    p = resumed()
    with pytest.raises(BatchRejected, match="offsets 2 to 3: its CRC") as why:
        p.admit([good, *scan(bytes(broken))], AbortedTransactions())
    assert why.value.refusal is not None
    assert why.value.refusal.ranges == ((2, 3),)
    assert queued(p) == [0, 1]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, GZIP])
def test_a_set_of_the_old_formats_that_cannot_be_read_is_not_offered(magic: int, codec: int) -> None:
    """So it halts: the offsets are inside it."""
    broken = bytearray(message_set(magic, [Message(2, None, b"a"), Message(3, None, b"b")], codec))
    broken[-1] ^= 1
    p = resumed()
    with pytest.raises(BatchRejected) as why:
        p.admit([batch(records(0, 2)), *scan(bytes(broken))], AbortedTransactions())
    assert why.value.refusal is None
    assert queued(p)[:2] == [0, 1]


def test_a_record_too_large_is_offered_alone() -> None:
    p = resumed(limits=TargetLimits(300))
    with pytest.raises(BatchRejected) as why:
        p.admit([batch([*records(0, 2), record(2, bytes(900)), *records(3, 1)])], AbortedTransactions())
    assert why.value.refusal is not None
    assert why.value.refusal.ranges == ((2, 2),)


@pytest.mark.parametrize(
    ("skips", "expected"),
    [
        (((2, 3),), [0, 1, 4, 5, 6, 7]),
        (((3, 3), (5, 5)), [0, 1, 2, 4, 6, 7]),
        (((0, 1),), [2, 3, 4, 5, 6, 7]),
        (((4, 7),), [0, 1, 2, 3]),
        ((), [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_quarantined_records_are_skipped_and_the_rest_is_copied(
    skips: tuple[tuple[int, int], ...], expected: list[int]
) -> None:
    p = resumed(replace(ROW, skips=skips))
    p.admit([batch(records(0, 2)), batch(records(2, 2)), batch(records(4, 4))], AbortedTransactions())
    assert queued(p) == expected
    assert p.row().upstream == 7
    assert p.row().skips == (), "what is behind us is forgotten"


def test_a_broken_batch_that_is_quarantined_whole_is_passed_over() -> None:
    broken = bytearray(batch(records(2, 2)).data)
    broken[-1] ^= 1
    p = resumed(replace(ROW, skips=((2, 3),)))
    p.admit([batch(records(0, 2)), *scan(bytes(broken)), batch(records(4, 1))], AbortedTransactions())
    assert queued(p) == [0, 1, 4]


def test_resume_count_leaves_out_quarantined_records() -> None:
    row = replace(ROW, skips=((1, 1),))
    p = PartitionMachine("t", 3, "a.t", 100)
    p.resumed(row, LastAppend(1, 1))  # offsets 0 and 2 are there
    p.admit([batch(records(0, 4))], AbortedTransactions())
    assert queued(p) == [3]


def test_a_quarantined_partition_resumes_and_a_leaving_one_leaves() -> None:
    p = resumed()
    p.refusal = refused_record(next(iter(read_records(batch(records(0, 1))))), "no")
    p.on(PartitionEvent.REFUSED, "no")
    assert p.phase is Phase.DRAINING
    assert p.on(PartitionEvent.QUARANTINED) is Phase.RESUMING
    assert (p.reason, p.case) == ("", "")
    assert p.refusal is None
