"""A flow with a transform under two faults at once, compared with a computation that shares no code with it."""

# ruff: noqa: S608  # Spark has no data here but the record's

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from lockstep_state.rows.state_rows import SeenEnds, SourceEnds
from tests.conftest import Pair
from tests.integration.test_delayed_copy import Arrivals
from tests.integration.transform.test_transform_flow import (
    KEEPS,
    NUMBER,
    WITHIN,
    mirrored,
    topic_of,
    wait_made,
)
from tests.support.broker import Broker
from tests.support.cluster_profile import ClusterProfile
from tests.support.clusters import Record, create_topic, produce, produce_transaction, read_topic
from tests.support.commands import lockstep
from tests.support.eventually import wait_until
from tests.support.known_clusters import OF_TRANSACTIONS
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.proxy import Proxy
from tests.support.services import COPY_ONLY
from tests.support.spark_cluster import SparkCluster
from tests.support.topic_comparison import compare
from tests.support.traffic import Traffic

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

MARKED = "SELECT concat('#', CAST(value AS STRING)) AS value FROM records WHERE"
EVERY_SECOND = f"{MARKED} {KEEPS['every second'][0]}"


def marked(is_kept: Callable[[int], bool]) -> Callable[[Record], Record | None]:
    """What `MARKED` leaves of `Traffic`."""

    def make(record: Record) -> Record | None:
        value = record.value or b""
        return replace(record, value=b"#" + value) if is_kept(int(value.split()[1])) else None

    return make


every_second = marked(KEEPS["every second"][1])


def unhalted(flow: MirroredFlow, topic: str) -> None:
    assert flow.events("PartitionHalted", topic) == []
    assert flow.events("ForeignWrite", flow.remote(topic)) == []


@pytest.mark.parametrize("keeps", KEEPS)
def test_slot_dies_while_both_clusters_are_frozen(pair: Pair, tmp_path: Path, keeps: str) -> None:
    condition, is_kept = KEEPS[keeps]
    dice = random.Random(keeps)
    with mirrored(pair, tmp_path, f"lockstep.transform.pii.sql = {MARKED} {condition}") as mirror:
        flow, topic = mirror.flow, topic_of(mirror, 2)
        with Traffic(flow.source, topic, partitions=2, rate=400) as traffic:
            flow.wait_mirrored(topic, partitions=2, within=WITHIN)
            wait_until(lambda: len(flow.progress(topic)) == 2, within=WITHIN, what="both partitions are copied")
            for kills in (False, True):
                traffic.wait_for_more(300)
                time.sleep(dice.uniform(0, 0.7))
                worker = mirror.copying_worker(within=WITHIN)
                for broker in (pair.a, pair.b):
                    broker.suspend()
                try:
                    if kills:
                        worker.kill()
                    time.sleep(12)
                finally:
                    for broker in (pair.b, pair.a):
                        broker.resume()
            traffic.wait_for_more(300)
        wait_made(flow, topic, marked(is_kept), partitions=2)
        unhalted(flow, topic)


def test_jvm_that_stood_still_is_killed_and_so_is_the_next_driver(pair: Pair, tmp_path: Path) -> None:
    """Longer than an evaluation may take: a machine that stood still is no statement that never ends."""
    with mirrored(pair, tmp_path, f"lockstep.transform.pii.sql = {EVERY_SECOND}") as mirror:
        flow, topic = mirror.flow, topic_of(mirror, 2)
        with Traffic(flow.source, topic, partitions=2, rate=300):
            flow.wait_for_more(topic, 200, within=WITHIN)
            jvm = mirror.jvm()
            jvm.suspend()
            time.sleep(25)
            jvm.resume()
            flow.wait_for_more(topic, 200, within=WITHIN)
            jvm.suspend()
            time.sleep(3)
            jvm.kill()
            mirror.data_plane.wait(60)
            mirror.data_plane.start()
            time.sleep(4)
            mirror.kill_data_plane()
            mirror.data_plane.start()
            flow.wait_for_more(topic, 200, within=WITHIN)
        wait_made(flow, topic, every_second, partitions=2)
        unhalted(flow, topic)


