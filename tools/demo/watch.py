"""Sees how far the mirroring is: end offsets of both clusters, and what stands in the control topics."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from confluent_kafka import KafkaException, Message

from lockstep_state.codecs.mm2_codec import Checkpoint, decode_checkpoint, decode_heartbeat
from lockstep_state.names import Flow, state_topic
from lockstep_state.rows.state_rows import PartitionProgress, decode_row
from tools.bench.wire import ends_of
from tools.demo.actors import LateReader
from tools.demo.scene import FLOWS, SHOP, remote
from tools.demo.screen import FlowLine, TopicLine

HEARTBEATS = "heartbeats"
RATE_OVER_SECONDS = 3.0


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
    """The state of both clusters, as a client of them sees it. For one thread."""

    def __init__(self, bootstrap: Mapping[str, str]) -> None:
        self._stack = ExitStack()
        self._controls = {flow: _Control(flow, bootstrap[flow.target]) for flow in FLOWS}
        for control in self._controls.values():
            self._stack.callback(control.close)
        self._topics = [
            _CopiedTopic(
                self._controls[flow],
                topic.name,
                self._stack.enter_context(ends_of(bootstrap[flow.source], topic.name, topic.partitions)),
                self._stack.enter_context(ends_of(bootstrap[flow.target], remote(flow, topic.name), topic.partitions)),
            )
            for flow in FLOWS
            for topic in SHOP[flow.source]
        ]

    def read_status(self) -> tuple[tuple[TopicLine, ...], tuple[FlowLine, ...]]:
        """Return the present state.

        Raises:
            KafkaException: A cluster does not answer. An OSError says the same.
            BrokerRefused: A broker does not say where a partition ends.
            ValueError: A row is malformed.
        """
        now = time.monotonic()
        ends = [topic.read_ends() for topic in self._topics]
        for control in self._controls.values():
            control.catch_up()
        topics = (topic.line(*pair, now) for topic, pair in zip(self._topics, ends, strict=True))
        return tuple(topics), tuple(control.line(time.time()) for control in self._controls.values())

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
        self._stack.close()


Ends = tuple[int, ...]
"""The end offset of each partition; 0 if it does not exist yet."""


class _CopiedTopic:
    """A topic of one flow: where its partitions and their copies end, and how fast the copy has grown lately."""

    def __init__(
        self, control: "_Control", name: str, source_ends: Callable[[], Ends], target_ends: Callable[[], Ends]
    ) -> None:
        self._control, self._name = control, name
        self._source_ends, self._target_ends = source_ends, target_ends
        self._history: deque[tuple[float, int]] = deque()

    def read_ends(self) -> tuple[Ends, Ends]:
        """Return the ends on the source and on the target. The target is asked first: no lag is less than it was."""
        target_ends = self._target_ends()
        return self._source_ends(), target_ends

    def line(self, source_ends: Ends, target_ends: Ends, now: float) -> TopicLine:
        lag_records = lag_ms = 0
        for partition, ends in enumerate(zip(source_ends, target_ends, strict=True)):
            progress = self._control.progress.get((self._name, partition))
            behind = partition_lag(*ends, progress)
            lag_records += behind
            if behind and progress is not None:
                lag_ms = max(lag_ms, progress.lag_ms)
        copied = sum(target_ends)
        flow = str(self._control.flow)
        return TopicLine(flow, self._name, sum(source_ends), copied, lag_records, lag_ms, self._rate(copied, now))

    def _rate(self, copied: int, now: float) -> float:
        history = self._history
        history.append((now, copied))
        while len(history) > 2 and now - history[0][0] > RATE_OVER_SECONDS:
            history.popleft()
        before, copied_before = history[0]
        return (copied - copied_before) / (now - before) if now > before else 0.0


class _Control:
    """What the control topics of one flow say, folded as they are read."""

    def __init__(self, flow: Flow, bootstrap: str) -> None:
        self.progress: dict[tuple[str, int], PartitionProgress] = {}
        self.checkpoints: dict[tuple[str, str, int], Checkpoint] = {}
        self.flow = flow
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
        return FlowLine(str(self.flow), age(self._heartbeat_at), self._checkpoints_read, checkpoint_age, halted)

    def close(self) -> None:
        self._reader.close()

    def _fold(self, message: Message) -> None:
        key, value = message.key(), message.value()
        if message.topic() == state_topic(self.flow):
            row = decode_row(key or b"", value)
            if isinstance(row, PartitionProgress):
                self.progress[row.topic, row.partition] = row
        elif message.topic() == HEARTBEATS:
            heartbeat = decode_heartbeat(key, value)
            if Flow(heartbeat.source, heartbeat.target) == self.flow:
                self._heartbeat_at = heartbeat.timestamp_ms
        else:
            checkpoint = decode_checkpoint(key, value)
            self.checkpoints[checkpoint.group, checkpoint.topic, checkpoint.partition] = checkpoint
            self._checkpoints_read += 1
            self._checkpoint_at = message.timestamp()[1]
