"""The heartbeats of one flow (`mm2-behaviour.md` §4.9), and those of other flows that arrive on its target."""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, ClassVar

from lockstep_config.flow import client_settings
from lockstep_heartbeat import metrics
from lockstep_heartbeat.heartbeat_record import make_heartbeat, make_pulse
from lockstep_heartbeat.upstream_clusters import MOST_UPSTREAMS, Upstream, age_seconds, find_upstreams
from lockstep_heartbeat.upstream_monitor import UpstreamMonitor
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.topics.control_topics import service_topics
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.flow.connect_offsets import ConnectOffsets
from lockstep_runtime.flow.context import Answer, FlowContext
from lockstep_runtime.flow.control_topic_creation import create_control_topics
from lockstep_runtime.telemetry.metrics import Sample
from lockstep_state.codecs.mm2_codec import encode_heartbeat
from lockstep_state.commands.command import Command
from lockstep_state.commands.command_vocabulary import Connector, Scope
from lockstep_state.reasons.reason import Reason
from lockstep_state.rows.state_rows import FlowPulse, Row

UPSTREAM_CHECK_INTERVAL = timedelta(seconds=60)
"""The interval at which all topics of the target are listed, to find heartbeats topics."""


class Heartbeats:
    """The heartbeats of one flow while this replica leads.

    Missed heartbeats are not sent later: a heartbeat says that the flow is alive now.
    """

    wants: ClassVar[frozenset[type[Row]]] = frozenset({FlowPulse})

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self._topic = ctx.settings.policy.heartbeats_topic()
        self._topic_exists = False
        self._offsets = ConnectOffsets(ctx, Connector.HEARTBEAT)
        self._last_beat_ms = 0
        self._last_beat_s: float | None = None
        """The time of the last acknowledged heartbeat: in Unix milliseconds, and by `clock.monotonic`."""
        self._monitor: UpstreamMonitor | None = None
        self._monitor_since_ms = 0
        """When the monitor began to read heartbeats topics of the target, in Unix milliseconds."""
        self._upstreams: tuple[Upstream, ...] = ()
        self._beats = ctx.metrics.series(metrics.BEATS, str(ctx.flow))
        ctx.metrics.ask(self._samples)

    def _pass_over(self, record: Record, error: ValueError) -> None:
        self._ctx.unreadable.pass_over(record, error, stays=False)

    async def run(self) -> None:
        ctx = self._ctx
        conf = client_settings.target_consumer(ctx.settings, ctx.service)
        monitor = UpstreamMonitor(ctx.target.alias, conf, ctx.clock.wall_ms, self._pass_over)
        self._monitor = monitor
        self._monitor_since_ms = ctx.clock.wall_ms()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(ctx.periodic.every("heartbeat", ctx.settings.heartbeat.every, self._beat))
                tasks.create_task(
                    ctx.periodic.every("upstream heartbeats", UPSTREAM_CHECK_INTERVAL, self._measure_upstream)
                )
        finally:
            self._monitor, self._upstreams = None, ()
            await monitor.stop()

    async def command(self, command: Command, scope: Scope) -> Answer | None:
        return await self._offsets.carry_out(command)

    def status(self) -> Mapping[str, Any]:
        return {
            "topic": self._topic,
            "last_beat_ms": self._last_beat_ms,
            "age_seconds": round(self._age(), 1),
            "upstreams": {shown.alias: self._upstream_status(shown) for shown in self._upstreams[:MOST_UPSTREAMS]},
            "more_upstreams": max(0, len(self._upstreams) - MOST_UPSTREAMS),
        }

    def _upstream_status(self, upstream: Upstream) -> dict[str, Any]:
        row_detail: dict[str, Any] = {
            "hops": upstream.hops,
            "topic": upstream.topic,
            "age_seconds": round(self._heartbeat_age(upstream), 1),
        }
        if self._monitor is not None:
            heartbeat = self._monitor.heartbeats.get(upstream.topic)
            row_detail["latency_ms"] = None if heartbeat is None else heartbeat.latency_ms
            row_detail["trouble"] = self._monitor.troubles.get(upstream.topic, "")
        return row_detail

    async def _measure_upstream(self) -> None:
        ctx = self._ctx
        self._upstreams = find_upstreams(
            ctx.settings.policy, await ctx.target.topic_names(), ctx.settings.aliases.source
        )
        if self._monitor is not None:
            self._monitor.listen_to({upstream.topic for upstream in self._upstreams[:MOST_UPSTREAMS]})

    async def _beat(self) -> None:
        ctx = self._ctx
        ctx.must_act()
        try:
            await self._ensure_topic()
            heartbeat = make_heartbeat(ctx.settings.aliases, ctx.clock.wall_ms())
            key, value = encode_heartbeat(heartbeat)
            await ctx.fenced_log(self._topic).append(key, value, partition=0, timestamp_ms=heartbeat.timestamp_ms)
        except ClusterError as trouble:
            self._topic_exists = False  # it may have been deleted; look again
            await self._write_pulse(trouble.to_reason())
            raise
        self._beats.increase()
        self._last_beat_ms = heartbeat.timestamp_ms
        self._last_beat_s = ctx.clock.monotonic()
        await self._write_pulse(None)

    async def _ensure_topic(self) -> None:
        if self._topic_exists:
            return
        ctx = self._ctx
        topics = [topic for _, topic in service_topics(ctx.settings, ctx.service)]
        for name in await create_control_topics(ctx, ctx.target, topics):
            await ctx.event("TopicCreated", name, f"{name} on {ctx.target.alias}", partitions=1)
        self._topic_exists = True

    async def _write_pulse(self, failure: Reason | None) -> None:
        row = make_pulse(self._ctx.flow, self._ctx.state.get(FlowPulse, str(self._ctx.flow)), failure)
        if row is not None:
            await self._ctx.state.write(row)

    def _samples(self) -> Iterator[Sample]:
        """Yield the metrics. A replica that stands by, or is paused, sends no heartbeats and has none."""
        if not (self._ctx.is_acting and self._ctx.should_run):
            return
        flow = self._ctx.flow
        yield Sample(metrics.AGE, (str(flow), flow.source, flow.target), self._age())
        for upstream in self._upstreams[:MOST_UPSTREAMS]:
            labels = (str(flow), upstream.alias)
            yield Sample(metrics.UPSTREAM_HOPS, labels, upstream.hops)
            yield Sample(metrics.UPSTREAM_AGE, labels, self._heartbeat_age(upstream))
            heartbeat = None if self._monitor is None else self._monitor.heartbeats.get(upstream.topic)
            if heartbeat is not None and heartbeat.latency_ms is not None:
                yield Sample(metrics.UPSTREAM_LATENCY, labels, heartbeat.latency_ms / 1e3)

    def _heartbeat_age(self, upstream: Upstream) -> float:
        heartbeat = None if self._monitor is None else self._monitor.heartbeats.get(upstream.topic)
        return age_seconds(heartbeat, self._monitor_since_ms, self._ctx.clock.wall_ms())

    def _age(self) -> float:
        return -1.0 if self._last_beat_s is None else self._ctx.clock.monotonic() - self._last_beat_s
