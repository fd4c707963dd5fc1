"""Follow one compacted topic of a cluster, and keep a fold of it.

The topic is read from its beginning whenever it is another log: truncated, deleted, or re-created under the same
name. The topic id shows the last case, even when the new log is already longer than the old one was. While the topic
is missing or cannot be read there is no fold, and `trouble` has the reason.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.asyncio_util import run_unless_set
from lockstep_kafka.common.errors import ClusterError, LogTruncated, NotPermitted, TopicMissing
from lockstep_kafka.topics.control_topics import ControlTopic
from lockstep_kafka.topics.topic_follower import TopicFollower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.telemetry.failure_tracker import FailureTracker
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.task_restarts import TaskRestarts

F = TypeVar("F")

CreateTopics = Callable[[Admin, Sequence[ControlTopic]], Awaitable[object]]
"""Creates control topics that are missing."""

PARTITION = 0
"""The only partition that counts in MirrorMaker 2's topics and in our state topics.

See `mm2-behaviour.md` §1.1 and `architecture.md` §3.
"""

NOT_YET = "not read to their end yet"


class CompactedTopic(ABC, Generic[F]):
    """Keep `fold` in step with a topic. Run it as long as the flow is served."""

    def __init__(
        self,
        admin: Admin,
        conf: Callable[[], Mapping[str, str]],
        topic: ControlTopic,
        log: FlowLog,
        troubles: FailureTracker,
        *,
        name: str,
        create: CreateTopics | None = None,
        optional: bool = False,
        does_without: bool = False,
    ) -> None:
        """Create it without a fold.

        Args:
            admin: The topic's cluster.
            conf: Makes the settings of a consumer.
            topic: The topic to follow.
            log: Gets a debug line when the topic was read.
            troubles: Gets why the topic cannot be read.
            name: The name of the topic in messages and troubles.
            create: Creates the topic if it is missing.
            optional: The absence of the topic is no trouble.
            does_without: A topic that may not be read has an empty fold.
        """
        self._admin = admin
        self._conf = conf
        self._topic = topic
        self._log = log
        self._troubles = troubles
        self._name = name
        self._create = create
        self._optional = optional
        self._does_without = does_without
        self._topic_id = ""
        self._changed = asyncio.Event()
        self._restarts = TaskRestarts(self._fail, wake=self._changed)
        self._reason = NOT_YET
        self._is_judged = asyncio.Event()
        self._is_loaded = asyncio.Event()
        self.fold: F | None = None
        """The fold of the topic, read to its end and followed; None while it is not."""
        self.is_missing = False
        """The topic did not exist at the last attempt to read it."""
        self.is_denied = False
        """The topic was denied, and has not been read since."""
        self.readings = 0
        """The number of folds that `fold` has been."""

    @abstractmethod
    def begin_fold(self) -> F:
        """Return the fold of an empty topic."""

    @abstractmethod
    def apply(self, fold: F, records: Sequence[Record]) -> None:
        """Fold records, in log order."""

    def finish_fold(self, fold: F) -> F:
        """Return the fold to keep of one that was read to the end of the topic. Called once for each reading."""
        return fold

    @property
    def topic(self) -> str:
        """Return the topic's name."""
        return self._topic.name

    @property
    def trouble(self) -> str:
        """Return why there is no fold just now; "" while there is one."""
        return "" if self.fold is not None else f"{self._name}: {self._reason}"

    async def run(self, first: Callable[[], Awaitable[None]] | None = None) -> None:
        """Follow until cancelled. Nothing is read before `first` has returned."""
        self._replace(None)
        self.is_missing = False
        self._is_judged.clear()
        if first is not None:
            await first()
        await self._restarts.run_forever(self._follow)

    async def wait_judged(self) -> None:
        """Wait until the topic was read to its end for the first time, or it is known why it cannot be."""
        await self._is_judged.wait()

    async def wait_loaded(self) -> None:
        """Wait until the topic was read to its end and its fold can be asked."""
        await self._is_loaded.wait()

    async def verify(self) -> None:
        """Have the topic read again if it is gone, was created again, or exists after it was missing.

        Raises what Admin raises.
        """
        if self.fold is None and not self.is_missing:
            return
        described = await self._admin.topic(self.topic)
        if self.is_missing:
            changed = described is not None
        else:
            changed = described is None or described.topic_id != self._topic_id
        if changed:
            self._replace(None)
            self.is_missing = False
            self._reason = NOT_YET
            self._changed.set()

    async def _follow(self) -> None:
        self._changed.clear()
        if self._create is not None:
            await self._create(self._admin, [self._topic])
        described = await self._admin.topic(self.topic)
        if described is None:
            raise TopicMissing(self._admin.alias, self.topic)
        self.is_missing = False
        self._topic_id = described.topic_id
        fold, position = self.begin_fold(), 0

        def fold_in(records: Sequence[Record]) -> None:
            nonlocal position
            self.apply(fold, records)
            position = records[-1].offset + 1

        follower = TopicFollower(
            self._conf(),
            self.topic,
            on_records=fold_in,
            partitions=(PARTITION,),
            alias=self._admin.alias,
            access=self._admin.access,
        )
        self._reason = NOT_YET
        async with follower:
            await follower.caught_up()
            if self.is_denied:
                await follower.permitted()
            self.is_denied = False
            self._replace(self.finish_fold(fold))
            self._restarts.backoff.reset()
            self._troubles.record_success(self._name)
            self._is_judged.set()
            self._log.debug(f"{self._name} read", f"{self.topic} on {self._admin.alias}")
            await run_unless_set(self._changed, follower.failed())
        raise LogTruncated(self._admin.alias, self.topic, PARTITION, position)

    def _fail(self, trouble: ClusterError) -> None:
        is_denied = isinstance(trouble, NotPermitted)
        if not (is_denied and self._does_without):
            self._replace(None)
        elif self.fold is None or not self.is_denied:
            self._replace(self.begin_fold())
        self._reason = str(trouble)
        self.is_missing = isinstance(trouble, TopicMissing)
        self.is_denied = self.is_denied or is_denied
        if self.is_missing and self._optional:
            self._troubles.record_success(self._name)
        else:
            self._troubles.record_failure(self._name, trouble)
        self._is_judged.set()

    def _replace(self, fold: F | None) -> None:
        self.fold = fold
        if fold is None:
            self._is_loaded.clear()
        else:
            self.readings += 1
            self._is_loaded.set()
