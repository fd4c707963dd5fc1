"""Both logs are read from brokers and compared: every kind of damage is found in its place, at each depth."""

from collections.abc import Callable

import pytest

from lockstep_data_plane.verify.batch_comparison import Depth
from lockstep_data_plane.verify.log_comparison import LogStretch, ReadLimit, compare_logs
from lockstep_data_plane.verify.offset_map import OffsetMap
from lockstep_data_plane.verify.partition_verifier import PartitionVerifier
from lockstep_data_plane.verify.record_alignment import TargetRules
from lockstep_kafka.wire.cluster import connect_cluster
from lockstep_rules.offsets.offset_runs import Run
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, end_offsets, produce, unique_name

COUNT = 1_000


@pytest.fixture
def brokers(broker_a: Broker, broker_b: Broker) -> tuple[Broker, Broker]:
    return broker_a, broker_b


def orders() -> list[Record]:
    return [
        Record(b"k%d" % n, b"order %d" % n, headers=(("a", b"%d" % n), ("b", b"x")), timestamp_ms=1_700_000_000_000 + n)
        for n in range(COUNT)
    ]


async def differences(
    brokers: tuple[Broker, Broker], copy: list[Record], *, depth: Depth = Depth.BYTES, codec: str = "lz4"
) -> PartitionVerifier:
    """A topic of A compared with one of B that holds `copy`."""
    a, b = brokers
    topic, remote = create_topic(a.bootstrap, unique_name("orders")), create_topic(b.bootstrap, unique_name("copy"))
    settings = {"linger.ms": "20", "batch.num.messages": "100"}
    produce(a.bootstrap, topic, orders(), codec=codec, settings=settings)
    produce(b.bootstrap, remote, copy, codec=codec, settings=settings)
    ends = end_offsets(a.bootstrap, topic)[0], end_offsets(b.bootstrap, remote)[0]
    offsets = OffsetMap([Run(0, 0, min(ends))])
    verifier = PartitionVerifier((0, 0), ends, depth, TargetRules(), offsets, lambda producer: True)
    one = connect_cluster("A", {"bootstrap.servers": a.bootstrap}, "test-source")
    other = connect_cluster("B", {"bootstrap.servers": b.bootstrap}, "test-target")
    try:
        await one.refresh([topic])
        await other.refresh([remote])
        stretches = LogStretch(one, (topic, 0), 0, ends[0]), LogStretch(other, (remote, 0), 0, ends[1])
        await compare_logs(verifier, *stretches, ReadLimit(None), lambda: True)
    finally:
        await one.close()
        await other.close()
    assert verifier.position == ends
    return verifier


def put(at: int, record: Callable[[Record], Record]) -> list[Record]:
    copy = orders()
    copy[at] = record(copy[at])
    return copy


def changed(one: Record, **parts: object) -> Record:
    known = {"key": one.key, "value": one.value, "headers": one.headers, "timestamp_ms": one.timestamp_ms}
    return Record(**{**known, **parts})  # type: ignore[arg-type]  # by name


@pytest.mark.parametrize("depth", [Depth.CRC, Depth.BYTES, Depth.RECORD])
@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
async def test_equal_logs_have_no_difference(brokers: tuple[Broker, Broker], depth: Depth, codec: str) -> None:
    verifier = await differences(brokers, orders(), depth=depth, codec=codec)
    assert (verifier.records, verifier.listed) == (COUNT, [])


@pytest.mark.parametrize(
    ("copy", "kind", "source", "target"),
    [
        (put(417, lambda r: changed(r, value=b"ordeR 417")), "value", 417, 417),
        (put(417, lambda r: changed(r, key=None)), "key", 417, 417),
        (put(417, lambda r: changed(r, timestamp_ms=1)), "timestamp", 417, 417),
        (put(417, lambda r: changed(r, headers=(("b", b"x"), ("a", b"417")))), "header-order", 417, 417),
        ([*orders()[:999]], "missing", 999, -1),
        ([*orders(), Record(b"more", b"more")], "extra", -1, 1000),
    ],
)
async def test_damage_in_a_log_is_located(
    brokers: tuple[Broker, Broker], copy: list[Record], kind: str, source: int, target: int
) -> None:
    verifier = await differences(brokers, copy)
    assert [(d.kind, d.source_offset, d.target_offset) for d in verifier.listed] == [(kind, source, target)]


async def test_missing_records_in_the_middle_are_all_named(brokers: tuple[Broker, Broker]) -> None:
    verifier = await differences(brokers, [*orders()[:300], *orders()[310:]])
    assert [d.source_offset for d in verifier.listed if d.kind == "missing"] == list(range(300, 310))
    assert verifier.differences == {"missing": 10, "offset": 1}


async def test_exchanged_records_are_out_of_order(brokers: tuple[Broker, Broker]) -> None:
    copy = orders()
    copy[500], copy[501] = copy[501], copy[500]
    verifier = await differences(brokers, copy)
    assert set(verifier.differences) == {"order"}


async def test_target_that_has_lost_everything_is_missing_whole(brokers: tuple[Broker, Broker]) -> None:
    verifier = await differences(brokers, [Record(b"k0", b"order 0", timestamp_ms=5)])
    assert verifier.records == 1
    assert verifier.differences["missing"] == COUNT - 1
