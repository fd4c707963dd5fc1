"""What is kept of what cannot be copied, and how a partition goes on behind it."""

import struct
from dataclasses import replace

import pytest

from lockstep_data_plane.core.events import Acked, AllAnswered, EntryQuarantined, Leave, Quarantined, Refused
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.quarantine_entry import refused_batch, refused_outgoing, refused_record
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.layout import Batch, as_outgoing, scan
from lockstep_data_plane.record_batch.rebuild import read_records
from lockstep_rules.record_rules import DropHeaders, RecordRules
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import GZIP, batch, record, records
from tests.support.message_sets import Message, message_set
from tests.support.reasons import reported
from tests.unit.data_plane.partition_steps import admit, launch, phase_after, resumed, waits

ROW = PartitionProgress(topic="t", partition=3, producer_id=4000)


def queued(p: PartitionState) -> list[int]:
    offsets: list[int] = []
    while waits(p):
        sent = launch(p)
        offsets.extend(sent.outgoing.offsets)
        p.step(Acked(sent, p.row().downstream + 1, now_ms=0))
    return offsets


def test_quarantine_entry_has_the_whole_record_and_its_origin() -> None:
    refusal = refused_record(record(7, b"v", key=None, timestamp=5, headers=[("h", None), ("h", b"2")]), "too large")
    (entry,) = refusal.entries
    assert refusal.ranges == ((7, 7),)
    key, value, headers = entry.record("orders", 3, refusal.reason)
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
    source = batch(records(10, 3))
    refusal = refused_batch(source, "its records cannot be read", 100)
    assert refusal is not None
    assert refusal.ranges == ((10, 12),)
    assert refusal.entries[0].value == bytes(source.data)
    assert refusal.entries[0].batch


def with_last_offset_delta(source: Batch, delta: int, behind: Batch | None = None) -> Batch:
    """The batch with another last offset in its header, which its CRC does not fit, before `behind` in its log."""
    spoilt = bytearray(source.data)
    struct.pack_into(">i", spoilt, 23, delta)
    return next(scan(bytes(spoilt) + (b"" if behind is None else bytes(behind.data))))


@pytest.mark.parametrize("delta", [-(2**31), -1, 0, 2, 3, 700, 2**31 - 1])
@pytest.mark.parametrize("shown", [17, 61, 1000])
def test_last_offset_without_a_right_crc_is_that_before_the_next_batch(delta: int, shown: int) -> None:
    """The next batch may be cut off."""
    behind = batch(records(13, 3))
    spoilt = bytearray(with_last_offset_delta(batch(records(10, 3)), delta).data)
    spoilt[-1] ^= 1
    seen = next(scan(bytes(spoilt) + bytes(behind.data)[:shown]))
    refusal = refused_batch(seen, "its CRC does not match its bytes", 100)
    assert refusal is not None
    assert refusal.ranges == ((10, 12),)


@pytest.mark.parametrize(("delta", "behind"), [(700, None), (3, None), (3, 10), (3, 7), (3, 101)])
def test_last_offset_that_nothing_shows_is_not_believed(delta: int, behind: int | None) -> None:
    following = None if behind is None else batch(records(behind, 1))
    spoilt = with_last_offset_delta(batch(records(10, 3)), delta, following)
    assert refused_batch(spoilt, "its CRC does not match its bytes", 100) is None


def test_batch_that_cannot_be_read_and_has_rules_is_kept_without_its_bytes() -> None:
    """They have the headers and records that the rules would drop."""
    broken = bytearray(batch(records(0, 2)).data)
    broken[-1] ^= 1
    p = resumed(ROW, limits=TargetLimits(rules=RecordRules((DropHeaders("x-user"),))))
    admit(p, *scan(bytes(broken)), source_end=2)
    assert p.refusal is not None
    (entry,) = p.refusal.entries
    assert (entry.first, entry.last, entry.value) == (0, 1, None)


@pytest.mark.parametrize("magic", [0, 1])
def test_next_batch_of_an_old_format_shows_no_end(magic: int) -> None:
    """A compressed one has the offset of its last record."""
    behind = message_set(magic, [Message(offset, None, b"a") for offset in range(13, 20)], GZIP)
    spoilt = with_last_offset_delta(batch(records(10, 3)), 3)
    seen = next(scan(bytes(spoilt.data) + behind))
    assert (seen.following_offset, seen.last_offset) == (-1, 13)
    assert refused_batch(seen, "its CRC does not match its bytes", 100) is None


def test_spoilt_batch_at_the_end_of_the_log_ends_there() -> None:
    broken = bytearray(batch(records(10, 3)).data)
    broken[-1] ^= 1
    (spoilt,) = scan(bytes(broken))
    refusal = refused_batch(spoilt, "its CRC does not match its bytes", 13)
    assert refusal is not None
    assert refusal.ranges == ((10, 12),)


def test_partition_passes_over_no_good_record_behind_a_spoilt_batch() -> None:
    spoilt = with_last_offset_delta(batch(records(2, 2)), 5)
    p = resumed(ROW)
    log = b"".join(bytes(each.data) for each in (batch(records(0, 2)), spoilt, batch(records(4, 2))))
    admit(p, *scan(log), source_end=6)
    assert p.refusal is not None
    assert p.refusal.ranges == ((2, 3),)
    again = resumed(replace(ROW, upstream=1, skips=p.refusal.ranges))
    admit(again, *scan(log), source_end=6)
    assert (again.refusal, queued(again), again.position) == (None, [4, 5], 6)


