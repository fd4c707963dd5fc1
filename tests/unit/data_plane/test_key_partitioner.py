"""Where records go whose keys choose their partitions (`key_partitioner.py`). The hash itself:
`test_java_wire_formats.py`."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.core.key_partitioner import STICKS_BYTES, BatchGroup, KeyPartitioner, StickyPartition
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.layout import scan
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import RecordTooLarge, read_records
from lockstep_state.codecs.murmur2 import partition_for
from tests.support.batch_bytes import GZIP, LZ4, record, records

PARTITIONS = 4
keys = st.one_of(st.none(), st.binary(max_size=12))


def gathered(*batches: list[PlainRecord], codecs: tuple[int, ...] = (0, 0, 0), begin: int = 0) -> KeyPartitioner:
    gathering, sticky = KeyPartitioner(-1), StickyPartition(begin)
    for batch, codec in zip(batches, codecs, strict=False):
        gathering.add_records(batch, codec, PARTITIONS, sticky)
        gathering.cover(batch[-1].offset, 5)
    return gathering


def found(group: BatchGroup) -> dict[int, list[PlainRecord]]:
    """By partition of the target, what goes there; each with its offset in the source."""
    there: dict[int, list[PlainRecord]] = {}
    for outgoing in group.outgoing_batches:
        (batch,) = scan(outgoing.data)
        assert outgoing.count == batch.record_count == len(outgoing.offsets)
        content = zip(read_records(batch), outgoing.offsets, strict=True)
        there.setdefault(outgoing.target_partition, []).extend(r._replace(offset=offset) for r, offset in content)
    return there


@given(st.lists(keys, min_size=1, max_size=30), st.integers(1, 29), st.sampled_from([(0, 0), (0, LZ4), (LZ4, GZIP)]))
def test_each_record_goes_once_where_javas_producer_puts_it_in_order(
    chosen: list[bytes | None], cut: int, codecs: tuple[int, int]
) -> None:
    content = [
        record(7 + n, b"v%d" % n, key=key, timestamp=1000 - n, headers=(("h", None), ("h", b"%d" % n)))
        for n, key in enumerate(chosen)
    ]
    parts = [part for part in (content[:cut], content[cut:]) if part]
    group = gathered(*parts, codecs=codecs).group(TargetLimits())
    assert (group.covers, group.leader_epoch) == (content[-1].offset, 5)
    partitions = found(group)
    everything = sorted((r for found_there in partitions.values() for r in found_there), key=lambda r: r.offset)
    assert [r._replace(headers=tuple(r.headers)) for r in everything] == content
    for to, records_there in partitions.items():
        assert [r.offset for r in records_there] == sorted(r.offset for r in records_there)
        assert {partition_for(r.key, PARTITIONS) for r in records_there if r.key is not None} <= {to}


def test_a_key_may_be_empty() -> None:
    [(to, _)] = found(gathered([record(0, key=b"")]).group(TargetLimits())).items()
    assert to == partition_for(b"", PARTITIONS)


def test_the_codec_stays_and_another_one_begins_another_batch() -> None:
    group = gathered(records(0, 3), records(3, 2), records(5, 2), codecs=(LZ4, LZ4, 0)).group(TargetLimits())
    assert [(outgoing.count, next(scan(outgoing.data)).attributes) for outgoing in group.outgoing_batches] == [
        (5, LZ4),
        (2, 0),
    ]


def test_sticky_partition_keeps_keyless_records_together_and_rotates() -> None:
    sticky, places = StickyPartition(2), Counter[int]()
    for first in range(0, 400, 10):
        gathering = KeyPartitioner(first - 1)
        batch = [record(first + n, b"v" * (STICKS_BYTES // 20 + 1), key=None) for n in range(10)]
        gathering.add_records(batch, 0, PARTITIONS, sticky)
        [to] = {spread_batch.target_partition for spread_batch in gathering.spread}
        places[to] += 1
    assert places == dict.fromkeys(range(PARTITIONS), 10)


def test_each_partition_of_the_source_begins_with_another_one() -> None:
    assert [StickyPartition(number).current(PARTITIONS) for number in range(6)] == [0, 1, 2, 3, 0, 1]


def test_a_record_too_large_is_named_and_what_lies_before_it_can_go() -> None:
    gathering = gathered([record(0), record(1, b"v" * 500), record(2)])
    with pytest.raises(RecordTooLarge) as raised:
        gathering.group(TargetLimits(300))
    assert raised.value.record.offset == 1
    gathering.drop_from(1)
    group = gathering.group(TargetLimits(300))
    assert (group.covers, sum(outgoing.count for outgoing in group.outgoing_batches)) == (0, 1)