def _version(number: int) -> str:
    return f"SELECT concat('{number} ', CAST(value AS STRING)) AS value FROM records WHERE {NUMBER} % 5 <> 3"


def _change(mirror: Mirror) -> None:
    text = mirror.config.read_text()
    assert text.count(_version(1)) == 1
    mirror.config.write_text(text.replace(_version(1), _version(2)))


def _has_jvm(mirror: Mirror) -> bool:
    return any(process.name() == "java" for process in mirror.processes())


def _made(record: Record, version: int) -> Record | None:
    value = record.value or b""
    return None if int(value.split()[1]) % 5 == 3 else replace(record, value=b"%d " % version + value)


def test_version_changes_under_load_while_slots_are_killed(pair: Pair, tmp_path: Path) -> None:
    with mirrored(pair, tmp_path, f"lockstep.transform.pii.sql = {_version(1)}") as mirror:
        flow, topic = mirror.flow, topic_of(mirror, 2)
        with Traffic(flow.source, topic, partitions=2, rate=300) as traffic:
            flow.wait_for_more(topic, 300, within=WITHIN)
            mirror.data_plane.stop()
            _change(mirror)
            traffic.wait_for_more(100)
            mirror.data_plane.start()
            wait_until(lambda: _has_jvm(mirror), within=WITHIN, what="Spark starts")
            for _ in range(2):
                mirror.copying_worker(within=WITHIN).kill()
            flow.wait_for_more(topic, 200, within=WITHIN)
            mirror.kill_data_plane()
            mirror.data_plane.start()
            flow.wait_for_more(topic, 200, within=WITHIN)
        firsts = {event.subject: int(event.detail["first"]) for event in flow.events("TransformChanged", topic)}
        assert len(firsts) == 2

        def make(record: Record) -> Record | None:
            return _made(record, 1 if (record.offset or 0) < firsts[f"{topic}-{record.partition}"] else 2)

        copy = wait_made(flow, topic, make, partitions=2)
        assert {(record.value or b"")[:2] for record in copy} == {b"1 ", b"2 "}
        unhalted(flow, topic)


def test_version_that_changes_with_a_kill_is_exact_or_in_doubt(pair: Pair, tmp_path: Path) -> None:
    """The former version cannot be asked any more. What is there stays as it was, each record once."""
    with mirrored(pair, tmp_path, f"lockstep.transform.pii.sql = {_version(1)}") as mirror:
        flow, topic = mirror.flow, topic_of(mirror, 2)
        with Traffic(flow.source, topic, partitions=2, rate=500):
            flow.wait_for_more(topic, 500, within=WITHIN)
            mirror.kill_data_plane()
            _change(mirror)
            mirror.data_plane.start()

            def is_decided() -> bool:
                subjects = [
                    event.subject for kind in ("TransformChanged", "PartitionHalted") for event in flow.events(kind)
                ]
                return {f"{topic}-0", f"{topic}-1"} <= set(subjects)

            wait_until(is_decided, within=WITHIN, every=0.5, what="each partition goes on or is in doubt")
        firsts = {event.subject: int(event.detail["first"]) for event in flow.events("TransformChanged", topic)}
        halted = {event.subject for event in flow.events("PartitionHalted", topic)}
        assert firsts.keys() & halted == set()
        assert {row.case for row in flow.progress(topic).values()} <= {"", "in-doubt"}
        source = read_topic(flow.source, topic)
        for number in (0, 1):
            first = firsts.get(f"{topic}-{number}", 1 << 62)
            log = [record for record in source if record.partition == number]
            wanted = [made for r in log if (made := _made(r, 1 if (r.offset or 0) < first else 2)) is not None]

            def is_exact(number: int = number, wanted: list[Record] = wanted) -> bool:
                copied = [record for record in flow.copy_of(topic) if record.partition == number]
                whole = len(copied) == len(wanted) or f"{topic}-{number}" in halted
                return whole and compare(wanted[: len(copied)], copied).equal

            wait_until(is_exact, within=WITHIN, every=0.5, what=f"partition {number} has each record once")


