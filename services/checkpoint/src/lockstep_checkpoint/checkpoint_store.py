"""The checkpoints topic of a flow, followed and appended to (`mm2-behaviour.md` §3.4)."""

from collections.abc import Sequence
from functools import partial

from lockstep_checkpoint.checkpoint_fold import WrittenCheckpoints
from lockstep_config.flow import client_settings
from lockstep_kafka.topics.control_topics import ControlTopic
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.flow.control_topic_creation import create_control_topics
from lockstep_runtime.state.compacted_topic import PARTITION, CompactedTopic
from lockstep_state.codecs.mm2_codec import Checkpoint, MalformedRecord


class CheckpointStore(CompactedTopic[WrittenCheckpoints]):
    """The acknowledged checkpoints of one flow. The topic is created if it is missing.

    While reading the topic is not permitted, the earlier checkpoints are unknown. Then only the newest of the offset
    syncs read at the start may be used. So no checkpoint falls behind an existing one (MM2's degraded start).
    """

    def __init__(self, ctx: FlowContext, topic: ControlTopic) -> None:
        super().__init__(
            ctx.target,
            lambda: client_settings.target_consumer(ctx.settings, "checkpoints-target-consumer"),
            topic,
            ctx.log,
            ctx.periodic.troubles,
            name="checkpoints topic",
            create=partial(create_control_topics, ctx),
            does_without=True,
        )
        self._ctx = ctx

    @property
    def written(self) -> WrittenCheckpoints:
        """The checkpoints known now; none while the topic is not read."""
        return WrittenCheckpoints() if self.fold is None else self.fold

    async def append(
        self, checkpoints: Sequence[Checkpoint], records: Sequence[tuple[bytes | None, bytes | None]]
    ) -> None:
        """Append encoded checkpoints, and store each once it is acknowledged.

        A checkpoint that was acknowledged although this raises is stored when it is read back.

        Raises:
            NotAppended: The target did not acknowledge all of them.
            NotPermitted: The target denies the append.
        """
        written = self.written
        offsets = await self._ctx.fenced_log(self.topic).append_all(records, partition=PARTITION)
        written.record_all(offsets, checkpoints)

    def begin_fold(self) -> WrittenCheckpoints:
        self._ctx.unreadable.begin(self.topic)
        return WrittenCheckpoints()

    def apply(self, fold: WrittenCheckpoints, records: Sequence[Record]) -> None:
        for record in records:
            try:
                fold.fold(record.offset, record.key, record.value)
            except MalformedRecord as malformed:
                self._ctx.unreadable.pass_over(record, malformed, stays=True)
            else:
                self._ctx.unreadable.was_read(record)
