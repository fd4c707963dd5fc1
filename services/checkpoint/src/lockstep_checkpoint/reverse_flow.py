"""What the flow in the opposite direction reports of its partitions: its state topic is on our source."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lockstep_checkpoint.group_sync import find_unread
from lockstep_checkpoint.offset_translator import ReverseTranslation
from lockstep_checkpoint.run_translator import RunTranslator
from lockstep_config.flow import client_settings
from lockstep_config.flow.mirroring_rules import checkpoint_rule
from lockstep_protocol.mm2_codec import Checkpoint
from lockstep_protocol.names import Flow
from lockstep_protocol.offsets import TopicPartition
from lockstep_protocol.rows.state_rows import GroupStatus, MalformedRow, MirroredTopic, OffsetRuns, PartitionProgress
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.kafka.compacted_topic import CompactedTopic
from lockstep_runtime.kafka.control_topics import ControlTopic
from lockstep_runtime.kafka.topic_reader import Record
from lockstep_runtime.state.state_fold import StateFold

WANTS = frozenset({GroupStatus, MirroredTopic, PartitionProgress, OffsetRuns})


class _State:
    """The rows that count, and what they say together."""

    def __init__(self) -> None:
        self.rows = StateFold(wants=WANTS)
        self.places = RunTranslator()


class ReverseFlow(CompactedTopic[_State]):
    """Keeps the places of the flow from our target to our source. A flow that never ran has no topic, which is no
    trouble."""

    def __init__(self, ctx: FlowContext, topic: str) -> None:
        self._rule = checkpoint_rule(ctx.settings)
        super().__init__(
            ctx.source,
            lambda: client_settings.source_consumer(ctx.settings, "checkpoint-opposite"),
            ControlTopic(topic, 1, -1),
            ctx.log,
            ctx.rounds.troubles,
            name=f"rows of {Flow(ctx.flow.target, ctx.flow.source)}",
            optional=True,
        )

    def translation(self) -> ReverseTranslation:
        """What is known of it now."""
        if self.fold is not None:
            return ReverseTranslation(self.fold.places)
        return ReverseTranslation(trouble="" if self.is_missing else self.trouble)

    def unread(
        self, group: str, checkpoints: Iterable[Checkpoint], *, failover: bool = False
    ) -> frozenset[TopicPartition]:
        """Where the group has read nothing on our source (`find_unread`). While the rows cannot be read, that may be so
        in each topic of our target that the flow may copy. A flow that never ran has put no group anywhere.
        `failover`: the source is lost for good, and groups are to be moved all the same."""
        if self.fold is None and not self.is_missing and not failover:
            return frozenset((one.topic, one.partition) for one in checkpoints if self._may_copy(one.topic))
        row = None if self.fold is None else self.fold.rows.get(GroupStatus, group)
        if self.fold is None or row is None:
            return frozenset()
        return find_unread(row, checkpoints, self.fold.places.copy_name)

    def _may_copy(self, topic: str) -> bool:
        """Whether a topic of our target may be one that the flow copies. By its name alone, our own copies are not."""
        upstream = self._rule.policy.upstream_topic(topic)
        if upstream is None or upstream == topic:
            return True
        return topic != self._rule.policy.format_remote_topic(self._rule.flow.source, upstream)

    def changes(self, topics: Iterable[str]) -> tuple[int, str, int]:
        """Something else than before, if anything was said of one of these topics of our target meanwhile."""
        said = 0 if self.fold is None else self.fold.places.changes(topics)
        return self.generation, self.trouble, said

    def status(self) -> Mapping[str, Any]:
        """For /status."""
        return {"topic": self.topic, "read": self.fold is not None, "trouble": self.trouble}

    def begin_fold(self) -> _State:
        return _State()

    def apply(self, fold: _State, records: Sequence[Record]) -> None:
        for record in records:
            try:
                row = fold.rows.fold(record.offset, record.key, record.value)
            except MalformedRow as exc:
                self._log.warn("state row ignored", f"{self.topic} offset {record.offset}: {exc}")
                continue
            if row is not None:
                fold.places.apply(row)
