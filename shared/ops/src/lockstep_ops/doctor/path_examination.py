"""Examines a path by Lockstep's own clients: reach of a cluster, two clusters that differ, a heartbeat, a canary."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import THE_CLUSTER
from lockstep_kafka.admin.admin import PROBE, Admin
from lockstep_kafka.common.errors import AdvertisedAddressUnresolved, ClusterError, ClusterUnreachable, NotAppended
from lockstep_kafka.session.broker_session import BrokerRequestFailed
from lockstep_kafka.topics.topic_follower import target_follower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.command_client import producing, wait_for_answer
from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.check import CheckFinding
from lockstep_ops.doctor.checks.cluster import ClockFacts, ClusterFacts
from lockstep_ops.doctor.connection_examination import ConnectionExamination
from lockstep_ops.exit_codes import Exit
from lockstep_state.codecs.mm2_codec import MalformedRecord, UnsupportedRecordVersion, decode_heartbeat

LEAST_PROBE_S = 0.5
"""Seconds that must be left for another look at a cluster that did not answer."""


BANDWIDTH_HELPS = "With --bandwidth a record on the target shows the clock of a broker there."


class PathFault(Exception):
    """Something answers and is not as it has to be. The message says what it is, and what to do."""


def probe_exit(exc: Exception) -> Exit:
    """Return the exit code of `lockstep probe` after an error of a check."""
    return Exit.NO_ANSWER if isinstance(exc, ClusterUnreachable | NotAppended | TimeoutError) else Exit.TROUBLE


async def read_cluster(
    connection: ConnectionExamination, admin: Admin, within_s: float, *, is_measured_later: bool
) -> ClusterFacts:
    """Ask the cluster with Lockstep's own admin client, and at the same time on the open connection.

    Args:
        connection: The examined connection to the cluster.
        admin: The admin client.
        within_s: The seconds that it may take.
        is_measured_later: The scratch topic shows the clock, so it is not read now.
    """
    (trouble, is_out_of_reach), clock = await asyncio.gather(
        _find_trouble(admin, within_s), _read_clock(connection, admin, is_measured_later=is_measured_later)
    )
    reached = "" if trouble else admin.bootstrap
    return ClusterFacts(connection.facts, reached, trouble, is_out_of_reach=is_out_of_reach, clock=clock)


async def _find_trouble(admin: Admin, within_s: float) -> tuple[str, bool]:
    """Return what is wrong with the cluster or "", and whether it does not answer at all."""
    try:
        await _reach_brokers(admin, within_s)
    except PathFault as exc:
        return str(exc), False
    except ClusterError as exc:
        return str(exc), True
    return "", False


async def _reach_brokers(admin: Admin, within: float) -> None:
    """Wait until the cluster answers and each broker accepts connections.

    Brokers are reached at their advertised addresses. All of it takes `within` seconds at most.

    Raises:
        PathFault: Some brokers cannot be reached.
        ClusterError: The cluster does not answer.
    """
    ends_at = time.monotonic() + within
    try:
        await admin.probe(min(PROBE, timedelta(seconds=within)))
    except AdvertisedAddressUnresolved:
        raise
    except ClusterError:
        if (remaining := ends_at - time.monotonic()) < LEAST_PROBE_S:
            raise
        await admin.probe(timedelta(seconds=remaining))
    remaining = max(LEAST_PROBE_S, ends_at - time.monotonic())
    if unreachable := await admin.unreachable_brokers(min(PROBE, timedelta(seconds=remaining))):
        raise PathFault(
            f"{admin.bootstrap} answers, and names brokers that cannot be reached from here: "
            + "; ".join(f"{broker} ({reason})" for broker, reason in unreachable.items())
            + ". Set advertised.listeners of these brokers to addresses that are known here"
        )


async def _read_clock(connection: ConnectionExamination, admin: Admin, *, is_measured_later: bool) -> ClockFacts:
    if connection.session is None:
        return ClockFacts(trouble="there is no connection to ask on")
    try:
        clock = await connection.session.controller_clock()
    except BrokerRequestFailed as exc:
        if is_measured_later:
            return ClockFacts(is_measured_later=True)
        if exc.is_denied:
            command = admin.access.remedy("cluster", THE_CLUSTER, "Describe").command
            trouble = f"{admin.alias} does not permit us to ask its controller"
            return ClockFacts(trouble=trouble, fix=f"{BANDWIDTH_HELPS} To let it be asked: {command}")
        if exc.is_unknown:
            return ClockFacts(
                trouble=f"{admin.alias} does not say its time: it does not know DescribeQuorum (Kafka 3.3)",
                fix=BANDWIDTH_HELPS,
            )
        return ClockFacts(trouble=str(exc), fix=BANDWIDTH_HELPS)
    return ClockFacts(clock.node, clock.ahead_ms, clock.error_ms)


async def compare_two_clusters(flow: str, source: Admin, target: Admin) -> CheckFinding:
    """Return the finding whether the flow's aliases lead to two clusters."""
    try:
        source_id, target_id = await asyncio.gather(source.cluster_id(), target.cluster_id())
    except ClusterError as exc:
        return registry.TWO_CLUSTERS.failed(flow, str(exc), probe_exit=probe_exit(exc))
    if source_id != target_id:
        return registry.TWO_CLUSTERS.ok(flow, f"cluster ids {source_id} and {target_id}")
    places = f"{source.alias} at {source.bootstrap} and {target.alias} at {target.bootstrap}"
    text = (
        f"{places} are one cluster ({source_id}): name the address of the other one; until then "
        "topics whose names begin with either alias are not mirrored"
    )
    return registry.TWO_CLUSTERS.failed(flow, text, probe_exit=Exit.TROUBLE)


