"""A client that appends a command and waits for the events that answer it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from math import inf
from typing import Any

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import needed_access
from lockstep_config.flow import client_settings
from lockstep_config.resolve.precedence import Side
from lockstep_kafka.admin.admin import PROBE
from lockstep_kafka.admin.replicas import count_replicas
from lockstep_kafka.common.asyncio_util import run_unless_set
from lockstep_kafka.common.errors import ClusterError, NotPermitted, RequestRefused, TopicMissing
from lockstep_kafka.librdkafka.control_producer import ControlProducer, ControlTopicLog
from lockstep_kafka.topics.topic_follower import target_follower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.clusters import REFUSED_S, target_client
from lockstep_ops.command_request import CommandReply
from lockstep_state.events import decode_event
from lockstep_state.names import commands_topic, events_topic
from lockstep_state.rows.row import MalformedRow


async def ask(settings: FlowSettings, reply: CommandReply, within: float) -> None:
    """Ask one thing. As `ask_all`, but a target that refuses connections is not waited for."""
    await ask_all(settings, [reply], within, refused_s=REFUSED_S)


async def ask_all(
    settings: FlowSettings,
    replies: Sequence[CommandReply],
    within: float,
    on_answer: Callable[[], None] = lambda: None,
    refused_s: float = inf,
) -> None:
    """Ask the services of a flow several things at once, and fold the answers into `replies`.

    It returns when all answers are there, or after `within` seconds. For services that did not answer, a reply says how
    many replicas run. Failures of a cluster are in the replies too, so that other flows are asked all the same.
    `on_answer` is called after answers have come, and `refused_s` is that of `AdminRequests`.

    Raises:
        NewerVersion: An answer is of a newer release.
    """
    if not replies:
        return
    try:
        await _ask_all(settings, replies, within, on_answer, refused_s)
    except ClusterError as exc:
        never_run = isinstance(exc, TopicMissing)
        advice = ": the flow has never run; start its services, or lockstep run" if never_run else ""
        for reply in replies:
            if reply.missing:
                reply.trouble = f"{exc}{advice}"
                reply.denied = isinstance(exc, NotPermitted | RequestRefused)


async def _ask_all(
    settings: FlowSettings,
    replies: Sequence[CommandReply],
    within: float,
    on_answer: Callable[[], None],
    refused_s: float,
) -> None:
    flow, group_id = settings.flow, settings.group_id
    target = target_client(settings, refused_s=refused_s)
    await target.probe(min(PROBE, timedelta(seconds=within)))
    answered = asyncio.Event()
    replies_by_id = {reply.request.command.id.encode(): reply for reply in replies}

    def hear(records: Sequence[Record]) -> None:
        missing = [reply.missing for reply in replies]
        for record in records:
            value = record.value or b""
            for reply in [reply for request_id, reply in replies_by_id.items() if request_id in value]:
                with suppress(MalformedRow):  # no service wrote it, so it is no answer
                    reply.add_event(decode_event(value))
        if missing != [reply.missing for reply in replies]:
            on_answer()
        if not any(reply.missing for reply in replies):
            answered.set()

    events = target_follower(settings, "commands", events_topic(flow, group_id), hear, from_beginning=False)
    events.start()
    try:
        async with producing(settings, within) as producer:
            await events.caught_up(silent_s=within)  # every answer comes after this
            log = ControlTopicLog(producer, commands_topic(flow, group_id))
            requests = [reply.request for reply in replies]
            await asyncio.gather(
                *(log.append(*request.command.encode(), partition=request.commands_partition) for request in requests)
            )
            await wait_for_answer(answered, events.failed(), within)
    finally:
        events.end()  # its thread is not waited for: that takes up to half a second
    if missing := sorted({name for reply in replies for name in reply.missing}):
        try:
            members = await count_replicas(target, settings, missing)
        except ClusterError:
            return  # it only says more about what is missing; that it is missing is said anyhow
        for reply in replies:
            reply.members.update({name: members[name] for name in reply.missing if name in members})


@asynccontextmanager
async def producing(settings: FlowSettings, within: float, side: Side = "target") -> AsyncIterator[ControlProducer]:
    """Give a producer on one side. It raises NotAppended for what is not acknowledged in `within` seconds."""
    if side == "target":
        alias, conf = settings.flow.target, client_settings.target_producer(settings, "commands")
    else:
        alias, conf = settings.flow.source, client_settings.source_producer(settings, "canary")
    producer = ControlProducer(alias, conf, within=within, access=needed_access(settings, alias))
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def wait_for_answer(answered: asyncio.Event, failed: Coroutine[Any, Any, None], within: float) -> None:
    """Wait for the answer, at most `within` seconds. It raises what `failed` raises in that time."""
    try:
        async with asyncio.timeout(within) as limit:
            await run_unless_set(answered, failed)
    except TimeoutError:
        if not limit.expired():
            raise
