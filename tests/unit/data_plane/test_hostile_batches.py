"""A batch with a right CRC and odd content is copied or refused. It never ends the slot, and takes little memory.

Both ways to read records, compiled and in plain Python, say the same of it."""

import os
import struct
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice, product
from zlib import crc32

import pytest
from google_crc32c import value as crc32c

from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.record_batch import coalesce, compiled_rebuild, layout, rebuild
from lockstep_data_plane.record_batch.classify import BatchAction, TargetLimits, classify
from lockstep_data_plane.record_batch.coalesce import next_outgoing
from lockstep_data_plane.record_batch.layout import (
    Batch,
    CorruptRecordError,
    OutgoingBatch,
    as_outgoing,
    scan,
    scan_groups,
)
from lockstep_data_plane.record_batch.rebuild import read_records
from tests.support.batch_bytes import COMPRESS, GZIP, LOG_APPEND_TIME, LZ4, ZSTD, batch, needs_compiled, record
from tests.support.hostile_batches import HostileBatches
from tests.support.message_sets import Message, message, sets
from tests.unit.data_plane.partition_steps import admit, copied, partition

SEEDS = [int(seed)] if (seed := os.environ.get("SEED")) else [1, 7, 57, 2026]
"""SEED=4711 tries another one. One that failed once stays here."""
LOGS = 150
"""So many of each seed."""
MIB = 1 << 20
LIMITS = (
    TargetLimits(),
    TargetLimits(codec=LZ4),
    TargetLimits(codec=ZSTD, recompress=True),
    TargetLimits(200),
    TargetLimits(split_above=100),
)


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_hostile_batches_are_copied_or_refused_by_their_offset(seed: int, grouped: bool) -> None:
    hostile, refused = HostileBatches(seed), 0
    for number in range(LOGS):
        data = hostile.log()
        p = partition(limits=LIMITS[number % len(LIMITS)])
        try:
            batches = list(scan_groups(data, any_producer=True) if grouped else scan(data))
        except CorruptRecordError:  # of a length: the fetch of this partition is refused
            continue
        admit(p, *batches, source_end=100)
        copied(p)
        struct.pack(">qq", p.fetch_from, p.row().upstream)
        assert p.phase in (Phase.COPYING, Phase.DRAINING), p.row().reason
        if p.phase is Phase.DRAINING:
            refused += 1
            assert "offset" in p.row().reason, p.row().reason
    assert refused > LOGS / 10


@pytest.mark.parametrize("seed", SEEDS)
def test_hostile_keyed_batches_are_copied_or_refused(seed: int) -> None:
    """They are read record by record."""
    hostile = HostileBatches(seed)
    for _ in range(LOGS):
        for source in _scanned(hostile.log()):
            try:
                records = list(read_records(source))
            except CorruptRecordError:
                continue
            offsets = [each.offset for each in records]
            assert offsets == sorted(set(offsets))
            if records:
                (outgoing,) = rebuild.build(records, 0, 2**31 - 1, -1)
                made = _scanned(bytes(outgoing.data))
                assert [each[1:] for each in read_records(made[0])] == [each[1:] for each in records]


def _scanned(data: bytes) -> list[Batch]:
    try:
        return list(scan(data))
    except CorruptRecordError:
        return []


def _in_plain_python(act: Callable[[], object]) -> object:
    with pytest.MonkeyPatch.context() as patch:
        for module in (rebuild, compiled_rebuild, layout):
            patch.setattr(module, "find_compiled", lambda: None)
        return _outcome(act)


def _outcome(act: Callable[[], object]) -> object:
    try:
        return act()
    except CorruptRecordError:
        return CorruptRecordError
    except rebuild.RecordTooLarge as exc:
        return exc.record


def _hostile(seed: int) -> Iterator[Batch]:
    hostile = HostileBatches(seed)
    while True:
        for source in _scanned(hostile.log()):
            action, _ = classify(source, 0, TargetLimits(), aborted=False)
            if action is not BatchAction.REFUSE:
                yield source


@needs_compiled
@pytest.mark.parametrize("seed", SEEDS)
def test_both_ways_to_read_and_rebuild_a_batch_make_the_same(seed: int) -> None:
    for number, source in enumerate(islice(_hostile(seed), 3 * LOGS)):
        for act in (_read_of(source), _rebuild_of(source, LIMITS[number % len(LIMITS)], number % 3)):
            assert _outcome(act) == _in_plain_python(act), bytes(source.data).hex()