async def await_heartbeat(settings: FlowSettings, within: float) -> str:
    """Wait for a heartbeat of the flow on the target, and return how long it took, as a text.

    Raises:
        PathFault: None came in time.
    """
    aliases = settings.aliases

    def ours(record: Record) -> bool:
        try:
            beat = decode_heartbeat(record.key, record.value)
        except (MalformedRecord, UnsupportedRecordVersion):
            return False
        return (beat.source, beat.target) == (aliases.source, aliases.target)

    arrival_s = await _arrival(settings, settings.policy.heartbeats_topic(), ours, within)
    if arrival_s is None:
        raise PathFault(
            f"none came within {within:.3g} s: does the service heartbeat run? Its pages and lockstep status say more"
        )
    return f"came after {arrival_s:.1f} s"


async def send_canary(settings: FlowSettings, topic: str, within: float) -> str:
    """Write a record to a topic of the source, and return how long it took to arrive on the target, as a text.

    Raises:
        PathFault: The flow does not mirror the topic, or the record did not arrive in time.
    """
    alias, flow = settings.flow.source, settings.flow
    if not settings.replicates(topic):
        raise PathFault(f"{flow} does not mirror {topic}: name a topic that it does")
    mark = f"lockstep canary {uuid.uuid4()}".encode()
    remote = settings.remote_topic(topic)

    async def write(within_s: float) -> None:
        async with producing(settings, within_s, "source") as producer:
            await producer.send(topic, mark, mark, None, None)

    arrival_s = await _arrival(settings, remote, lambda record: record.key == mark, within, begin=write)
    if arrival_s is None:
        raise PathFault(f"was written to {alias} and did not arrive in {remote} within {within:.3g} s")
    return f"arrived in {remote} after {arrival_s:.1f} s"


async def _arrival(
    settings: FlowSettings,
    topic: str,
    is_meant: Callable[[Record], bool],
    within: float,
    begin: Callable[[float], Awaitable[None]] | None = None,
) -> float | None:
    """Return the seconds from `begin` until a meant record arrives in a topic of the target.

    Args:
        settings: The flow.
        topic: The topic of the target.
        is_meant: It tells whether a record is the one.
        within: The seconds that all of it may take.
        begin: It is called with the seconds that are left, once the topic's end is reached.

    Returns:
        None if no such record arrives in time.

    Raises:
        TimeoutError: The topic's end is not reached in time.
        ClusterError: The cluster does not answer, or TopicMissing.
    """
    arrived = asyncio.Event()

    def hear(records: Sequence[Record]) -> None:
        if any(is_meant(record) for record in records):
            arrived.set()

    ends_at = time.monotonic() + within
    follower = target_follower(settings, "probe", topic, hear, from_beginning=False)
    follower.start()
    try:
        await asyncio.wait_for(follower.caught_up(), within)
        began = time.monotonic()
        if begin is not None:
            await begin(ends_at - began)
        await wait_for_answer(arrived, follower.failed(), ends_at - time.monotonic())
        return time.monotonic() - began if arrived.is_set() else None
    finally:
        follower.end()  # its thread is not waited for: that takes up to half a second
