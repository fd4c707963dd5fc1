"""A copy that is late on purpose: never earlier than its delay, and exact over kills and at the end of a stop."""

import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lockstep_config import load
from lockstep_data_plane.driver.driver import Driver
from lockstep_data_plane.driver.metrics_collector import MetricsCollector
from lockstep_data_plane.driver.source_monitor import SourceMonitor
from lockstep_state.names import Flow, state_topic
from lockstep_state.rows.state_rows import MirroredTopic, SeenEnds, SourceEnds
from tests.support.acting_context import acting_context
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, end_offsets, produce, produce_transaction, unique_name
from tests.support.commands import lockstep
from tests.support.eventually import eventually, wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.services import one_flow_file
from tests.support.traffic import Traffic

pytestmark = pytest.mark.long

WITHIN = 120.0


@contextmanager
def delayed(folder: Path, a: Broker, b: Broker, delay_s: int) -> Iterator[Mirror]:
    """Both services of a flow with a delay."""
    mark = uuid.uuid4().hex[:6]
    with Mirror.of_records(folder, mark, a, b, f"lockstep.delay = {delay_s}s") as mirror:
        yield mirror


def topic_of(mirror: Mirror, partitions: int = 1) -> str:
    return create_topic(mirror.flow.source, f"{mirror.flow.flow.source[1:]}-orders", partitions=partitions)


class Arrivals:
    """Reads a copy while it grows, and keeps the least age of a record when it arrived.

    The age counts from before the source accepted the record to after the target had it. So an age below the delay is
    a record that was copied too early, however slow this reader is.
    """

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": unique_name("arrivals"), "enable.auto.commit": "false"}
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"arrivals of {topic}", daemon=True)
        self.least_ms, self.count = float("inf"), 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopping.set()
        self._thread.join(30)
        self._consumer.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.least_ms = min(self.least_ms, time.time() * 1000 - message.timestamp()[1])
                self.count += 1


