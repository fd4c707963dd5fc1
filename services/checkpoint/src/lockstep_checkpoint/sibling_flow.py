"""Read what other flows to the same target report of the topics and groups that they have there too."""

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
    """Keeps the rows of another flow, which are on our target. A flow that never ran has no topic, and no copies."""

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
        """What the flow feeds, with the fold, its position and `ours` that say so. A round asks for each of thousands
        of groups."""
        self._lost: set[str] = set()
        """Topics of the target that the flow fed by rows that are gone with their topic."""
        self.has_run = False
        """Rows of it were read, or other topics of it are on the target."""
        self.ours: Mapping[str, str] = {}
        """Topics of the target that our flow feeds, with the id of the source's topic."""

    def contested(self, group: str, checkpoints: Iterable[Checkpoint]) -> dict[TopicPartition, Reason]:
        """Return where a checkpoint would skip records of the other flow, or may, each with the reason."""
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
        return {(checkpoint.topic, checkpoint.partition): reason for checkpoint in checkpoints}

    def _find_fed(self, fold: StateFold) -> Mapping[str, int]:
        before, position, ours, fed = self._fed
        if before is not fold or (position, ours) != (fold.position, self.ours):
            rows = list(fold.all(MirroredTopic))
            if before is not fold:
                self._lost |= fed.keys()
            self._lost -= {row.target_topic for row in rows}
            self._fed = fold, fold.position, self.ours, fed_topics(rows, self.ours)
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
    """The other flows to the target of a flow that keeps names. Each may write to our topics and move our groups. Those
    of other files are known by their state topics, as far as these can be seen."""

    def __init__(self, ctx: FlowContext, topics: Iterable[str]) -> None:
        """`topics`: the state topics of the flows of the file that may merge with ours."""
        self._ctx = ctx
        self._own = state_topic(ctx.flow, ctx.settings.group_id)
        self.flows = {topic: SiblingFlow(ctx, topic) for topic in topics}
        """By their state topics."""
        self._came = asyncio.Event()

    async def run(self) -> None:
        """Follow all of them until cancelled, also those that are seen later. Raises what ends one."""
        following: dict[str, asyncio.Future[None]] = {}
        try:
            while True:
                self._came.clear()
                for topic, flow in self.flows.items():
                    if topic not in following:
                        following[topic] = asyncio.ensure_future(flow.run())
                came = asyncio.ensure_future(self._came.wait())
                waiting: set[asyncio.Future[Any]] = {came, *following.values()}
                ended, _ = await asyncio.wait(waiting, return_when="FIRST_COMPLETED")
                came.cancel()
                for task in ended - {came}:
                    task.result()
        finally:
            await cancelled(following.values())

    def observe(self, topics: Collection[str]) -> None:
        """Take in which topics the target has now."""
        if not self._ctx.settings.keeps_names:
            return
        for topic in topics:
            if is_state_topic(topic) and topic != self._own and topic not in self.flows:
                self.flows[topic] = SiblingFlow(self._ctx, topic)
                self._came.set()
        ours = {row.target_topic: row.source_topic_id for row in self._ctx.state.all(MirroredTopic)}
        for topic, flow in self.flows.items():
            flow.has_run |= not companion_topics(topic).isdisjoint(topics)
            flow.ours = ours

    def contested(self, group: str, checkpoints: Collection[Checkpoint]) -> dict[TopicPartition, Reason]:
        """Return where a checkpoint would skip records of one of them, or may, each with the reason."""
        reasons: dict[TopicPartition, Reason] = {}
        for flow in self.flows.values():
            reasons |= flow.contested(group, checkpoints)
        return reasons


def fed_topics(rows: Iterable[MirroredTopic], ours: Mapping[str, str]) -> dict[str, int]:
    """Return the topics of the target that a flow with these rows feeds, with their number of partitions.

    `ours`: the id of the source's topic by the topic of the target. With the same id the other flow copies the same log
    as ours, and brings no records of another source. An instance of before with another `group.id` does so.
    """
    return {
        row.target_topic: row.source_partitions
        for row in rows
        if row.is_selected and not (row.source_topic_id and ours.get(row.target_topic) == row.source_topic_id)
    }


def find_contested(
    checkpoints: Iterable[Checkpoint], fed: Mapping[str, int], theirs: GroupStatus | None, flow: str
) -> Iterator[tuple[TopicPartition, Reason]]:
    """Yield where the group may not go to its checkpoint, because the topic has records of another flow too.

    `fed`: as `fed_topics` of the other flow. `theirs`: that flow's row of the group, whose places are before the first
    record of that flow which the group has not read. `flow`: what the other flow is called.
    """
    places: dict[TopicPartition, int] = {}
    if theirs is not None and theirs.is_placed and not theirs.more_waiting:
        waits = {(topic, number) for topic, number, _ in theirs.waits}
        places = {(topic, n): down for topic, n, _, down in theirs.positions if (topic, n) not in waits}
    for checkpoint in checkpoints:
        where = checkpoint.topic, checkpoint.partition
        if checkpoint.partition < fed.get(checkpoint.topic, 0) and checkpoint.downstream > places.get(where, -1):
            sibling_offset = places.get(where)
            details = {} if sibling_offset is None else {"text": f"it is at {sibling_offset} by that flow"}
            yield where, ReasonCode.CONTESTED.to_reason(flow=flow, offset=checkpoint.downstream, **details)
