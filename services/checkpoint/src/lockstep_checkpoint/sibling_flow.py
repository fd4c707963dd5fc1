"""The rows of other flows to the same target about topics and groups that this flow has too."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lockstep_config.flow import client_settings
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.topics.control_topics import ControlTopic
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.state.compacted_topic import CompactedTopic
from lockstep_runtime.state.state_fold import StateFold
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.names import companion_topics, is_state_topic, state_topic
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import GroupStatus, MalformedRow, MirroredTopic

WANTS = frozenset({GroupStatus, MirroredTopic})


class SiblingFlow(CompactedTopic[StateFold]):
    """The rows of another flow to our target. A flow that never ran has no topic, and no copies."""

    def __init__(self, ctx: FlowContext, topic: str) -> None:
        self._unreadable = ctx.unreadable
        super().__init__(
            ctx.target,
            lambda: client_settings.target_consumer(ctx.settings, "checkpoint-sibling"),
            ControlTopic(topic, 1, -1),
            ctx.log,
            ctx.periodic.troubles,
            name=f"rows of another flow to {ctx.flow.target} in {topic}",
            optional=True,
        )
        self._fed: tuple[StateFold | None, int, Mapping[str, str], Mapping[str, int]] = (None, -1, {}, {})
        """The topics that the flow feeds, and the fold, position and `own_topics` from which they were computed. A
        round asks for each of thousands of groups."""
        self._lost: set[str] = set()
        """Topics of the target that the flow fed by rows that are gone with their state topic."""
        self.has_run = False
        """Rows of the flow were read, or other topics of it exist on the target."""
        self.own_topics: Mapping[str, str] = {}
        """The id of the source's topic, by topic of the target that our flow feeds."""

    def find_contested(self, group: str, checkpoints: Iterable[Checkpoint]) -> dict[TopicPartition, Reason]:
        """Return the partitions in which a checkpoint skips records of the other flow, or may, each with the reason."""
        if self.is_missing and not self.has_run:
            return {}
        if self.fold is None:
            return self._unknown(checkpoints, self.trouble)
        checkpoints = tuple(checkpoints)
        fed = self._find_fed(self.fold)
        lost = self._unknown(
            (checkpoint for checkpoint in checkpoints if checkpoint.topic in self._lost),
            f"{self.topic} has lost the rows of another flow",
        )
        return lost | dict(find_contested(checkpoints, fed, self.fold.get(GroupStatus, group), self.topic))

    def _unknown(self, checkpoints: Iterable[Checkpoint], text: str) -> dict[TopicPartition, Reason]:
        reason = ReasonCode.CONTEST_UNKNOWN.to_reason(text=text)
        return {checkpoint.tp: reason for checkpoint in checkpoints}

    def _find_fed(self, fold: StateFold) -> Mapping[str, int]:
        before, position, own_topics, fed = self._fed
        if before is not fold or (position, own_topics) != (fold.position, self.own_topics):
            rows = list(fold.all(MirroredTopic))
            if before is not fold:
                self._lost |= fed.keys()
            self._lost -= {row.target_topic for row in rows}
            self._fed = fold, fold.position, self.own_topics, fed_topics(rows, self.own_topics)
        return self._fed[3]

    def begin_fold(self) -> StateFold:
        self._unreadable.begin(self.topic)
        return StateFold(wants=WANTS)

    def apply(self, fold: StateFold, records: Sequence[Record]) -> None:
        for record in records:
            try:
                fold.fold(record.offset, record.key, record.value)
            except MalformedRow as exc:
                self._unreadable.pass_over(record, exc, stays=True)
            else:
                self.has_run = True
                self._unreadable.was_read(record)


