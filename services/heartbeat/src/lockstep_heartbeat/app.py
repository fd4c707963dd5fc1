"""Heartbeats of one flow: every second a record to `heartbeats` on the target (`mm2.md` §4.9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from lockstep_heartbeat import metrics
from lockstep_heartbeat.beat import beat, pulse
from lockstep_protocol.codec import encode_heartbeat
from lockstep_protocol.commands import Command
from lockstep_protocol.state import FlowPulse, Row
from lockstep_protocol.verbs import Connector, Scope
from lockstep_runtime.context import Answer, FlowContext
from lockstep_runtime.control_topics import ControlTopic, ensure_control_topics
from lockstep_runtime.errors import ClusterTrouble
from lockstep_runtime.metrics import Sample
from lockstep_runtime.source_offsets import SourceOffsets

__all__ = ["Heartbeats", "build"]


class Heartbeats:
    """Beats while we lead. Missed beats are not made up for: a heartbeat says that the flow lives now."""

    wants: ClassVar[frozenset[type[Row]]] = frozenset({FlowPulse})

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self._topic = ctx.settings.policy.heartbeats_topic()
        self._topic_there = False
        self._offsets = SourceOffsets(ctx, Connector.HEARTBEAT)
        self._last_ms = 0
        self._last_at: float | None = None
        self._beats = ctx.metrics.of(metrics.BEATS, str(ctx.flow))
        ctx.metrics.ask(self._samples)

    async def run(self) -> None:
        await self._ctx.every("heartbeat", self._ctx.settings.heartbeat.every, self._beat)

    async def command(self, command: Command, scope: Scope) -> Answer | None:
        return await self._offsets.carry_out(command)

    def status(self) -> Mapping[str, Any]:
        return {"topic": self._topic, "last_beat_ms": self._last_ms, "age_seconds": round(self._age(), 1)}

    async def _beat(self) -> None:
        ctx = self._ctx
        ctx.must_act()
        try:
            await self._ensure_topic()
            heartbeat = beat(ctx.flow, ctx.clock.wall_ms())
            key, value = encode_heartbeat(heartbeat)
            await ctx.facts(self._topic).append(key, value, partition=0, timestamp_ms=heartbeat.timestamp_ms)
        except ClusterTrouble as trouble:
            self._topic_there = False  # it may have been deleted; look again
            await self._tell(str(trouble))
            raise
        self._beats.add()
        self._last_ms = heartbeat.timestamp_ms
        self._last_at = ctx.clock.monotonic()
        await self._tell(None)

    async def _ensure_topic(self) -> None:
        if self._topic_there:
            return
        ctx = self._ctx
        topic = ControlTopic(self._topic, 1, ctx.settings.heartbeat.topic_replication_factor)
        for name in await ensure_control_topics(ctx.target, [topic]):
            await ctx.event("TopicCreated", name, f"{name} on {ctx.target.alias}", partitions=1)
        self._topic_there = True

    async def _tell(self, failure: str | None) -> None:
        row = pulse(self._ctx.flow, self._ctx.state.get(FlowPulse, str(self._ctx.flow)), failure)
        if row is not None:
            await self._ctx.state.write(row)

    def _samples(self) -> Iterator[Sample]:
        """For /metrics: who stands by does not beat, and that is no trouble."""
        if self._ctx.acting:
            flow = self._ctx.flow
            yield Sample(metrics.AGE, (str(flow), flow.source, flow.target), self._age())

    def _age(self) -> float:
        return -1.0 if self._last_at is None else self._ctx.clock.monotonic() - self._last_at


def build(ctx: FlowContext) -> Heartbeats:
    """The service of one flow, for `lockstep_runtime.service`."""
    return Heartbeats(ctx)
