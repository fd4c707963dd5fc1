"""Follow the offset-syncs topic, wherever it lies, and keep a store of it that can be trusted.

The topic is read from its beginning and folded anew whenever it turns out not to be the log it was: truncated, deleted,
or re-created under the same name (its topic id tells, also when the new log is already longer than the old one was).
While it is missing or cannot be read there is no store, and `trouble` says why; MirrorMaker 2 goes on without
translating and without a word (`mm2.md` §3.4).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from lockstep_checkpoint.translation import OffsetSyncStore
from lockstep_protocol.codec import MalformedRecord, decode_offset_sync
from lockstep_runtime.admin import Admin
from lockstep_runtime.control_topics import ControlTopic, ensure_control_topics
from lockstep_runtime.errors import ClusterTrouble, LogTruncated, TopicMissing
from lockstep_runtime.follow import Record, follow
from lockstep_runtime.log import FlowLog
from lockstep_runtime.retry import Backoff
from lockstep_runtime.rounds import Troubles

__all__ = ["OffsetSyncsFollower"]

PARTITION = 0
"""MirrorMaker 2 writes and reads no other (`mm2.md` §1.1)."""

SYNCS = "offset syncs"
NOT_YET = "not read to their end yet"


class OffsetSyncsFollower:
    """Keeps `store` in step with one offset-syncs topic. Run it as long as the flow lives."""

    def __init__(
        self,
        admin: Admin,
        conf: Mapping[str, str],
        topic: ControlTopic,
        log: FlowLog,
        troubles: Troubles,
        *,
        create: bool,
        keep_only_newest: Callable[[], bool],
        first: Callable[[], Awaitable[None]],
    ) -> None:
        self._admin = admin
        self._conf = conf
        self._topic = topic
        self._log = log
        self._troubles = troubles
        self._create = create
        self._keep_only_newest = keep_only_newest
        self._first = first
        self._topic_id = ""
        self._recreated = asyncio.Event()
        self._why = NOT_YET
        self._judged = asyncio.Event()
        self.store: OffsetSyncStore | None = None
        """Read to the end of the topic, and following; None while it is not."""
        self.generation = 0
        """Grows with every reading of the topic from its beginning."""
        self.malformed = 0

    @property
    def trouble(self) -> str:
        """Why there is no store just now; "" while there is one."""
        return "" if self.store is not None else f"offset syncs: {self._why}"

    async def run(self) -> None:
        """Follow until cancelled. Nothing is read before `first`, given at construction, has returned."""
        self.store = None
        self._judged.clear()
        await self._first()
        backoff = Backoff()
        while True:
            try:
                await self._follow(backoff)
            except ClusterTrouble as trouble:
                self.store = None
                self._why = str(trouble)
                self._troubles.began(SYNCS, trouble)
                self._judged.set()
            await asyncio.sleep(backoff.next())

    async def judged(self) -> None:
        """Return once the topic was read to its end for the first time, or it is known why it cannot be."""
        await self._judged.wait()

    async def verify(self) -> None:
        """Have the topic read anew if it is gone, or not the one that was followed. Raises what Admin raises."""
        if self.store is None:
            return
        described = await self._admin.topic(self._topic.name)
        if described is None or described.topic_id != self._topic_id:
            self.store = None
            self._recreated.set()

    async def _follow(self, backoff: Backoff) -> None:
        self._recreated.clear()
        self.store = None
        if self._create and await ensure_control_topics(self._admin, [self._topic]):
            self._log.say("topic created", f"{self._topic.name} on {self._admin.alias}", topic=self._topic.name)
        described = await self._admin.topic(self._topic.name)
        if described is None:
            raise TopicMissing(self._admin.alias, self._topic.name)
        self._topic_id = described.topic_id
        self.generation += 1
        store = OffsetSyncStore(keep_only_newest=self._keep_only_newest())
        follower = follow(
            self._conf,
            self._topic.name,
            on_records=partial(self._fold, store),
            partitions=(PARTITION,),
            alias=self._admin.alias,
        )
        self._why = NOT_YET
        async with follower:
            await follower.caught_up()
            store.finish_reading()
            self.store = store
            backoff.reset()
            self._troubles.over(SYNCS)
            self._judged.set()
            self._log.debug("offset syncs read", f"{len(store.histories)} partitions", position=store.position)
            await self._until_it_ends(follower.failed())
        raise LogTruncated(self._admin.alias, self._topic.name, PARTITION, store.position + 1)

    async def _until_it_ends(self, failed: Awaitable[None]) -> None:
        ends = asyncio.ensure_future(failed)
        recreated = asyncio.ensure_future(self._recreated.wait())
        try:
            await asyncio.wait((ends, recreated), return_when=asyncio.FIRST_COMPLETED)
            if ends.done():
                await ends
        finally:
            ends.cancel()
            recreated.cancel()

    def _fold(self, store: OffsetSyncStore, records: Sequence[Record]) -> None:
        for record in records:
            try:
                sync = decode_offset_sync(record.key, record.value)
            except MalformedRecord as malformed:
                # MM2 stops translating for good here. One bad record says nothing about the others.
                self.malformed += 1
                self._log.warn("offset sync passed over", f"{self._topic.name} offset {record.offset}: {malformed}")
                continue
            store.fold(record.offset, sync)
