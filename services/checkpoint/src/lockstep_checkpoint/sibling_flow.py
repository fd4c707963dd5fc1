"""Read what another flow to the same target reports of the topics and groups that both flows have there."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lockstep_config.flow import client_settings
from lockstep_protocol.mm2_codec import Checkpoint
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.reason import Reason
from lockstep_protocol.reason_catalogue import ReasonCode
from lockstep_protocol.rows.state_rows import GroupStatus, MalformedRow, MirroredTopic
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.kafka.compacted_topic import CompactedTopic
from lockstep_runtime.kafka.control_topics import ControlTopic
from lockstep_runtime.kafka.topic_reader import Record
from lockstep_runtime.state.state_fold import StateFold

WANTS = frozenset({GroupStatus, MirroredTopic})


class SiblingFlow(CompactedTopic[StateFold]):
    """Keeps the rows of the other flow, which are on our target. A flow that never ran has no topic, and no copies."""

    def __init__(self, ctx: FlowContext, topic: str) -> None:
        self._unreadable = ctx.unreadable
        super().__init__(
            ctx.target,
            lambda: client_settings.target_consumer(ctx.settings, "checkpoint-sibling"),
            ControlTopic(topic, 1, -1),
            ctx.log,
            ctx.rounds.troubles,
            name=f"rows of another flow to {ctx.flow.target} in {topic}",
            optional=True,
        )
        self._fed: tuple[StateFold | None, int, Mapping[str, int]] = (None, -1, {})
        """What the flow feeds, with the fold and its position that say so: a round asks for each of thousands of
        groups."""

    def contested(self, group: str, checkpoints: Iterable[Checkpoint]) -> dict[TopicPartition, Reason]:
        """Return where a checkpoint would skip records of the other flow, or may, each with the reason."""
        if self.is_missing:
            return {}
        if self.fold is None:
            reason = ReasonCode.CONTEST_UNKNOWN.to_reason(text=self.trouble)
            return {(checkpoint.topic, checkpoint.partition): reason for checkpoint in checkpoints}
        fed = self._find_fed(self.fold)
        return dict(find_contested(checkpoints, fed, self.fold.get(GroupStatus, group), self.topic))

    def _find_fed(self, fold: StateFold) -> Mapping[str, int]:
        if self._fed[0] is not fold or self._fed[1] != fold.position:
            self._fed = fold, fold.position, fed_topics(fold.all(MirroredTopic))
        return self._fed[2]

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
                self._unreadable.was_read(record)


def fed_topics(rows: Iterable[MirroredTopic]) -> dict[str, int]:
    """Return the topics of the target that a flow with these rows feeds, with their number of partitions."""
    return {row.target_topic: row.source_partitions for row in rows if row.is_selected}


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
