"""The rows of the reverse flow, from the target to the source. Its state topic is on our source."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lockstep_config.flow import client_settings
from lockstep_config.flow.mirroring_rules import checkpoint_rule
from lockstep_kafka.topics.control_topics import ControlTopic
from lockstep_kafka.topics.topic_reader import Record
from lockstep_rules.groups.group_sync import find_unread, is_lower
from lockstep_rules.offsets.offset_translator import ReverseTranslation
from lockstep_rules.offsets.run_translator import RunTranslator
from lockstep_rules.policy import hides_origin
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.state.compacted_topic import CompactedTopic
from lockstep_runtime.state.state_fold import StateFold
from lockstep_state.codecs.mm2_codec import Checkpoint
from lockstep_state.names import Flow
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import GroupStatus, MalformedRow, MirroredTopic, OffsetRuns, PartitionProgress

WANTS = frozenset({GroupStatus, MirroredTopic, PartitionProgress, OffsetRuns})


class _State:
    """The rows of the reverse flow, and the offset runs in them."""

    def __init__(self) -> None:
        self.rows = StateFold(wants=WANTS)
        self.runs = RunTranslator()
        self.loaded_at: float | None = None
        """The monotonic time when the topic was read to its end."""
        self.lowered_at: dict[str, float] = {}
        """The monotonic time when a later row put a group at an earlier offset (`is_lower`)."""

    def apply(self, record: Record, now: float) -> None:
        """Fold one record. Raises MalformedRow."""
        key = (record.key or b"").decode(errors="replace")
        before = None if self.loaded_at is None else self.rows.rows.get(key)
        row = self.rows.fold(record.offset, record.key, record.value)
        if row is not None:
            self.runs.apply(row)
        if isinstance(before, GroupStatus) and is_lower(self.rows.get(GroupStatus, before.group), before):
            self.lowered_at[before.group] = now

    def was_lowered_since(self, group: str, read_at: float | None) -> bool:
        """Return whether the flow may have set the group back after its reading on our source. None: never read."""
        since = self.lowered_at.get(group)
        if since is None and self.rows.get(GroupStatus, group) is not None:
            since = self.loaded_at  # what the rows were before that is not known
        return since is not None and (read_at is None or read_at <= since)


class ReverseFlow(CompactedTopic[_State]):
    """The offset runs and group rows of the reverse flow. A flow that never ran has no topic, which is no error."""

    def __init__(self, ctx: FlowContext, topic: str) -> None:
        self._rule = checkpoint_rule(ctx.settings)
        self._clock = ctx.clock
        self._unreadable = ctx.unreadable
        super().__init__(
            ctx.source,
            lambda: client_settings.source_consumer(ctx.settings, "checkpoint-opposite"),
            ControlTopic(topic, 1, -1),
            ctx.log,
            ctx.periodic.troubles,
            name=f"rows of {Flow(ctx.flow.target, ctx.flow.source)}",
            optional=True,
        )

    def translation(self) -> ReverseTranslation:
        if self.fold is not None:
            return ReverseTranslation(self.fold.runs)
        if self.is_missing:
            return ReverseTranslation()
        return ReverseTranslation(unreadable=ReasonCode.OPPOSITE_UNREADABLE.to_reason(text=self.trouble))

    def find_unread(
        self, group: str, checkpoints: Iterable[Checkpoint], read_at: float | None, *, failover: bool = False
    ) -> frozenset[TopicPartition]:
        """Return the partitions in which the group has read nothing on our source (`find_unread`).

        If the rows cannot be read, or the flow has set the group back since, each topic that it may copy counts. A flow
        that never ran has moved no group.

        Args:
            group: The id of the group.
            checkpoints: Its checkpoints on our target.
            read_at: The monotonic time when the group was read for them on our source; None: this process has not read
                it.
            failover: The source is lost for good, and groups are to be moved all the same.
        """
        fold = self.fold
        is_unknown = not self.is_missing if fold is None else fold.was_lowered_since(group, read_at)
        if is_unknown and not failover:
            return frozenset(checkpoint.tp for checkpoint in checkpoints if self._may_copy(checkpoint.topic))
        row = None if fold is None else fold.rows.get(GroupStatus, group)
        if fold is None or row is None:
            return frozenset()
        return find_unread(row, checkpoints, fold.runs.copy_name)

    def _may_copy(self, topic: str) -> bool:
        """Return whether a topic of our target may be one that the reverse flow copies.

        Our own copies are not, by their names.
        """
        upstream = self._rule.policy.upstream_topic(topic)
        if upstream is None or hides_origin(self._rule.policy, self._rule.flow.source, upstream):
            return True
        return topic != self._rule.policy.format_remote_topic(self._rule.flow.source, upstream)

    def changes(self, topics: Iterable[str]) -> tuple[int, str, int]:
        """Return a value that changes whenever rows about these topics of our target change."""
        return self.readings, self.trouble, 0 if self.fold is None else self.fold.runs.changes(topics)

    def status(self) -> Mapping[str, Any]:
        return {"topic": self.topic, "read": self.fold is not None, "trouble": self.trouble}

    def begin_fold(self) -> _State:
        self._unreadable.begin(self.topic)
        return _State()

    def finish_fold(self, fold: _State) -> _State:
        fold.loaded_at = self._clock.monotonic()
        return fold

    def apply(self, fold: _State, records: Sequence[Record]) -> None:
        now = self._clock.monotonic()
        for record in records:
            try:
                fold.apply(record, now)
            except MalformedRow as exc:
                self._unreadable.pass_over(record, exc, stays=True)
            else:
                self._unreadable.was_read(record)