def test_statement_that_never_ends_halts_its_partition_and_no_other(pair: Pair, tmp_path: Path) -> None:
    numbers = "sequence(0, if(contains(CAST(value AS STRING), 'slow'), 60000, 1))"
    slow = f"aggregate({numbers}, 0L, (a, x) -> a + aggregate({numbers}, CAST(x AS BIGINT), (b, y) -> b + y))"
    with mirrored(pair, tmp_path, f"lockstep.transform.pii.sql = SELECT value FROM records WHERE {slow} > 0") as mirror:
        flow, topic = mirror.flow, topic_of(mirror, 3)
        fine = [Record(value=b"%d" % n, partition=n % 3) for n in range(300)]
        produce(flow.source, topic, [*fine, Record(value=b"slow", partition=0)])
        halted = flow.wait_event("PartitionHalted", topic, within=WITHIN)
        assert halted.subject == f"{topic}-0"
        assert halted.detail["cause"]["code"] == "transform-unavailable"
        mirror.copying_worker(within=WITHIN).kill()
        more = [Record(value=b"%d" % n, partition=n % 3) for n in range(300, 330)]
        produce(flow.source, topic, more)

        def others_are_whole() -> bool:
            source = [record for record in read_topic(flow.source, topic) if record.partition]
            return compare(source, [record for record in flow.copy_of(topic) if record.partition]).equal

        wait_until(others_are_whole, within=WITHIN, every=0.5, what="the other partitions go on")
        assert all(record.value != b"slow" for record in flow.copy_of(topic))


HOSTILE: list[tuple[bytes, bytes | None]] = [
    (b'{"a":"x","b":1}', b'{"a":"***","b":1}'),
    (b'{"a":"x","a":"y"}', b'{"a":"***","a":"***"}'),
    (b'{"\\u0061":"x", "a" : 7}', b'{"\\u0061":"***", "a" : 0}'),
    (b'{"a":"\xff\xfe","c":"\xc3("}', b'{"a":"***","c":"\xc3("}'),
    (b'{"b":' + b"[" * 900 + b"]" * 900 + b',"a":true}', b'{"b":' + b"[" * 900 + b"]" * 900 + b',"a":false}'),
    (b"[" * 5000 + b"]" * 5000, None),
    (b'{"a":"x"', None),
    (b'{"a":"x"} trailing', None),
    (b"\x00\x01\xff", None),
    (b'{"b":"' + b"x" * 10_000_000 + b'","a":"secret"}', b'{"b":"' + b"x" * 10_000_000 + b'","a":"***"}'),
    (b'{"a":null}', b'{"a":null}'),
]
"""Values, and what is left of them with `a` masked; None: the record fails."""


def test_hostile_values_through_kills_of_slot_and_driver(pair: Pair, tmp_path: Path) -> None:
    lines = (
        "lockstep.transform.pii.sql = SELECT json_mask(value, '$.a', 'mask') AS value FROM records",
        "lockstep.transform.pii.on.error = quarantine-metadata",
    )
    with mirrored(pair, tmp_path, *lines) as mirror:
        flow, large = mirror.flow, {"max.message.bytes": "16000000"}
        topic = create_topic(flow.source, f"{flow.flow.source[1:]}-hostile", configs=large)
        content = [(value, made, n) for n, (value, made) in enumerate(HOSTILE * 2)]
        each = {"linger.ms": "0", "message.max.bytes": "16000000"}
        for part, kill in ((content[:8], "slot"), (content[8:16], "driver"), (content[16:], "")):
            records = [Record(key=b"%d" % n, value=value, timestamp_ms=1_700_000_000_000 + n) for value, _, n in part]
            produce(flow.source, topic, records, settings=each)
            flow.wait_mirrored(topic, within=WITHIN)
            if kill == "slot":
                mirror.copying_worker(within=WITHIN).kill()
            elif kill:
                mirror.kill_data_plane()
                mirror.data_plane.start()
        wanted = {b"%d" % n: made for _, made, n in content if made is not None}

        def is_whole() -> bool:
            copied = [(record.key or b"", record.value) for record in flow.copy_of(topic)]
            assert copied == list(wanted.items())
            return True

        wait_until(is_whole, within=WITHIN, every=1.0, what="what can be masked is there, once and in order")
        unhalted(flow, topic)
        row = flow.wait_written_down(topic, within=WITHIN)[0]
        assert row.quarantined == len(content) - len(wanted)


