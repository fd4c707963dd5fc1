"""Follow the checkpoints topic and add to it: the service's memory lies there and nowhere else (`mm2-behaviour.md`
§3.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lockstep_checkpoint.checkpoint_fold import WrittenCheckpoints
from lockstep_config.flow import client_settings
from lockstep_protocol.mm2_records import Checkpoint
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.kafka.control_topics import ControlTopic, ensure_control_topics
from lockstep_runtime.kafka.topic_follower import Record, follow
from lockstep_runtime.util.backoff import Backoff
from lockstep_runtime.util.errors import ClusterError, LogTruncated, NotPermitted

__all__ = ["CheckpointStore"]

PARTITION = 0
"""MirrorMaker 2 and its clients write and read no other (`mm2-behaviour.md` §1.1)."""

MEMORY = "checkpoints topic"


class CheckpointStore:
    """What the target has acknowledged of one flow's checkpoints. Run it as long as the flow is worked on."""

    def __init__(self, ctx: FlowContext, topic: ControlTopic) -> None:
        self._ctx = ctx
        self._topic = topic
        self._loaded = asyncio.Event()
        self.written = WrittenCheckpoints()
        self.generation = 0
        """Grows whenever `written` began anew: what was written to a topic that is gone is due again."""
        self.unreadable = False
        """We may not read the topic. Then nothing tells what was written before, and of the offset syncs read at the
        start only the newest may be used, so that checkpoints do not fall behind what is there (MM2's degraded
        start)."""

    @property
    def is_loaded(self) -> bool:
        return self._loaded.is_set()

    async def loaded(self) -> None:
        """Return once the topic was read to its end, or is known to be unreadable."""
        await self._loaded.wait()

    async def run(self) -> None:
        """Follow until cancelled; the topic is created where it is missing, and read anew where it is another one."""
        self._begin(WrittenCheckpoints())
        backoff = Backoff()
        while True:
            ended: ClusterError | None = None
            try:
                await self._follow(backoff)
            except NotPermitted as denied:
                ended = denied
                if not self.unreadable:
                    self.unreadable = True
                    self._begin(WrittenCheckpoints())
                self._loaded.set()
                self._ctx.rounds.troubles.began(MEMORY, denied)
            except ClusterError as trouble:
                ended = trouble
                if isinstance(trouble, LogTruncated) or self.is_loaded:
                    self._begin(WrittenCheckpoints())
                self._ctx.rounds.troubles.began(MEMORY, trouble)
            await asyncio.sleep(backoff.after(ended))

    async def append(
        self, checkpoints: Sequence[Checkpoint], records: Sequence[tuple[bytes | None, bytes | None]]
    ) -> None:
        """Append checkpoints, given with their bytes, and remember them once they are acknowledged.

        Raises NotAppended or NotPermitted; what was acknowledged all the same is remembered when it is read back.
        """
        written = self.written
        offsets = await self._ctx.facts(self._topic.name).append_all(records, partition=PARTITION)
        written.all_written(offsets, checkpoints)

    async def _follow(self, backoff: Backoff) -> None:
        ctx = self._ctx
        for name in await ensure_control_topics(ctx.target, [self._topic]):
            ctx.log.info("topic created", f"{name} on {ctx.target.alias}", topic=name)
        written = WrittenCheckpoints()

        def fold(records: Sequence[Record]) -> None:
            for record in records:
                written.fold(record.offset, record.key, record.value)

        conf = client_settings.target_consumer(ctx.settings, "checkpoints-target-consumer")
        follower = follow(
            conf,
            self._topic.name,
            on_records=fold,
            partitions=(PARTITION,),
            alias=ctx.target.alias,
            access=ctx.target.access,
        )
        async with follower:
            await follower.caught_up()
            if self.unreadable:
                await follower.permitted()
            self._begin(written)
            self.unreadable = False
            self._loaded.set()
            backoff.reset()
            ctx.rounds.troubles.over(MEMORY)
            await follower.failed()

    def _begin(self, written: WrittenCheckpoints) -> None:
        self._loaded.clear()
        self.written = written
        self.generation += 1
