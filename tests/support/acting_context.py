"""A flow's context that acts on real clusters, as the runtime makes it, without a group and without a process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.librdkafka.control_producer import ControlProducer, ControlTopicLog
from lockstep_kafka.topics.control_topics import ensure_control_topics, flow_topics
from lockstep_kafka.topics.topic_follower import TopicFollower
from lockstep_runtime.flow.context import Clock, FlowContext
from lockstep_runtime.state.leadership import Leadership
from lockstep_runtime.telemetry.metrics import Metrics
from lockstep_state.names import events_topic, state_topic
from lockstep_state.rows.state_rows import Leader, Row


@asynccontextmanager
async def acting_context(
    service: str, settings: FlowSettings, wants: frozenset[type[Row]] | None = None
) -> AsyncIterator[FlowContext]:
    """Lead the flow with control topics of one replica, as long as the context lasts. `wants`: the rows it reads."""
    flow = settings.flow
    conf = client_settings.target_producer(settings, service)
    ctx = FlowContext(
        service,
        settings,
        instance="one",
        source=Admin(flow.source, client_settings.source_admin(settings)),
        target=Admin(flow.target, client_settings.target_admin(settings)),
        leadership=Leadership(service),
        metrics=Metrics(),
        clock=Clock(),
        divided=False,
    )
    await ensure_control_topics(ctx.target, flow_topics(flow, None, 1))
    facts = ControlProducer(flow.target, conf)
    await facts.start()
    ctx.open(facts, ControlTopicLog(facts, events_topic(flow)))
    topic = state_topic(flow)
    ctx.state.open(ControlTopicLog(facts, topic), ctx.leadership.read_claim, wants)
    try:
        async with TopicFollower(conf, topic, on_records=ctx.state.receive, alias=flow.target) as follower:
            await follower.caught_up()
            ctx.leadership.assigned([0])
            me = Leader(service=service, instance="one")
            term = await ctx.state.claim(me) or await ctx.state.claim(me)
            ctx.leadership.claimed(0, term)
            await ctx.state.changed(term - 1)
            ctx.heartbeat_at = float("inf")  # nobody asks the group here
            assert ctx.is_acting
            yield ctx
    finally:
        await facts.stop()