def test_transactions_on_the_target_with_kills(pair: Pair, tmp_path: Path) -> None:
    lines = ("TARGET.exactly.once.source.support = enabled", f"lockstep.transform.pii.sql = {EVERY_SECOND}")
    with mirrored(pair, tmp_path, *lines) as mirror:
        flow, topic = mirror.flow, topic_of(mirror, 2)
        with Traffic(flow.source, topic, partitions=2, rate=300) as traffic:
            for _ in range(2):
                mirror.kill_while_copying(traffic, topic, within=WITHIN)
        wait_committed(flow, topic)
        unhalted(flow, topic)
        assert {row.transactional for row in flow.progress(topic).values()} == {True}


def wait_committed(flow: MirroredFlow, topic: str) -> None:
    """All that `EVERY_SECOND` leaves is there for readers of committed records, each once and in order."""
    wanted = [made for record in read_topic(flow.source, topic) if (made := every_second(record)) is not None]

    def equal() -> bool:
        comparison = compare(wanted, read_topic(flow.target, flow.remote(topic), isolation="read_committed"))
        assert comparison.equal, comparison
        return True

    wait_until(equal, within=WITHIN, every=0.5, what=f"{topic} is copied")


def test_log_that_is_read_back_with_kills(broker_a: Broker, broker_b: Broker, proxy_b: Proxy, tmp_path: Path) -> None:
    proxy_b.answer_as(ClusterProfile(forgets_producers=True, absent=OF_TRANSACTIONS))
    try:
        mark = f"rb{uuid.uuid4().hex[:6]}"
        lines = [
            f"lockstep.transform.pii.topics = {mark}-.*",
            f"lockstep.transform.pii.sql = {EVERY_SECOND}",
            *COPY_ONLY,
        ]
        a, b = (broker_a.bootstrap,) * 2, (broker_b.bootstrap, proxy_b.bootstrap)
        with Mirror.one_flow(tmp_path, mark, a, b, *lines) as mirror:
            flow, topic = mirror.flow, topic_of(mirror, 2)
            with Traffic(flow.source, topic, partitions=2, rate=300) as traffic:
                mirror.kill_while_copying(traffic, topic, within=WITHIN)
            wait_made(flow, topic, every_second, partitions=2)
            unhalted(flow, topic)
            assert [event.detail["mode"] for event in flow.events("AppendModeChosen")] == ["read-back"]
    finally:
        proxy_b.answer_as(ClusterProfile())


def test_delay_with_a_statement_through_kills_is_never_early(pair: Pair, tmp_path: Path) -> None:
    delay_s = 8
    lines = (f"lockstep.transform.pii.sql = {EVERY_SECOND}", f"lockstep.delay = {delay_s}s")
    with mirrored(pair, tmp_path, *lines) as mirror:
        flow, topic = mirror.flow, topic_of(mirror, 2)
        flow.wait_mirrored(topic, partitions=2, within=WITHIN)
        with Arrivals(flow.target, flow.remote(topic), 2) as arrivals:
            with Traffic(flow.source, topic, partitions=2, rate=200) as traffic:
                mirror.kill_while_copying(traffic, topic, within=WITHIN)
            copy = wait_made(flow, topic, every_second, partitions=2)
            wait_until(lambda: arrivals.count == len(copy), within=WITHIN, what="the reader has seen all of it")
        assert arrivals.least_ms >= delay_s * 1000
        unhalted(flow, topic)