def test_what_is_in_quarantine_is_not_offered_again() -> None:
    broken = bytearray(batch(records(2, 2)).data)
    broken[-1] ^= 1
    p = resumed(replace(ROW, upstream=1, skips=((2, 3),)))
    refusal = refused_batch(next(scan(bytes(broken))), "no", 4)
    assert refusal is not None
    p.step(Refused(reported("it would be asked for again and again"), refusal))
    p.step(AllAnswered())
    assert (p.phase, p.refusal) == (Phase.HALTED, None)


def test_quarantine_of_a_batch_has_only_the_records_that_are_refused() -> None:
    outgoing = as_outgoing(batch(records(10, 4)))
    refusal = refused_outgoing(outgoing, [2, 0, 2, 9], "no key")
    assert refusal is not None
    assert refusal.ranges == ((10, 10), (12, 12))
    assert refused_outgoing(outgoing, [], "no word of which") is None


def test_a_partition_that_cannot_read_a_batch_offers_it() -> None:
    good, bad = batch(records(0, 2)), batch(records(2, 2))
    broken = bytearray(bad.data)
    broken[-1] ^= 1
    p = resumed(ROW)
    admit(p, good, *scan(bytes(broken)), source_end=4)
    assert "offsets 2 to 3: its CRC" in p.row().reason
    assert p.refusal is not None
    assert p.refusal.ranges == ((2, 3),)
    assert queued(p) == [0, 1]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, GZIP])
def test_a_set_of_the_old_formats_that_cannot_be_read_is_not_offered(magic: int, codec: int) -> None:
    """So it halts: the offsets are inside it."""
    broken = bytearray(message_set(magic, [Message(2, None, b"a"), Message(3, None, b"b")], codec))
    broken[-1] ^= 1
    p = resumed(ROW)
    admit(p, batch(records(0, 2)), *scan(bytes(broken)))
    assert (p.phase, p.refusal) == (Phase.DRAINING, None)
    assert queued(p)[:2] == [0, 1]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("skipped", [100, 104, 109])
def test_one_record_of_an_old_set_is_skipped_and_the_others_are_copied(magic: int, skipped: int) -> None:
    """A compressed set has the offset of its last record."""
    content = [Message(offset, None, b"%d" % offset) for offset in range(100, 110)]
    p = resumed(replace(ROW, upstream=99, skips=((skipped, skipped),), quarantined=1))
    admit(p, *scan(message_set(magic, content, GZIP)))
    assert (queued(p), p.position) == ([n for n in range(100, 110) if n != skipped], 110)


def test_a_record_too_large_is_offered_alone() -> None:
    p = resumed(ROW, limits=TargetLimits(300))
    admit(p, batch([*records(0, 2), record(2, bytes(900)), *records(3, 1)]))
    assert p.refusal is not None
    assert p.refusal.ranges == ((2, 2),)


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
    admit(p, batch(records(0, 2)), batch(records(2, 2)), batch(records(4, 4)))
    assert queued(p) == expected
    assert p.row().upstream == 7
    assert p.row().skips == (), "what is behind us is forgotten"


def test_a_broken_batch_that_is_quarantined_whole_is_passed_over() -> None:
    broken = bytearray(batch(records(2, 2)).data)
    broken[-1] ^= 1
    p = resumed(replace(ROW, skips=((2, 3),)))
    admit(p, batch(records(0, 2)), *scan(bytes(broken)), batch(records(4, 1)))
    assert queued(p) == [0, 1, 4]


def test_resume_count_leaves_out_quarantined_records() -> None:
    row = replace(ROW, skips=((1, 1),))
    p = resumed(row, LastAppend(1, 1))  # offsets 0 and 2 are there
    admit(p, batch(records(0, 4)))
    assert queued(p) == [3]


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_quarantined_partition_resumes_and_a_leaving_one_leaves(goes_on: bool) -> None:
    p = resumed(ROW)
    refusal = refused_record(next(iter(read_records(batch(records(0, 1))))), "no")
    assert phase_after(p, Refused(reported("no"), refusal)) is Phase.DRAINING
    assert (p.row().reason, p.refusal, p.quarantined_entries) == ("no", refusal, 0)
    p.step(EntryQuarantined())
    assert p.quarantined_entries == 1
    row = replace(p.row(), skips=refusal.ranges, producer_epoch=2)
    if goes_on:
        p.step(Leave(goes_on=True))
        assert phase_after(p, Quarantined(row)) is Phase.DRAINING, "it does not resume, to copy where it is to leave"
        assert phase_after(p, AllAnswered()) is Phase.RELEASED
    else:
        assert phase_after(p, Quarantined(row)) is Phase.RESUMING
    assert (p.row().reason, p.refusal, p.row().skips) == ("", None, refusal.ranges)


def test_quarantine_of_a_partition_that_is_to_rest_reads_the_target() -> None:
    p = resumed(ROW)
    p.step(Refused(reported("no")))
    p.step(Leave("paused"))
    p.step(Quarantined(None))
    assert phase_after(p, AllAnswered()) is Phase.RESUMING
    assert p.resolves_end
