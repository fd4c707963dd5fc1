"""The offset-syncs topic, followed on either cluster.

MirrorMaker 2 goes on without translating and without a message while the topic is missing (`mm2-behaviour.md` §3.4).
"""

from collections.abc import Callable, Sequence
from functools import partial

from lockstep_config.flow import client_settings
from lockstep_kafka.topics.control_topics import offset_syncs_topic, service_topics
from lockstep_kafka.topics.topic_reader import Record
from lockstep_rules.offsets.offset_sync_store import OffsetSyncStore
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.flow.control_topic_creation import create_control_topics
from lockstep_runtime.state.compacted_topic import CompactedTopic
from lockstep_state.codecs.mm2_codec import MalformedRecord, decode_offset_sync


class OffsetSyncFollower(CompactedTopic[OffsetSyncStore]):
    """An `OffsetSyncStore` that follows one offset-syncs topic."""

    def __init__(self, ctx: FlowContext, keep_only_newest: Callable[[], bool]) -> None:
        plane, topic = ctx.settings.data_plane, offset_syncs_topic(ctx.settings)
        creates = topic in (owned for _, owned in service_topics(ctx.settings, ctx.service))
        super().__init__(
            ctx.source if plane.offset_syncs_location == "source" else ctx.target,
            lambda: client_settings.offset_syncs_consumer(
                ctx.settings, f"offset-syncs-{plane.offset_syncs_location}-consumer"
            ),
            topic,
            ctx.log,
            ctx.periodic.troubles,
            name="offset syncs",
            create=partial(create_control_topics, ctx) if creates else None,
        )
        self._keep_only_newest = keep_only_newest
        self._unreadable = ctx.unreadable
        self.malformed = 0

    def begin_fold(self) -> OffsetSyncStore:
        self._unreadable.begin(self.topic)
        return OffsetSyncStore(keep_only_newest=self._keep_only_newest())

    def apply(self, fold: OffsetSyncStore, records: Sequence[Record]) -> None:
        for record in records:
            try:
                sync = decode_offset_sync(record.key, record.value)
            except MalformedRecord as malformed:
                # MM2 stops translating for good here. One bad record says nothing about the others.
                self.malformed += 1
                self._unreadable.pass_over(record, malformed, stays=True)
                continue
            self._unreadable.was_read(record)
            fold.fold(record.offset, sync)

    def finish_fold(self, fold: OffsetSyncStore) -> OffsetSyncStore:
        fold.finish_reading()
        return fold