def test_committed_records_with_a_statement_end_exactly_before_a_time(pair: Pair, tmp_path: Path) -> None:
    lines = (
        f"lockstep.transform.pii.sql = {EVERY_SECOND}",
        "lockstep.delay = 25s",
        "SOURCE.consumer.isolation.level = read_committed",
    )
    with mirrored(pair, tmp_path, *lines) as mirror:
        flow, topic = mirror.flow, topic_of(mirror)
        flow.wait_mirrored(topic, within=WITHIN)

        def write(first: int, *, commit: bool) -> None:
            numbers = range(first, first + 40)
            produce_transaction(flow.source, topic, [Record(value=b"r %d" % n) for n in numbers], commit=commit)

        for first, commit in ((0, True), (40, False), (80, True)):
            write(first, commit=commit)
        end = 3 * 41

        def seen() -> int:
            row = next((row for row in flow.rows(SeenEnds) if row.topic == topic), None)
            return row.ends[-1][0] if row is not None and row.ends else -1

        wait_until(lambda: seen() == end, within=WITHIN, every=0.2, what="all of it was seen")
        time.sleep(0.01)
        moment_ms = round(time.time() * 1000)
        write(200, commit=True)

        def is_checked() -> bool:
            return max((row.asked_ms for row in flow.rows(SourceEnds)), default=0) >= moment_ms

        wait_until(is_checked, within=WITHIN, every=0.2, what="the source was checked")
        lockstep("stop", mirror.config, f"topic:{topic}", "--flow", str(flow), "--before", str(moment_ms))
        mirror.kill_data_plane()
        mirror.data_plane.start()

        def rests() -> bool:
            row = flow.progress(topic).get(0)
            return row is not None and row.phase == "stopped" and row.upstream >= end - 2

        wait_until(rests, within=WITHIN, every=0.2, what="the copy has ended")
        kept = [n for n in (*range(40), *range(80, 120)) if n % 4 < 2]
        assert [record.value for record in flow.copy_of(topic)] == [b"#r %d" % n for n in kept]
        lockstep("resume", mirror.config, f"topic:{topic}", "--flow", str(flow))
        kept += [n for n in range(200, 240) if n % 4 < 2]

        def is_whole() -> bool:
            return [record.value for record in flow.copy_of(topic)] == [b"#r %d" % n for n in kept]

        wait_until(is_whole, within=WITHIN, every=0.5, what="it goes on")


def test_four_workers_of_spark_lose_a_worker_an_executor_and_the_driver(pair: Pair, tmp_path: Path) -> None:
    with SparkCluster(workers=4, cores=1) as cluster:
        lines = (
            f"lockstep.spark.master = {cluster.master}",
            cluster.secret_line,
            f"lockstep.transform.pii.sql = {EVERY_SECOND}",
        )
        with mirrored(pair, tmp_path, *lines, slots=2) as mirror:
            flow, topic = mirror.flow, topic_of(mirror, 4)
            ports = (pair.a.port, pair.b.port)

            def slots() -> list[psutil.Process] | None:
                running = cluster.slots(*ports)
                return running if len(running) == 2 else None

            with Traffic(flow.source, topic, partitions=4, rate=300):
                flow.wait_for_more(topic, 200, within=WITHIN)
                slot = wait_until(slots, within=WITHIN, what="two slots copy")[0]
                next(each for each in slot.parents() if each.name() == "java").kill()
                flow.wait_for_more(topic, 200, within=WITHIN)
                wait_until(slots, within=WITHIN, what="two slots copy again")
                next(worker for worker in cluster.workers if worker.slots(*ports)).kill()
                mirror.kill_data_plane()
                mirror.data_plane.start()
                flow.wait_for_more(topic, 200, within=WITHIN)
            wait_made(flow, topic, every_second, partitions=4)
            unhalted(flow, topic)
