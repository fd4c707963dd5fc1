"""The supervision of a flow's verify slots, which compare copies with their source.

Slots run while something is to be compared, and start again when they fail. A request of an operator becomes a row, so
it is carried out after any restart.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from typing import Any

from lockstep_data_plane.driver import metrics as m
from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_data_plane.spark.session import SlotFailed, SparkSession
from lockstep_data_plane.verify.batch_comparison import Depth
from lockstep_data_plane.verify.partition_share import comparing_slot, copied_partitions
from lockstep_kafka.common.asyncio_util import BesideTask, set_within, to_next_tick
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.common.errors import ClusterError, LeadershipLost
from lockstep_rules.offsets.verified_copy import present_verification
from lockstep_runtime.flow.context import Answer, FlowContext
from lockstep_runtime.telemetry.metrics import Sample
from lockstep_state.commands.command import Command
from lockstep_state.commands.command_vocabulary import VERIFY, Scope, ScopeKind
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, Verification, VerifiedPartition
from lockstep_state.rows.value_types import LARGEST_COUNT

_Compared = tuple[PartitionProgress, VerifiedPartition | None, VerifiedPartition | None]
"""The progress of a partition, its last comparison, and the same if it is about the present copy."""

TICK_S = 1.0
RESTARTS_WITHIN_S = 30.0
TROUBLE = "ending a verification"


class VerifySupervisor:
    """The verify slots of one flow. `new_spec` returns the specification of a slot's next run."""

    def __init__(self, ctx: FlowContext, spark: SparkSession, new_spec: Callable[[int], SlotSpec]) -> None:
        self._ctx = ctx
        self._spark = spark
        self._new_spec = new_spec
        self._verify = ctx.settings.data_plane.verify
        self._slots: dict[int, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._since_ms = ctx.clock.wall_ms()
        self._crowded = False
        self._task = BesideTask("verify slots", self._run)
        ctx.metrics.ask(self.samples)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Keep the slots that are needed running as long as the context lasts."""
        return self._task.running()

    def check(self, *, crowded: bool) -> None:
        """Raise what has ended the supervision by mistake.

        While `crowded`, a slot that copies waits for a core, so verify slots end and leave theirs.
        """
        if crowded and not self._crowded and self._slots:
            self._ctx.log.warn("verification waits", "a slot that copies has no place in Spark")
        self._crowded = crowded
        self._task.check()

    async def _run(self) -> None:
        try:
            with suppress(LeadershipLost):  # the next leader starts others
                while True:
                    self._changed.clear()
                    await self._reconcile()
                    await set_within(self._changed, to_next_tick(TICK_S))
        finally:
            slots, self._slots = list(self._slots.values()), {}
            for task in slots:
                task.cancel()
            await asyncio.gather(*slots, return_exceptions=True)

    async def _reconcile(self) -> None:
        """Start and end slots as they are needed, and end a request that is carried out."""
        request = self._request()
        remaining = self.remaining(request) if request is not None else []
        if request is not None and not remaining:
            await self._end_request(request)
        for number, task in list(self._slots.items()):
            if self._crowded:
                task.cancel()
            if task.done():
                del self._slots[number]
                if not task.cancelled():
                    task.result()
        for number in self._slots_to_run(remaining) - self._slots.keys():
            self._slots[number] = asyncio.create_task(self._run_slot(number), name=f"verify slot {number}")

    async def _run_slot(self, number: int) -> None:
        """Run one slot until it has nothing left to compare."""
        ctx, backoff = self._ctx, Backoff(limit=RESTARTS_WITHIN_S)
        while True:
            spec, began = self._new_spec(number), ctx.clock.monotonic()
            try:
                await self._spark.run_slot(spec)
                return
            except SlotFailed as exc:
                backoff.forget_failures(ctx.clock.monotonic() - began)
                wait = backoff.next()
                text = f"verify slot {number}: {exc}; starting again in {wait:.1f} s"
                ctx.log.warn("verify slot failed", text, slot=number)
            except asyncio.CancelledError:
                await self._spark.cancel(spec)
                raise
            await asyncio.sleep(wait)

    def _request(self) -> Verification | None:
        """Return the request that is being carried out."""
        row = self._ctx.state.get(Verification, "request")
        return row if row is not None and row.phase == "running" else None

    def _slots_to_run(self, remaining: Sequence[TopicPartition]) -> set[int]:
        """Return the numbers of the slots that have something to compare."""
        slots = self._verify.tasks_max
        if self._crowded:
            return set()
        return set(range(slots)) if self._verify.enabled else {comparing_slot(tp, slots) for tp in remaining}

    def remaining(self, request: Verification) -> list[TopicPartition]:
        """Return the partitions that the request names and that are not compared up to its end."""
        return [
            tp
            for tp in self._copied()
            if (not request.topics or tp[0] in request.topics) and not self._is_done(tp, request)
        ]

    def _copied(self) -> list[TopicPartition]:
        """Return the partitions whose copy has begun."""
        state = self._ctx.state
        every = copied_partitions(state.all(MirroredTopic), by_key=self._ctx.settings.data_plane.by_key)
        return [tp for tp in every if state.get(PartitionProgress, tp[0], str(tp[1])) is not None]

    def _is_done(self, tp: TopicPartition, request: Verification) -> bool:
        row = self._ctx.state.get(VerifiedPartition, tp[0], str(tp[1]))
        return row is not None and row.request == request.id and row.done

    async def _end_request(self, request: Verification) -> None:
        ctx = self._ctx
        ctx.must_act()
        try:
            await ctx.state.write(replace(request, phase="ended"))
        except ClusterError as trouble:
            ctx.periodic.troubles.record_failure(TROUBLE, trouble)
            return
        ctx.periodic.troubles.record_success(TROUBLE)
        ctx.log.info("verification ended", f"request {request.id}")

    # -- for /metrics --------------------------------------------------------------------------------------------------

    def samples(self) -> Iterator[Sample]:
        """Yield the results of verification by topic; nothing while another replica leads."""
        ctx = self._ctx
        if not ctx.is_acting:
            return
        by_topic: dict[str, list[_Compared]] = defaultdict(list)
        for topic, number in self._copied():
            progress = ctx.state.get(PartitionProgress, topic, str(number))
            if progress is not None:
                row = ctx.state.get(VerifiedPartition, topic, str(number))
                by_topic[topic].append((progress, row, self._present(progress, row)))
        for topic, partitions in by_topic.items():
            labels = str(ctx.flow), topic
            rows = [present for _, _, present in partitions if present is not None]
            if self._verify.enabled:
                yield Sample(m.VERIFIED_LAG, labels, max(self._lag_s(*comparison) for comparison in partitions))
            if rows:
                differences = sum(n for row in rows for _, n in row.differences) + sum(row.beyond for row in rows)
                yield Sample(m.VERIFY_DIFFERENCES, labels, differences)
                yield Sample(m.NOT_VERIFIED, labels, sum(n for row in rows for _, n in row.not_verified))

    def _present(self, progress: PartitionProgress, row: VerifiedPartition | None) -> VerifiedPartition | None:
        return present_verification(row, progress, self._ctx.state.get(MirroredTopic, progress.topic))

    def _lag_s(
        self, progress: PartitionProgress, row: VerifiedPartition | None, present: VerifiedPartition | None
    ) -> float:
        """Return for how long the copy has had records that are not verified; 0.0 while it has none.

        A log that is gone was verified up to its end when its row says so.
        """
        if present is not None and present.upstream >= progress.upstream and not present.cause:
            return 0.0
        since = self._since_ms if row is None else row.verified_ms
        return max(0.0, (self._ctx.clock.wall_ms() - since) / 1000)

    # -- commands ------------------------------------------------------------------------------------------------------

    async def carry_out(self, command: Command, scope: Scope) -> Answer | None:
        """Carry out the command `verify`; None for other verbs. Raises ValueError and ClusterError."""
        if command.verb != VERIFY:
            return None
        ctx, arguments = self._ctx, command.arguments
        depth = _check_depth(arguments.get("depth", self._verify.depth))
        topics = self._topics(arguments.get("topics", ()), scope)
        rate = arguments.get("max_bytes_per_s", 0)
        if not isinstance(rate, int) or isinstance(rate, bool) or not 0 <= rate <= LARGEST_COUNT:
            raise ValueError(f"max_bytes_per_s is {rate!r}: it takes a number of bytes of 64 bits, 0 for no limit")
        row = Verification(
            id=command.id,
            depth=depth,
            topics=topics,
            max_bytes_per_s=rate,
            again=bool(arguments.get("again", False)),
            since_ms=ctx.clock.wall_ms(),
        )
        await ctx.state.write(row)
        self._changed.set()
        return Answer(
            "VerificationStarted", {"depth": depth, "topics": list(topics), "partitions": len(self.remaining(row))}
        )

    def _topics(self, patterns: Any, scope: Scope) -> tuple[str, ...]:
        """Return the mirrored topics that the request names; () for all. Raises ValueError if it names none."""
        mirrored = [row.source_topic for row in self._ctx.state.all(MirroredTopic) if row.phase == "mirrored"]
        if scope.kind is ScopeKind.TOPIC:
            patterns = [re.escape(scope.name)]
        if not patterns:
            return ()
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
            raise ValueError(f"{patterns!r} is no list of patterns")
        try:
            expressions = [re.compile(pattern) for pattern in patterns]
        except re.error as exc:
            raise ValueError(f"{patterns!r} is no list of patterns: {exc}") from exc
        matching = tuple(sorted(name for name in mirrored if any(pattern.fullmatch(name) for pattern in expressions)))
        if not matching:
            raise ValueError(f"no topic that the flow mirrors is called {' or '.join(map(str, patterns))}")
        return matching


def _check_depth(depth: Any) -> str:
    depths = [choice.value for choice in Depth]
    if depth not in depths:
        raise ValueError(f"there is no depth {depth!r}: there are {', '.join(depths)}")
    return str(depth)
