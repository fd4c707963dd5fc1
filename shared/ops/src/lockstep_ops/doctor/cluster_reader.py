"""Reads the answers of a cluster that accepts the login: its brokers, its clock, its id."""

from lockstep_config.credentials.permissions import THE_CLUSTER
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.session.broker_session import QuestionRefused
from lockstep_ops.doctor.access_reader import AccessReader
from lockstep_ops.doctor.checks.check import CheckFinding
from lockstep_ops.doctor.checks.cluster import ClockFacts, ClusterFacts, judge_two_clusters
from lockstep_ops.doctor.cluster_checks import PathFault, compare_clusters, reach_cluster

BANDWIDTH_HELPS = "With --bandwidth a record on the target shows the clock of a broker there."


async def read_cluster(
    reading: AccessReader, admin: Admin, within_s: float, *, is_measured_later: bool
) -> ClusterFacts:
    """Ask the cluster with Lockstep's own admin client, and then on the open connection.

    Args:
        reading: The way to the cluster, with the open connection.
        admin: The admin client.
        within_s: The seconds that it may take.
        is_measured_later: The scratch topic shows the clock, so it is not read now.
    """
    reached, trouble, is_fatal = "", "", False
    try:
        reached = await reach_cluster(admin, within_s)
    except PathFault as exc:
        trouble = str(exc)
    except ClusterError as exc:
        trouble, is_fatal = str(exc), True
    return ClusterFacts(
        access=reading.facts,
        reached=reached,
        trouble=trouble,
        is_out_of_reach=is_fatal,
        clock=await _read_clock(reading, admin, is_measured_later=is_measured_later),
    )


async def compare_two_clusters(flow: str, source: Admin, target: Admin) -> CheckFinding:
    """Return the finding whether the flow's aliases lead to two clusters."""
    try:
        return judge_two_clusters(flow, await compare_clusters(source, target), "")
    except (PathFault, ClusterError) as exc:
        return judge_two_clusters(flow, "", str(exc))


async def _read_clock(reading: AccessReader, admin: Admin, *, is_measured_later: bool) -> ClockFacts:
    if reading.session is None:
        return ClockFacts(trouble="there is no connection to ask on")
    try:
        clock = await reading.session.controller_clock()
    except QuestionRefused as exc:
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
