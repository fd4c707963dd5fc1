"""A flow with a transform, from topic to topic, compared with a computation in Python that shares no code with it."""

# ruff: noqa: S608  # Spark has no data here but the record's

import hashlib
import hmac
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from pathlib import Path

import pytest
from confluent_kafka import Producer

from lockstep_data_plane.transform.jvm_socket import listening_sockets
from lockstep_state.names import events_topic, quarantine_topic, state_topic
from lockstep_state.rows.state_rows import SlotStatus, Transform
from tests.conftest import Pair
from tests.support.clusters import Record, create_topic, end_offsets, produce, read_topic, unique_name
from tests.support.commands import lockstep
from tests.support.eventually import wait_until
from tests.support.metrics import TRANSFORMING, read_page, values, wait_for_value
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.services import COPY_ONLY
from tests.support.spark_cluster import SparkCluster
from tests.support.topic_comparison import compare
from tests.support.traffic import Traffic
from tools.bench.orders import Orders

SALT = b"a salt that nobody may see"
MASKED = "json_mask(value, '$.customer.name', 'hash_salted') AS value"
DEAR = "json_int(value, '$.items[0].price_cents') > 12600"
WITHIN = 120.0


def orders(first: int, count: int, partitions: int = 1) -> list[Record]:
    made = Orders.drawn()
    return [
        Record(
            key=made.key(n),
            value=made.value(n),
            headers=(("n", b"%d" % n),),
            timestamp_ms=1_700_000_000_000 + n,
            partition=n % partitions,
        )
        for n in range(first, first + count)
    ]


def masked(record: Record) -> Record:
    """The order with its customer's name replaced, by Python's own JSON, HMAC and text."""
    value = record.value or b""
    name = json.loads(value)["customer"]["name"]
    token = hmac.new(SALT, name.encode(), hashlib.sha256).hexdigest()
    return replace(record, value=value.replace(f'"name":"{name}"}}'.encode(), f'"name":"{token}"}}'.encode(), 1))


def is_dear(record: Record) -> bool:
    return bool(json.loads(record.value or b"")["items"][0]["price_cents"] > 12600)


@contextmanager
def mirrored(pair: Pair, folder: Path, *lines: str, slots: int = 1) -> Iterator[Mirror]:
    """A flow with these lines, in which SOURCE and TARGET stand for the aliases."""
    mark = unique_name("transformed").replace("-", "")
    (folder / "secrets").write_bytes(b"salt=" + SALT)
    provider = "org.apache.kafka.common.config.provider.FileConfigProvider"
    words = {"SOURCE": f"s{mark}", "TARGET": f"t{mark}", "SALT": f"${{file:{folder / 'secrets'}:salt}}"}
    common = [
        "config.providers = file",
        f"config.providers.file.class = {provider}",
        f"lockstep.transform.pii.topics = {mark}-.*",
        *COPY_ONLY,
        *(reduce(lambda text, word: text.replace(*word), words.items(), line) for line in lines),
    ]
    a, b = (pair.a.bootstrap,) * 2, (pair.b.bootstrap,) * 2
    with Mirror.one_flow(folder, mark, a, b, *common, slots=slots) as mirror:
        yield mirror


def topic_of(mirror: Mirror, partitions: int = 1) -> str:
    return create_topic(mirror.flow.source, f"{mirror.flow.flow.source[1:]}-orders", partitions=partitions)


def wait_made(
    flow: MirroredFlow, topic: str, make: Callable[[Record], Record | None], *, partitions: int = 1
) -> list[Record]:
    """Return the copy once it is what `make` makes of every record of the source, each once and in order."""
    source = read_topic(flow.source, topic)
    wanted = [made for record in source if (made := make(record)) is not None]
    flow.wait_mirrored(topic, partitions=partitions, within=WITHIN)

    def is_whole() -> bool:
        ends, rows = end_offsets(flow.source, topic), flow.progress(topic)
        return len(rows) == len(ends) and all(rows[n].upstream == end - 1 for n, end in ends.items() if end)

    wait_until(is_whole, within=WITHIN, every=0.25, what=f"all of {topic} is decided")
    copy = flow.copy_of(topic)
    comparison = compare(wanted, copy)
    assert comparison.equal, comparison
    return copy


