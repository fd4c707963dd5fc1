"""Examines the categories of `lockstep doctor` in their order: reads what each needs, and has it judged.

A failure that ends a category for a cluster ends the later ones for it too, and for its flows. The examination of
`lockstep probe` has some of the categories, and a time at which it ends.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from itertools import chain
from math import inf

from lockstep_config import Configuration, FlowSettings
from lockstep_config.resolve.precedence import SIDES, Side
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterError
from lockstep_ops.cluster_snapshot import ClusterSnapshot
from lockstep_ops.clusters import cluster_roles, connection_client, source_client, target_client
from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.access import judge_connection, judge_login, judge_names
from lockstep_ops.doctor.checks.capabilities import judge_capabilities
from lockstep_ops.doctor.checks.certificates import judge_tls
from lockstep_ops.doctor.checks.check import Category, CheckFinding, DoctorCheck, until_fatal
from lockstep_ops.doctor.checks.cluster import judge_cluster
from lockstep_ops.doctor.checks.limits import judge_limits
from lockstep_ops.doctor.checks.machine import judge_machine
from lockstep_ops.doctor.checks.options import DoctorOptions
from lockstep_ops.doctor.checks.report import CategoryFindings, DoctorReport
from lockstep_ops.doctor.cluster_connections import (
    ClusterConnection,
    ConnectionKey,
    cluster_connections,
    main_key,
    required_requests,
)
from lockstep_ops.doctor.connection_examination import ConnectionExamination
from lockstep_ops.doctor.flow_clusters import FlowClusters
from lockstep_ops.doctor.flow_examination import examine_flow, examine_rights
from lockstep_ops.doctor.limit_reader import read_limits
from lockstep_ops.doctor.machine_reader import read_machine, read_pod
from lockstep_ops.doctor.path_examination import compare_two_clusters, probe_exit, read_cluster
from lockstep_rules.clusters.cluster_capabilities import capabilities_of

WAY = (Category.NAMES, Category.CONNECTION, Category.TLS, Category.LOGIN, Category.CLUSTER, Category.CAPABILITIES)
"""Categories about clusters: each needs those before it, and the later ones need all of them."""

ATTEMPTS = 4
"""Attempts to connect to a cluster, in a row, for which the time of an examination with an end has to suffice."""

LEAST_S = 1.0
"""Seconds that an attempt to connect, or a category of a flow, may last in any case."""

GRACE_S = 0.2
"""Seconds by which a category may outlast its requests, so that their own messages say what they waited for."""


@dataclass(slots=True)
class _Cluster:
    """A cluster as some clients reach it, and the finding that ended its checks."""

    connection: ClusterConnection
    examination: ConnectionExamination
    snapshot: ClusterSnapshot
    ended_by: CheckFinding | None = None


class Examination:
    """An examination of some flows of a file.

    Args:
        on_category: It is called with each category when that is complete.
        on_step: It is called with the text of each step, and with the seconds that the step may last.
    """

    def __init__(
        self,
        configuration: Configuration,
        flows: Sequence[FlowSettings],
        options: DoctorOptions,
        on_category: Callable[[CategoryFindings], None],
        on_step: Callable[[str, float], None],
    ) -> None:
        self._configuration = configuration
        self._flows = flows
        self._options = options
        self._on_category = on_category
        self._on_step = on_step
        self._clusters: dict[ConnectionKey, _Cluster] = {}
        self._targets = {settings.flow.target for settings in flows}

    async def run(self) -> DoctorReport:
        """Examine all categories that were asked for, in their order.

        Categories that these need are read too, and are not in the report.
        """
        categories = []
        async with AsyncExitStack() as stack:
            for category in self._needed():
                self._on_step(category.heading, self._left_s())
                if category in WAY and not self._clusters:
                    await self._examine_connections(stack)
                findings = CategoryFindings(category, tuple(await self._examine(category)))
                if category in self._options.categories:
                    categories.append(findings)
                    self._on_category(findings)
        return DoctorReport(tuple(categories))

    def _needed(self) -> Iterator[Category]:
        wanted, order = self._options.categories, list(Category)
        last_position = max(order.index(category) for category in wanted)
        for position, category in enumerate(order):
            if category in wanted or (category in WAY and position < last_position):
                yield category

    def _left_s(self) -> float:
        """Return the seconds that a request or a wait may last now."""
        return max(0.0, min(self._options.within_s, self._options.ends_at - time.monotonic()))

    async def _examine_connections(self, stack: AsyncExitStack) -> None:
        """Connect to each cluster on each of its connections, all at once."""
        within_s, has_end = self._options.within_s, self._options.ends_at != inf
        attempt_s = max(within_s / ATTEMPTS, min(within_s, LEAST_S)) if has_end else within_s
        for key, connection in cluster_connections(self._flows).items():
            required = required_requests(self._flows, key[0])
            is_tried = connection.is_main and Category.CAPABILITIES in self._options.categories
            roles = cluster_roles(self._flows, key[0])
            tried = [capability.request for capability in capabilities_of(roles)] if is_tried else []
            examination = ConnectionExamination(connection.subject, connection.properties, attempt_s, required, tried)
            snapshot = ClusterSnapshot(_admin(connection, self._options.ends_at))
            self._clusters[key] = _Cluster(connection, examination, snapshot)
            stack.push_async_callback(examination.close)
        names_only = set(self._options.categories) <= {Category.MACHINE, Category.NAMES}
        left_s = self._left_s() if has_end else None

        async def examine(examination: ConnectionExamination) -> None:
            try:
                async with asyncio.timeout(left_s):
                    await (examination.resolve() if names_only else examination.examine())
            except TimeoutError:
                examination.give_up(f"no answer within {within_s:g} s")

        await asyncio.gather(*(examine(cluster.examination) for cluster in self._clusters.values()))

    async def _examine(self, category: Category) -> Iterable[CheckFinding]:
        if category is Category.MACHINE:
            facts = await asyncio.to_thread(read_machine, os.environ)
            pod = await read_pod(os.environ, self._configuration.sources.files, self._left_s())
            return judge_machine(facts, pod)
        if category in WAY:
            return await self._examine_clusters(category)
        if self._options.ends_at == inf:
            return [finding for settings in self._flows for finding in await self._examine_flow(category, settings)]
        # No flow waits for another one that uses up the time.
        findings = await asyncio.gather(*(self._examine_flow(category, settings) for settings in self._flows))
        return chain.from_iterable(findings)

    async def _examine_clusters(self, category: Category) -> Sequence[CheckFinding]:
        """Return findings about each cluster in the order of the flows, then those about each flow.

        Only a category with the check `TWO_CLUSTERS` has findings about a flow.
        """
        clusters = [
            cluster
            for cluster in self._clusters.values()
            if not (category is Category.NAMES and self._has_names_of_main(cluster))
            and (category is not Category.CAPABILITIES or cluster.connection.is_main)
        ]
        findings = await asyncio.gather(*(self._examine_cluster(category, cluster) for cluster in clusters))
        all_findings = list(chain.from_iterable(findings))
        if category is Category.CLUSTER:
            all_findings += [await self._compare(settings) for settings in self._flows]
        return all_findings

    async def _examine_cluster(self, category: Category, cluster: _Cluster) -> Sequence[CheckFinding]:
        """Return the findings about one cluster. A fatal one ends its checks, those of later categories too."""
        checks = [check for check in registry.checks_in(category) if check is not registry.TWO_CLUSTERS]
        alias = cluster.connection.subject
        if cluster.ended_by is not None:
            return [check.not_reached(alias, cluster.ended_by) for check in checks]
        judged = list(until_fatal(alias, checks, await self._judge(category, cluster)))
        cluster.ended_by = next((finding for finding in judged if finding.is_fatal), None)
        return judged

    async def _judge(self, category: Category, cluster: _Cluster) -> Iterable[CheckFinding]:
        facts = cluster.examination.facts
        match category:
            case Category.NAMES:
                return judge_names(facts)
            case Category.CONNECTION:
                return judge_connection(facts)
            case Category.TLS:
                return judge_tls(facts, time.time())
            case Category.LOGIN:
                return judge_login(facts)
            case Category.CAPABILITIES:
                return judge_capabilities(facts, cluster_roles(self._flows, cluster.connection.alias))
        is_measured_later = self._options.bandwidth and cluster.connection.alias in self._targets
        cluster_facts = await read_cluster(
            cluster.examination, cluster.snapshot.admin, self._left_s(), is_measured_later=is_measured_later
        )
        main, mine = self._main(cluster).examination.facts.cluster_id, facts.cluster_id
        other_id = main if main and mine and main != mine else ""
        return judge_cluster(replace(cluster_facts, other_id=other_id))

    def _main(self, cluster: _Cluster) -> _Cluster:
        """Return the same cluster as its main clients reach it."""
        alias = cluster.connection.alias
        mains = (candidate for candidate in self._clusters.values() if candidate.connection.is_main)
        return next(main for main in mains if main.connection.alias == alias)

    def _has_names_of_main(self, cluster: _Cluster) -> bool:
        """Return whether the main connection of this cluster has the same bootstrap servers.

        Checks of their names would say nothing more.
        """
        main = self._main(cluster)
        return cluster is not main and cluster.connection.bootstrap == main.connection.bootstrap

    def _side(self, settings: FlowSettings, side: Side) -> _Cluster:
        """Return a cluster of a flow, on the connection of the flow's admin client."""
        return self._clusters[main_key(settings, side)]

    async def _compare(self, settings: FlowSettings) -> CheckFinding:
        if cause := self._ended(settings):
            return registry.TWO_CLUSTERS.not_reached(str(settings.flow), cause)
        source, target = (self._side(settings, side).snapshot.admin for side in SIDES)
        return await compare_two_clusters(str(settings.flow), source, target)

    def _ended(self, settings: FlowSettings) -> CheckFinding | None:
        """Return the finding that ended the checks of one of the flow's clusters."""
        both = (self._side(settings, side).ended_by for side in SIDES)
        return next((finding for finding in both if finding is not None), None)

    async def _examine_flow(self, category: Category, settings: FlowSettings) -> Sequence[CheckFinding]:
        flow, checks = str(settings.flow), self._flow_checks(category)
        if cause := self._ended(settings):
            return [check.not_reached(flow, cause) for check in checks]
        source, target = (self._side(settings, side) for side in SIDES)
        clusters = FlowClusters(
            settings, source.snapshot, target.snapshot, source.examination.session, target.examination.session
        )
        within_s = self._left_s()
        try:
            if category is Category.FLOW:
                return await examine_flow(clusters, replace(self._options, within_s=within_s), self._on_step)
            async with asyncio.timeout(max(within_s, LEAST_S) + GRACE_S):
                if category is Category.RIGHTS:
                    return await examine_rights(clusters)
                return list(judge_limits(await read_limits(clusters)))
        except (TimeoutError, ClusterError) as exc:
            text = str(exc) if isinstance(exc, ClusterError) else f"no answer within {within_s:.3g} s"
            return [check.unknown(flow, text, probe_exit=probe_exit(exc)) for check in checks]

    def _flow_checks(self, category: Category) -> Sequence[DoctorCheck]:
        """Return the checks of a category that these options ask for."""
        checks = registry.checks_in(category)
        if category is not Category.FLOW:
            return checks
        wanted = [registry.HEARTBEAT]
        if self._options.canary_topic is not None:
            wanted.append(registry.CANARY)
        return [
            check for check in checks if check in wanted or (self._options.bandwidth and check in registry.BANDWIDTH)
        ]


def _admin(connection: ClusterConnection, ends_at: float) -> Admin:
    if connection.is_main:
        return (source_client if connection.side == "source" else target_client)(connection.settings, ends_at=ends_at)
    return connection_client(connection.settings, connection.alias, connection.properties, ends_at=ends_at)