class SiblingFlows:
    """The other flows to the target of a flow that keeps topic names. They may write to our topics and move our groups.

    Flows of other configuration files are found by their state topics, as far as these are visible.
    """

    def __init__(self, ctx: FlowContext, topics: Iterable[str]) -> None:
        """Follow the flows with these state topics, which the file says may merge with ours."""
        self._ctx = ctx
        self._own = state_topic(ctx.flow, ctx.settings.group_id)
        self.flows = {topic: SiblingFlow(ctx, topic) for topic in topics}
        """The flows by their state topics."""
        self._added = asyncio.Event()

    async def run(self) -> None:
        """Follow all flows, including those found later, until cancelled. Raises the error of the first that fails."""
        following: dict[str, asyncio.Future[None]] = {}
        try:
            while True:
                self._added.clear()
                for topic, flow in self.flows.items():
                    if topic not in following:
                        following[topic] = asyncio.ensure_future(flow.run())
                added = asyncio.ensure_future(self._added.wait())
                waiting: set[asyncio.Future[Any]] = {added, *following.values()}
                ended, _ = await asyncio.wait(waiting, return_when="FIRST_COMPLETED")
                added.cancel()
                for task in ended - {added}:
                    task.result()
        finally:
            await cancelled(following.values())

    def observe(self, topics: Collection[str]) -> None:
        """Take in the present topics of the target."""
        if not self._ctx.settings.keeps_names:
            return
        for topic in topics:
            if is_state_topic(topic) and topic != self._own and topic not in self.flows:
                self.flows[topic] = SiblingFlow(self._ctx, topic)
                self._added.set()
        own_topics = {row.target_topic: row.source_topic_id for row in self._ctx.state.all(MirroredTopic)}
        for topic, flow in self.flows.items():
            flow.has_run |= not companion_topics(topic).isdisjoint(topics)
            flow.own_topics = own_topics

    def find_contested(self, group: str, checkpoints: Collection[Checkpoint]) -> dict[TopicPartition, Reason]:
        """Return the partitions in which a checkpoint skips records of any other flow, or may, each with the reason."""
        reasons: dict[TopicPartition, Reason] = {}
        for flow in self.flows.values():
            reasons |= flow.find_contested(group, checkpoints)
        return reasons


def fed_topics(rows: Iterable[MirroredTopic], own_topics: Mapping[str, str]) -> dict[str, int]:
    """Return the topics of the target that a flow with these rows feeds, with their number of partitions.

    `own_topics` has the id of the source's topic by topic of the target. With the same id the other flow copies the
    same log as ours, such as an earlier instance with another `group.id`. It brings no records of another source.
    """
    return {
        row.target_topic: row.source_partitions
        for row in rows
        if row.is_selected and not (row.source_topic_id and own_topics.get(row.target_topic) == row.source_topic_id)
    }


def find_contested(
    checkpoints: Iterable[Checkpoint], fed: Mapping[str, int], sibling_row: GroupStatus | None, flow: str
) -> Iterator[tuple[TopicPartition, Reason]]:
    """Yield the partitions in which the group may not go to its checkpoint, as the topic has records of another flow.

    Args:
        checkpoints: The checkpoints of the group.
        fed: The topics of the other flow (`fed_topics`).
        sibling_row: The other flow's row of the group. Its offsets are before the first unread record of that flow.
        flow: The name of the other flow, for the reason.
    """
    sibling_offsets: dict[TopicPartition, int] = {}
    if sibling_row is not None and sibling_row.is_placed and not sibling_row.more_waiting:
        waits = {(topic, number) for topic, number, _ in sibling_row.waits}
        sibling_offsets = {(topic, n): down for topic, n, _, down in sibling_row.positions if (topic, n) not in waits}
    for checkpoint in checkpoints:
        tp = checkpoint.tp
        if checkpoint.partition < fed.get(checkpoint.topic, 0) and checkpoint.downstream > sibling_offsets.get(tp, -1):
            sibling_offset = sibling_offsets.get(tp)
            details = {} if sibling_offset is None else {"text": f"it is at {sibling_offset} by that flow"}
            yield tp, ReasonCode.CONTESTED.to_reason(flow=flow, offset=checkpoint.downstream, **details)
