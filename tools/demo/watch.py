"""Sees how far the mirroring is: end offsets of both clusters, and what stands in the control topics."""

import time
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from lockstep_state.codecs.mm2_codec import Checkpoint, decode_checkpoint, decode_heartbeat
from lockstep_state.names import Flow, state_topic
from lockstep_state.rows.state_rows import PartitionProgress, decode_row
from tools.demo.actors import LateReader
from tools.demo.scene import FLOWS, SHOP, client, remote
from tools.demo.screen import FlowLine, TopicLine

HEARTBEATS = "heartbeats"
RATE_OVER_SECONDS = 3.0
LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # confluent-kafka leaves it unannotated

NOT_YET = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError._NOENT,  # librdkafka's own: none of those asked for has a leader
)
"""What is said of a partition that was created a moment ago."""

Ends = dict[tuple[str, int], int]


def partition_lag(source_end: int, target_end: int, progress: PartitionProgress | None) -> int:
    """Return how many records of a partition the target does not have yet.

    The written progress is up to a second old. What the target's log has grown by since then came from upstream, so
    the present position is known to the record, unless the source has gaps: then the answer is too high until
    progress is written again.
    """
    if progress is None:
        return max(0, source_end - target_end)
    upstream = progress.upstream + max(0, target_end - 1 - progress.downstream)
    return max(0, source_end - 1 - upstream)


class Watch:
    """Both clusters from outside. Not thread-safe: `look` is called by one thread, again and again."""

    def __init__(self, bootstrap: Mapping[str, str]) -> None:
        self._admins = {alias: AdminClient(client(address)) for alias, address in bootstrap.items()}
        self._controls = {flow: _Control(flow, bootstrap[flow.target]) for flow in FLOWS}
        self._history: dict[tuple[Flow, str], deque[tuple[float, int]]] = {}

    def read_status(self) -> tuple[tuple[TopicLine, ...], tuple[FlowLine, ...]]:
        """Return the present state. Raises KafkaException if a cluster is silent, ValueError for a malformed row."""
        now = time.monotonic()
        source_ends, target_ends = {}, {}
        for flow in FLOWS:
            topics = SHOP[flow.source]
            target_ends[flow] = self._ends(flow.target, [(remote(flow, t.name), t.partitions) for t in topics])
            source_ends[flow] = self._ends(flow.source, [(t.name, t.partitions) for t in topics])
            self._controls[flow].catch_up()
        lines = [
            self._line(flow, topic.name, topic.partitions, source_ends[flow], target_ends[flow], now)
            for flow in FLOWS
            for topic in SHOP[flow.source]
        ]
        return tuple(lines), tuple(self._controls[flow].line(time.time()) for flow in FLOWS)

    def checkpoints(self, flow: Flow, group: str) -> dict[int, Checkpoint]:
        """Return the last checkpoint of each partition of a group. The demo's group has one topic."""
        return {
            partition: checkpoint
            for (name, _, partition), checkpoint in self._controls[flow].checkpoints.items()
            if name == group
        }

    def copied_to(self, flow: Flow, topic: str, partition: int) -> int:
        """Return the last upstream offset known to be on the target, as Lockstep wrote it down; -1: none."""
        progress = self._controls[flow].progress.get((topic, partition))
        return -1 if progress is None else progress.upstream

    def close(self) -> None:
        for control in self._controls.values():
            control.close()

    def _ends(self, alias: str, topics: Iterable[tuple[str, int]]) -> Ends:
        """Return end offsets; 0 for what does not exist yet."""
        admin = self._admins[alias]
        existing = admin.list_topics(timeout=10).topics
        wanted = [TopicPartition(name, p) for name, partitions in topics for p in range(partitions)]
        led = [tp for tp in wanted if tp.topic in existing and tp.partition in existing[tp.topic].partitions]
        ends = {(tp.topic, tp.partition): 0 for tp in wanted}
        if led:
            asked = admin.list_offsets(dict.fromkeys(led, LATEST), request_timeout=10)
            ends |= {(tp.topic, tp.partition): _offset(future) for tp, future in asked.items()}
        return ends

    def _line(
        self, flow: Flow, topic: str, partitions: int, source_ends: Ends, target_ends: Ends, now: float
    ) -> TopicLine:
        lag_records = lag_ms = 0
        for partition in range(partitions):
            progress = self._controls[flow].progress.get((topic, partition))
            source_end, target_end = source_ends[topic, partition], target_ends[remote(flow, topic), partition]
            behind = partition_lag(source_end, target_end, progress)
            lag_records += behind
            if behind and progress is not None:
                lag_ms = max(lag_ms, progress.lag_ms)
        total = sum(target_ends[remote(flow, topic), partition] for partition in range(partitions))
        rate = self._rate(flow, topic, total, now)
        source_total = sum(source_ends[topic, partition] for partition in range(partitions))
        return TopicLine(str(flow), topic, source_total, total, lag_records, lag_ms, rate)

    def _rate(self, flow: Flow, topic: str, total: int, now: float) -> float:
        seen = self._history.setdefault((flow, topic), deque())
        seen.append((now, total))
        while len(seen) > 2 and now - seen[0][0] > RATE_OVER_SECONDS:
            seen.popleft()
        (then, before) = seen[0]
        return (total - before) / (now - then) if now > then else 0.0


def _offset(asked: Future[ListOffsetsResultInfo]) -> int:
    try:
        return int(asked.result().offset)
    except KafkaException as exc:
        if exc.args[0].code() in NOT_YET:
            return 0
        raise


class _Control:
    """What the control topics of one flow say, folded as they are read."""

    def __init__(self, flow: Flow, bootstrap: str) -> None:
        self.progress: dict[tuple[str, int], PartitionProgress] = {}
        self.checkpoints: dict[tuple[str, str, int], Checkpoint] = {}
        self._flow = flow
        self._checkpoints_read = 0
        self._checkpoint_at = self._heartbeat_at = 0
        self._reader = LateReader(bootstrap, (state_topic(flow), HEARTBEATS, f"{flow.source}.checkpoints.internal"))

    def catch_up(self) -> None:
        """Read what has been written since the last time."""
        while messages := self._reader.consume(500, 0.02):
            for message in messages:
                error = message.error()
                if error is None:
                    self._fold(message)
                elif error.fatal():
                    raise KafkaException(error)

    def line(self, now: float) -> FlowLine:
        def age(at_ms: int) -> int | None:
            return max(0, int(now * 1000) - at_ms) if at_ms else None

        halted = tuple(
            f"{row.topic}-{row.partition}: {row.reason}" for row in self.progress.values() if row.phase == "halted"
        )
        checkpoint_age = age(self._checkpoint_at)
        return FlowLine(str(self._flow), age(self._heartbeat_at), self._checkpoints_read, checkpoint_age, halted)

    def close(self) -> None:
        self._reader.close()

    def _fold(self, message: Message) -> None:
        key, value = message.key(), message.value()
        if message.topic() == state_topic(self._flow):
            row = decode_row(key or b"", value)
            if isinstance(row, PartitionProgress):
                self.progress[row.topic, row.partition] = row
        elif message.topic() == HEARTBEATS:
            heartbeat = decode_heartbeat(key, value)
            if Flow(heartbeat.source, heartbeat.target) == self._flow:
                self._heartbeat_at = heartbeat.timestamp_ms
        else:
            checkpoint = decode_checkpoint(key, value)
            self.checkpoints[checkpoint.group, checkpoint.topic, checkpoint.partition] = checkpoint
            self._checkpoints_read += 1
            self._checkpoint_at = message.timestamp()[1]