def test_delay_is_held_over_kills_of_slot_and_driver(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> None:
    delay_s, partitions = 8, 2
    with delayed(tmp_path, broker_a, broker_b, delay_s) as mirror:
        flow, topic = mirror.flow, topic_of(mirror, partitions)
        flow.wait_mirrored(topic, partitions=partitions)
        with (
            Arrivals(flow.target, flow.remote(topic), partitions) as arrivals,
            Traffic(flow.source, topic, partitions=partitions, rate=200) as traffic,
        ):
            for _ in range(2):
                mirror.kill_while_copying(traffic, topic, within=WITHIN)
            before = arrivals.count
            wait_until(lambda: arrivals.count > before, within=WITHIN, what="records arrive while others are written")
        with Arrivals(flow.target, flow.remote(topic), partitions) as rest:
            copied = flow.wait_copied(topic, within=WITHIN)
            wait_until(lambda: rest.count == len(copied), within=WITHIN, what="the reader has seen all of it")
    assert arrivals.count > 0
    assert min(arrivals.least_ms, rest.least_ms) >= delay_s * 1000


def test_log_that_nobody_has_seen_waits_from_now_on(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> None:
    """The records are older than the delay, but nobody knows: a wrong timestamp makes no record old."""
    delay_s = 6
    with delayed(tmp_path, broker_a, broker_b, delay_s) as mirror:
        flow, topic = mirror.flow, topic_of(mirror)
        began = time.time()
        produce(flow.source, topic, [Record(value=b"%d" % number, timestamp_ms=1_000) for number in range(500)])
        copy = wait_until(lambda: flow.mirrored(topic) and _copied(flow, topic), within=WITHIN, what="it is copied")
        assert time.time() - began >= delay_s
        assert copy == 500


def _copied(flow: MirroredFlow, topic: str) -> int:
    row = flow.mirrored(topic)
    if row is None or row.phase != "mirrored":
        return 0
    return sum(end_offsets(flow.target, flow.remote(topic)).values())


def test_copy_ends_exactly_before_a_time_also_after_a_kill_and_goes_on_then(
    tmp_path: Path, broker_a: Broker, broker_b: Broker
) -> None:
    delay_s, before, behind = 25, 300, 200
    with delayed(tmp_path, broker_a, broker_b, delay_s) as mirror:
        flow, topic = mirror.flow, topic_of(mirror)
        flow.wait_mirrored(topic)
        each = {"linger.ms": "0", "batch.num.messages": "7"}
        produce(flow.source, topic, [Record(value=b"%d" % number) for number in range(before)], settings=each)
        wait_until(lambda: _seen_end(flow, topic) == before, within=WITHIN, every=0.2, what="they were seen")
        time.sleep(0.01)
        moment_ms = round(time.time() * 1000)
        produce(flow.source, topic, [Record(value=b"late %d" % number) for number in range(behind)], settings=each)
        wait_until(lambda: _checked_ms(flow) >= moment_ms, within=WITHIN, every=0.2, what="the source was checked")
        stop = ("stop", mirror.config, f"topic:{topic}", "--flow", str(flow), "--before", str(moment_ms))
        planned = json.loads(lockstep(*stop, "--dry-run", "--output", "json"))
        assert planned["flows"][0]["arguments"]["ends"] == [[topic, 0, before]]
        assert f"{topic}-0  ends at {before}" in lockstep(*stop)
        mirror.kill_data_plane()
        mirror.data_plane.start()
        wait_until(lambda: _rests(flow, topic), within=WITHIN, every=0.2, what="the copy has ended")
        row = flow.progress(topic)[0]
        assert (row.upstream, row.located) == (before - 1, True)
        assert [record.value for record in flow.copy_of(topic)] == [b"%d" % number for number in range(before)]

        # The delay of the others is over, and they stay where they are.
        wait_until(lambda: _released(flow, topic) == before + behind, within=WITHIN, every=0.5, what="they are due")
        status = json.loads(lockstep("status", mirror.config, "--flow", str(flow), "--output", "json"))
        (line,) = status["flows"][0]["partitions"]
        assert (line["state"], line["end"], line["why"]) == ("stopped", before, f"it ends at {before}")
        assert _copied(flow, topic) == before
        mirror.kill_data_plane()
        mirror.data_plane.start()
        lockstep("resume", mirror.config, f"topic:{topic}", "--flow", str(flow))
        flow.wait_copied(topic, within=WITHIN)
        assert flow.progress(topic)[0].phase == "copying"


def test_time_that_the_copy_has_passed_is_refused(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> None:
    with delayed(tmp_path, broker_a, broker_b, 2) as mirror:
        flow, topic = mirror.flow, topic_of(mirror)
        flow.wait_mirrored(topic)
        wait_until(lambda: _checked_ms(flow), within=WITHIN, every=0.2, what="the empty log was seen")
        wait_until(lambda: _seen_end(flow, topic) == 0, within=WITHIN, every=0.2, what="the empty log was seen")
        time.sleep(0.01)
        moment_ms = round(time.time() * 1000)
        produce(flow.source, topic, [Record(value=b"%d" % number) for number in range(100)])
        flow.wait_copied(topic, within=WITHIN)
        stop = ("stop", mirror.config, "--flow", str(flow), "--before", str(moment_ms))
        said = lockstep(*stop, code=2)
        assert "100 offsets beyond its end" in said or "the oldest check that is remembered" in said
        assert flow.progress(topic)[0].phase == "copying"


async def test_open_transaction_is_noted_with_the_end_that_was_seen(
    tmp_path: Path, broker_a: Broker, broker_b: Broker
) -> None:
    """Records of committed transactions may be on both sides of such an end, and a copy does not end there."""
    mark = uuid.uuid4().hex[:6]
    flow, topic = Flow(f"s{mark}", f"t{mark}"), create_topic(broker_a.bootstrap, f"{mark}-orders", partitions=1)
    lines = (f"{flow.source}.consumer.isolation.level = read_committed", "lockstep.delay = 60s")
    path = one_flow_file(tmp_path, flow, mark, broker_a.bootstrap, broker_b.bootstrap, *lines)
    rows = MirroredFlow(flow, broker_a.bootstrap, broker_b.bootstrap)
    produce_transaction(broker_a.bootstrap, topic, [Record(value=b"done")] * 5)
    producer = Producer({"bootstrap.servers": broker_a.bootstrap, "transactional.id": unique_name("open")})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"open")
    producer.flush(60)
    async with acting_context("data-plane", load(path, {}).flow(flow), Driver.wants) as ctx:
        key, value = MirroredTopic(source_topic=topic, target_topic=f"A.{topic}", partitions=1).encode()
        produce(broker_b.bootstrap, state_topic(flow), [Record(key=key, value=value, partition=0)])
        await eventually(lambda: ctx.state.all(MirroredTopic), what="the topic is known")
        monitor = SourceMonitor(ctx, MetricsCollector(ctx, dict), 1)
        async with monitor.running():
            await eventually(lambda: _seen_end(rows, topic) == 6, every=0.2, what="five records and their marker")
            producer.commit_transaction(60)
            await eventually(lambda: _seen_end(rows, topic) == 8, every=0.2, what="the other one and its marker")
    seen = _seen(rows, topic)
    assert seen is not None
    assert [(end, is_whole) for end, _, is_whole in seen.ends] == [(6, False), (8, True)]


def _seen(flow: MirroredFlow, topic: str) -> SeenEnds | None:
    return next((row for row in flow.rows(SeenEnds) if row.topic == topic), None)


def _seen_end(flow: MirroredFlow, topic: str) -> int:
    row = _seen(flow, topic)
    return row.ends[-1][0] if row is not None and row.ends else -1


def _released(flow: MirroredFlow, topic: str) -> int:
    row = _seen(flow, topic)
    return 0 if row is None else row.released


def _checked_ms(flow: MirroredFlow) -> int:
    return max((row.asked_ms for row in flow.rows(SourceEnds)), default=0)


def _rests(flow: MirroredFlow, topic: str) -> bool:
    row = flow.progress(topic).get(0)
    return row is not None and row.phase == "stopped"