def test_orders_are_filtered_and_masked(pair: Pair, tmp_path: Path) -> None:
    lines = (
        f"lockstep.transform.pii.sql = SELECT {MASKED} FROM records WHERE {DEAR}",
        "lockstep.transform.pii.salt = SALT",
    )
    with mirrored(pair, tmp_path, *lines) as mirror:
        flow = mirror.flow
        topic = topic_of(mirror, 3)
        produce(flow.source, topic, orders(0, 3000, 3), settings={"compression.type": "lz4"})
        produce(flow.source, topic, [Record(key=b"gone", value=None, partition=1)])
        produce(flow.source, topic, orders(3000, 300, 3))

        def make(record: Record) -> Record | None:
            if record.value is None:
                return record  # tombstones pass a filter
            return masked(record) if is_dear(record) else None

        copy = wait_made(flow, topic, make, partitions=3)
        assert 0.2 < len(copy) / 3301 < 0.8
        (row,) = flow.rows(Transform)
        assert (row.name, row.refused, row.secrets, row.written) == ("pii", "", ("salt",), ("value",))
        assert {progress.transform for progress in flow.progress(topic).values()} == {row.transform_version}
        wait_until(lambda: _counted(flow) == (3301, len(copy)), within=30, what="all is counted")
        wait_for_value(mirror.data_plane, 3301, "lockstep_transform_records_in_total", transform="pii")
        page = read_page(mirror.data_plane.page("/metrics")[1])
        assert page.keys() >= TRANSFORMING
        assert values(page, "lockstep_transform_records_out_total", transform="pii") == [len(copy)]
        text = (
            mirror.data_plane.text()
            + repr(flow.rows(Transform))
            + repr(read_topic(flow.target, state_topic(flow.flow)))
        )
        assert SALT.decode() not in text


def _counted(flow: MirroredFlow) -> tuple[int, int]:
    counts = [count for row in flow.rows(SlotStatus) for count in row.transforms]
    return sum(count[2] for count in counts), sum(count[3] for count in counts)


@pytest.mark.long
def test_aborted_transactions_are_not_evaluated(pair: Pair, tmp_path: Path) -> None:
    """One of their records is no JSON: it would halt the partition."""
    lines = (
        f"lockstep.transform.pii.sql = SELECT {MASKED} FROM records",
        "lockstep.transform.pii.salt = SALT",
        "SOURCE.consumer.isolation.level = read_committed",
    )
    with mirrored(pair, tmp_path, *lines) as mirror:
        flow, topic = mirror.flow, topic_of(mirror)
        producer = Producer({"bootstrap.servers": flow.source, "transactional.id": topic, "linger.ms": "5"})
        producer.init_transactions(60)
        for n, commits in enumerate((True, False, True, False)):
            producer.begin_transaction()
            for order in orders(10 * n, 10):
                value = order.value if commits else b"no JSON"
                producer.produce(topic, key=order.key, value=value, timestamp=order.timestamp_ms or 0)
            if commits:
                producer.commit_transaction(60)
            else:
                producer.abort_transaction(60)
        produce(flow.source, topic, orders(100, 5))
        copy = wait_made_committed(flow, topic)
        assert len(copy) == 25


def wait_made_committed(flow: MirroredFlow, topic: str) -> list[Record]:
    wanted = [masked(record) for record in read_topic(flow.source, topic, isolation="read_committed")]

    def equal() -> list[Record]:
        copy = flow.copy_of(topic)
        comparison = compare(wanted, copy)
        assert comparison.equal, comparison
        return copy

    flow.wait_mirrored(topic, within=WITHIN)
    return wait_until(equal, within=WITHIN, every=0.25, what=f"{topic} is copied")


NUMBER = "CAST(split_part(CAST(value AS STRING), ' ', 2) AS BIGINT)"
KEEPS: dict[str, tuple[str, Callable[[int], bool]]] = {
    "every second": (f"{NUMBER} % 4 < 2", lambda n: n % 4 < 2),
    "none": (f"{NUMBER} < 0", lambda n: False),
    "all": (f"{NUMBER} >= 0", lambda n: True),
}
"""What is left of `Traffic`, as SQL and as Python."""


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("keeps", KEEPS)
def test_nothing_is_lost_or_doubled_when_slot_jvm_and_driver_are_killed(pair: Pair, tmp_path: Path, keeps: str) -> None:
    condition, is_kept = KEEPS[keeps]
    statement = f"SELECT concat('#', CAST(value AS STRING)) AS value FROM records WHERE {condition}"
    dice = random.Random(keeps)
    with mirrored(pair, tmp_path, f"lockstep.transform.pii.sql = {statement}") as mirror:
        flow, topic = mirror.flow, topic_of(mirror, 2)

        def make(record: Record) -> Record | None:
            value = record.value or b""
            return replace(record, value=b"#" + value) if is_kept(int(value.split()[1])) else None

        with Traffic(flow.source, topic, partitions=2, rate=400):
            flow.wait_mirrored(topic, partitions=2, within=WITHIN)
            for kind in ("slot", "JVM", "driver", "slot"):
                flow.wait_for_more(topic, 200, within=WITHIN)
                time.sleep(dice.uniform(0, 0.7))
                if kind == "slot":
                    mirror.copying_worker(within=WITHIN).kill()
                    continue
                if kind == "JVM":
                    mirror.jvm().kill()
                    mirror.data_plane.wait(60)
                else:
                    mirror.kill_data_plane()
                mirror.data_plane.start()
            flow.wait_for_more(topic, 100, within=WITHIN)
        wait_made(flow, topic, make, partitions=2)
        assert not flow.events("PartitionHalted", topic)