@needs_compiled
@pytest.mark.parametrize("seed", SEEDS)
def test_both_ways_to_merge_batches_make_the_same(seed: int) -> None:
    passing = (
        source for source in _hostile(seed) if classify(source, 0, TargetLimits(), aborted=False)[0] is BatchAction.PASS
    )
    for _ in range(LOGS // 4):
        act = _merge_of([as_outgoing(source) for source in islice(passing, 2)])
        assert _outcome(act) == _in_plain_python(act)


def _read_of(source: Batch) -> Callable[[], object]:
    return lambda: list(read_records(source))


def _rebuild_of(source: Batch, limits: TargetLimits, after: int) -> Callable[[], object]:
    return lambda: [_content(each) for each in rebuild.rebuild(source, source.base_offset + after, limits)]


def _merge_of(group: list[OutgoingBatch]) -> Callable[[], object]:
    return lambda: _content(next_outgoing(deque(group), TargetLimits())[0])


def _content(outgoing: OutgoingBatch) -> object:
    return bytes(outgoing.data), list(outgoing.offsets), outgoing.covers


# -- one of each kind --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [TargetLimits(codec=LZ4), TargetLimits(split_above=100)])
@pytest.mark.parametrize("first", [-1, 0, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("name", ["h", "no-text"])
def test_times_at_both_ends_are_copied_as_java_counts_them(first: int, name: str, limits: TargetLimits) -> None:
    """Differences wrap. A first time of -1 and a later one that is the largest were an OverflowError once."""
    content = [
        record(place, b"v" * 40, timestamp=time, headers=((name, b"x"),))
        for place, time in enumerate((first, 2**63 - 1, -1, -(2**63), 5))
    ]
    source = with_right_crc(bytes(batch(content).data).replace(b"no-text", b"\xff\xfe-text"))
    times = [each.timestamp for each in content]
    assert [each.timestamp for each in read_records(source)] == times
    assert _in_plain_python(_read_of(source)) == list(read_records(source))
    p = partition(limits=limits)
    admit(p, source, source_end=100)
    outgoing = copied(p)
    assert p.phase is Phase.COPYING, p.row().reason
    assert [each.timestamp for sent in outgoing for each in read_records(_scanned(bytes(sent.data))[0])] == times


def with_right_crc(raw: bytes) -> Batch:
    (result,) = scan(raw[:17] + struct.pack(">I", crc32c(raw[21:])) + raw[21:])
    return result


def old_message(magic: int, codec: int, key_size: int) -> Batch:
    index = 26 if magic else 18
    raw = bytearray(message(magic, Message(0, b"k", b"v", 5)))
    raw[index : index + 4] = struct.pack(">i", key_size)
    raw[12:16] = struct.pack(">I", crc32(bytes(raw[16:])))
    (source,) = sets(message(magic, Message(0, None, COMPRESS[codec](bytes(raw)), 5), codec) if codec else bytes(raw))
    return source


def with_deltas(*deltas: int) -> Batch:
    """Records behind the last offset were copied once, and those of the next batches with their offsets passed over."""
    content = [record(delta) for delta in deltas]
    return batch(content, base_offset=0, last_offset=2, attributes=LOG_APPEND_TIME)


def with_count(count: int) -> Batch:
    raw = bytearray(batch([record(0), record(1)]).data)
    raw[57:61] = struct.pack(">i", count)
    return with_right_crc(bytes(raw))


KEY_SIZES = product((0, 1), (0, GZIP), (-2, -3, -(2**31), 2**31 - 1))
REFUSED = [
    *((old_message(*shape), "offsets from 0: ") for shape in KEY_SIZES),
    *((source, "offsets from 4: ") for source in sets(message(1, Message(4, None, COMPRESS[GZIP](b""), 5), GZIP))),
    *((with_deltas(*deltas), "offsets 0 to 2: ") for deltas in ((0, 2, 1), (0, 1, 1), (0, 1, 5))),
    *((with_count(count), "offsets 0 to 1: ") for count in (-1, -(2**31), 2**31 - 1)),
]


@pytest.mark.parametrize(("source", "reason"), REFUSED)
def test_batch_whose_numbers_cannot_be_right_is_refused(source: Batch, reason: str) -> None:
    p = partition()
    admit(p, source, source_end=100)
    assert p.phase is Phase.DRAINING
    assert p.row().reason.startswith(reason)
    assert _in_plain_python(_read_of(source)) is CorruptRecordError


def test_whatever_a_rebuild_raises_refuses_that_batch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> list[OutgoingBatch]:
        raise SystemError("of a library")

    monkeypatch.setattr("lockstep_data_plane.core.append_sequence.rebuild", fail)
    p = partition(limits=TargetLimits(codec=LZ4))
    admit(p, batch([record(0)]), source_end=100)
    assert p.phase is Phase.DRAINING
    assert p.row().reason == "offsets 0 to 0: SystemError('of a library')"
    assert p.refusal is not None
    assert p.refusal.ranges == ((0, 0),)


def test_whatever_merging_raises_sends_each_batch_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> OutgoingBatch:
        raise MemoryError

    monkeypatch.setattr(coalesce, "join_batches", fail)
    first, second = batch([record(0)]), batch([record(1)])
    waiting = deque((as_outgoing(first), as_outgoing(second)))
    assert next_outgoing(waiting, TargetLimits())[0].data == first.data
    assert next_outgoing(waiting, TargetLimits())[0].data == second.data