@pytest.mark.long
def test_a_socket_that_is_gone_is_waited_for_and_nothing_is_copied_as_it_is(pair: Pair, tmp_path: Path) -> None:
    lines = (f"lockstep.transform.pii.sql = SELECT {MASKED} FROM records", "lockstep.transform.pii.salt = SALT")
    with mirrored(pair, tmp_path, *lines) as mirror:
        flow, topic = mirror.flow, topic_of(mirror)
        socket = wait_until(
            lambda: dict(listening_sockets()).get(mirror.jvm().pid), within=WITHIN, what="the plugin listens"
        )
        folder, away = socket.parent, socket.parent.with_name("away")
        folder.rename(away)
        produce(flow.source, topic, orders(0, 50))
        flow.wait_mirrored(topic, within=WITHIN)

        def waits() -> bool:
            return any(part == "transforms" for row in flow.rows(SlotStatus) for part, _ in row.causes)

        wait_until(waits, within=WITHIN, what="the slot says that it waits")
        assert flow.copy_of(topic) == []
        away.rename(folder)
        wait_made(flow, topic, masked)
        assert not flow.events("PartitionHalted", topic)


BAD = b'{"customer": {"name": "a name that nobody may see"'


def _with_bad(flow: MirroredFlow, topic: str) -> list[Record]:
    records: Sequence[Record] = orders(0, 10)
    bad = Record(key=b"the key", value=BAD, headers=(("h", b"1"),), timestamp_ms=1_700_000_000_999)
    produce(flow.source, topic, [*records[:5], bad, *records[5:]])
    return [masked(record) for record in records]


def _shows_nothing(flow: MirroredFlow, mirror: Mirror, *topics: str) -> None:
    """Not in what is copied, nor in quarantine, rows, events and logs."""
    shown = [*topics, state_topic(flow.flow), events_topic(flow.flow)]
    text = mirror.data_plane.text() + "".join(repr(read_topic(flow.target, name)) for name in shown)
    assert "nobody may see" not in text


def test_a_record_that_cannot_be_masked_halts_its_partition(pair: Pair, tmp_path: Path) -> None:
    lines = (f"lockstep.transform.pii.sql = SELECT {MASKED} FROM records", "lockstep.transform.pii.salt = SALT")
    with mirrored(pair, tmp_path, *lines) as mirror:
        flow, topic = mirror.flow, topic_of(mirror)
        wanted = _with_bad(flow, topic)
        halted = flow.wait_event("PartitionHalted", topic, within=WITHIN)
        assert halted.detail["cause"]["code"] == "record-not-transformed"
        assert halted.detail["cause"]["details"]["first"] == 5
        wait_until(lambda: compare(wanted[:5], flow.copy_of(topic)).equal, within=30, what="what is before it")
        _shows_nothing(flow, mirror, flow.remote(topic))


@pytest.mark.long
@pytest.mark.parametrize(
    ("policy", "others", "kept"),
    [
        ("quarantine", "", (b"the key", (("h", b"1"),))),
        ("quarantine", ", coalesce(nullif(key, X'00'), key) AS key", (None, (("h", b"1"),))),
        ("quarantine-metadata", "", (None, ())),
    ],
)
def test_a_record_that_cannot_be_masked_goes_to_quarantine_without_its_value(
    pair: Pair, tmp_path: Path, policy: str, others: str, kept: tuple[bytes | None, tuple[tuple[str, bytes], ...]]
) -> None:
    """Nor with its key, if the statement makes that anew too: it may be what is masked."""
    lines = (
        f"lockstep.transform.pii.sql = SELECT {MASKED}{others} FROM records",
        "lockstep.transform.pii.salt = SALT",
        f"lockstep.transform.pii.on.error = {policy}",
    )
    with mirrored(pair, tmp_path, *lines) as mirror:
        flow, topic = mirror.flow, topic_of(mirror)
        wanted = _with_bad(flow, topic)
        wait_until(lambda: compare(wanted, flow.copy_of(topic)).equal, within=WITHIN, every=0.25, what="all others")
        quarantine = quarantine_topic(flow.flow)
        (entry,) = read_topic(flow.target, quarantine)
        own = tuple((name, value) for name, value in entry.headers if not name.startswith("lockstep."))
        assert (entry.key, entry.value, own) == (kept[0], None, kept[1])
        assert dict(entry.headers)["lockstep.offset"] == b"5"
        assert b"JSON_MALFORMED" in (dict(entry.headers)["lockstep.reason"] or b"")
        _shows_nothing(flow, mirror, flow.remote(topic), quarantine)


def test_a_statement_that_does_not_compile_copies_nothing(pair: Pair, tmp_path: Path) -> None:
    refused, mended = "SELECT rand() AS value FROM records", "SELECT value FROM records"
    with mirrored(pair, tmp_path, f"lockstep.transform.pii.sql = {refused}") as mirror:
        flow, topic = mirror.flow, topic_of(mirror)
        produce(flow.source, topic, orders(0, 10))
        halted = flow.wait_event("PartitionHalted", topic, within=WITHIN)
        assert halted.detail["cause"]["code"] == "transform-unavailable"
        (row,) = flow.rows(Transform)
        assert row.refused
        assert flow.copy_of(topic) == []
        wait_until(lambda: 0 in flow.progress(topic), within=WITHIN, what="the partition has a row")
        progress = flow.progress(topic)[0]
        assert (progress.phase, progress.case, progress.begins) == ("halted", "transform", "reset")
        wait_for_value(mirror.data_plane, 1, "lockstep_halted_partitions", case="transform")
        status = json.loads(lockstep("status", mirror.config, "--flow", str(flow), "--output", "json", code=1))
        # Heartbeats topics of other tests may be on the same brokers.
        partitions, topics = (
            [line for line in status["flows"][0][section] if line["topic"] == topic]
            for section in ("partitions", "topics")
        )
        assert [(line["state"], line["case"]) for line in partitions] == [("halted", "transform")]
        assert [line["halted"] for line in topics] == [1]
        mirror.data_plane.stop()
        mirror.config.write_text(mirror.config.read_text().replace(refused, mended))
        mirror.data_plane.start()
        wait_made(flow, topic, lambda record: record)


def _prefixed(number: int) -> str:
    return f"SELECT concat('{number} ', CAST(value AS STRING)) AS value FROM records WHERE {NUMBER} % 5 <> 3"


def _change(mirror: Mirror) -> None:
    text = mirror.config.read_text()
    assert text.count(_prefixed(1)) == 1
    mirror.config.write_text(text.replace(_prefixed(1), _prefixed(2)))


def _by_version(flow: MirroredFlow, topic: str) -> Callable[[Record], Record | None]:
    """What both versions make, by the offset of the event."""
    firsts = {event.subject: int(event.detail["first"]) for event in flow.events("TransformChanged", topic)}
    assert len(firsts) == 2, "each partition has changed once"

    def make(record: Record) -> Record | None:
        number = int((record.value or b"").split()[1])
        version = 1 if (record.offset or 0) < firsts[f"{topic}-{record.partition}"] else 2
        return None if number % 5 == 3 else replace(record, value=b"%d " % version + (record.value or b""))

    return make


@pytest.mark.long
@pytest.mark.timeout(600)
def test_another_version_begins_at_the_offset_of_its_event(pair: Pair, tmp_path: Path) -> None:
    with mirrored(pair, tmp_path, f"lockstep.transform.pii.sql = {_prefixed(1)}") as mirror:
        flow, topic = mirror.flow, topic_of(mirror, 2)
        with Traffic(flow.source, topic, partitions=2, rate=300) as traffic:
            flow.wait_mirrored(topic, partitions=2, within=WITHIN)
            flow.wait_for_more(topic, 300, within=WITHIN)
            mirror.data_plane.stop()
            _change(mirror)
            traffic.wait_for_more(100)
            mirror.data_plane.start()
            flow.wait_for_more(topic, 300, within=WITHIN)
        copy = wait_made(flow, topic, _by_version(flow, topic), partitions=2)
        assert {(record.value or b"")[:2] for record in copy} == {b"1 ", b"2 "}
        assert not flow.events("PartitionHalted", topic)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_executors_of_a_standalone_cluster_evaluate(pair: Pair, tmp_path: Path) -> None:
    """The jar and the plugin come to them by Spark's settings."""
    with SparkCluster(workers=4, cores=1) as cluster:
        lines = (
            f"lockstep.spark.master = {cluster.master}",
            cluster.secret_line,
            f"lockstep.transform.pii.sql = SELECT {MASKED} FROM records WHERE {DEAR}",
            "lockstep.transform.pii.salt = SALT",
        )
        with mirrored(pair, tmp_path, *lines) as mirror:
            flow, topic = mirror.flow, topic_of(mirror, 3)
            produce(flow.source, topic, orders(0, 900, 3), settings={"compression.type": "zstd"})
            wait_made(flow, topic, lambda record: masked(record) if is_dear(record) else None, partitions=3)
            assert any(worker.executors() for worker in cluster.workers)
