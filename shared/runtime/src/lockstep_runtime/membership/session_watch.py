"""Watch what a session of a flow was begun for: two clusters, and the control topics on them.

Another cluster at the same address, or another state topic, ends the session. Other control topics that are gone are
created again. Configs of control topics that readers cannot use are corrected.
"""

import asyncio
from collections.abc import Collection, Mapping, Set

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterError, ClusterReplaced, TopicMissing, TopicReplaced
from lockstep_kafka.topics.control_topic_faults import ControlTopicUnfit
from lockstep_kafka.topics.control_topics import ControlTopic, flow_topics, service_topics
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.flow.control_topic_creation import create_control_topics
from lockstep_runtime.membership.control_topic_guard import ControlTopicGuard
from lockstep_runtime.membership.topic_losses import TopicLosses
from lockstep_state.names import state_topic

CLUSTER_CHECK_INTERVAL_S = 15.0
"""Least seconds between two requests for a cluster's id.

Each of them lists all topics. A request for one topic that we may not describe would be a denial in the broker's log.
"""

CLUSTER_CHECK_PAUSES = 200
"""The pause after such a request, as a multiple of its duration, where a cluster has very many topics."""

CHECK_INTERVAL_S = 4.0
"""Seconds between two checks.

A topic counts as deleted when two checks do not find it: a broker that has just started may not know it yet.
"""


class SessionWatch:
    """Watch one session: `begin` when the control topics exist, then `run`."""

    def __init__(self, ctx: FlowContext, cluster_ids: dict[str, str], losses: TopicLosses) -> None:
        """Take the `cluster_ids` by alias and the `losses` of topics that this session and those before have found."""
        self._ctx = ctx
        self._losses = losses
        settings = ctx.settings
        self._state = state_topic(ctx.flow, settings.group_id)
        self._flow_topics = {
            topic.name: topic for topic in flow_topics(ctx.flow, settings.group_id, settings.control.replication_factor)
        }
        self._guard = ControlTopicGuard(ctx, self._flow_topics)
        self._cluster_ids = cluster_ids
        self._first: Mapping[str, str] = {}
        """Ids of the topics on the target by name, as this session has found them first."""

    @property
    def target_id(self) -> str:
        """Return the id of the target's cluster, once `begin` has returned."""
        return self._cluster_ids[self._ctx.target.alias]

    @property
    def state_id(self) -> str:
        """Return the topic id of the state topic, once `begin` has returned; "" if the brokers have none."""
        return self._first.get(self._state, "")

    async def begin(self, created: Collection[str]) -> ClusterReplaced | None:
        """Note what is on the target now. `created` has the names of topics that this session has created.

        Returns:
            How the cluster differs from that of the session before, which may have ended for another reason.

        Raises:
            ControlTopicUnfit: The flow's topics cannot be used as they are.
            ClusterError: The target does not answer.
        """
        target, replaced = self._ctx.target, None
        await self._guard.check(target, self._flow_topics.values())
        try:
            await self._check_cluster(target)
        except ClusterReplaced as exc:
            replaced = exc
        self._first = await self._describe(target, self._flow_topics)
        self._losses.observe(target.alias, self._first, created=created)
        return replaced

    async def run(self) -> None:
        """Watch until the session has to end. A cluster that does not answer ends nothing here.

        Raises:
            ClusterReplaced: Another cluster answers at the address.
            TopicMissing: The state topic was deleted.
            TopicReplaced: The state topic was created again.
            ControlTopicUnfit: A topic of the flow cannot be used as it is.
        """
        async with asyncio.TaskGroup() as tasks:
            for admin in (self._ctx.source, self._ctx.target):
                tasks.create_task(self._watch(admin))

    async def _watch(self, admin: Admin) -> None:
        missing: Set[str] = frozenset()
        clock, cluster_due = self._ctx.clock, 0.0
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            try:
                if (began := clock.monotonic()) >= cluster_due:
                    await self._check_cluster(admin)
                    duration_s = clock.monotonic() - began
                    cluster_due = began + max(CLUSTER_CHECK_INTERVAL_S, CLUSTER_CHECK_PAUSES * duration_s)
                topics = self._needed_topics(admin.alias)
                ids = await self._describe(admin, topics)
                missed, missing = missing, topics.keys() - ids.keys()
                self._losses.observe(admin.alias, ids, missing & missed)
                if admin is self._ctx.target:
                    self._check_state(ids, missing & missed)
                if deleted := [topics[name] for name in sorted(missing & missed)]:
                    await create_control_topics(self._ctx, admin, deleted)
                if admin is self._ctx.target:
                    await self._report_losses()
                if self._ctx.is_acting:
                    await self._guard.check_if_due(admin, topics.values())
                if admin is self._ctx.target:
                    await self._guard.report()
            except (ClusterReplaced, ControlTopicUnfit, TopicMissing, TopicReplaced):
                raise
            except ClusterError as trouble:
                self._ctx.log.debug("control topics not checked", str(trouble))

    async def _report_losses(self) -> None:
        """Report losses. The events topic may be one of the lost topics, which does not end the session."""
        try:
            await self._losses.report()
        except ClusterError as trouble:
            self._ctx.log.debug("lost control topics not reported yet", str(trouble))

    def _needed_topics(self, alias: str) -> Mapping[str, ControlTopic]:
        """Return the topics that we create on that cluster: the flow's, and those of the service while we act."""
        topics = dict(self._flow_topics) if alias == self._ctx.target.alias else {}
        return topics | self._service_topics(alias)

    def _service_topics(self, alias: str) -> dict[str, ControlTopic]:
        ctx = self._ctx
        if not (ctx.is_acting and ctx.should_run):
            return {}
        return {
            topic.name: topic
            for topic_alias, topic in service_topics(ctx.settings, ctx.service)
            if topic_alias == alias
        }

    async def _describe(self, admin: Admin, topics: Mapping[str, ControlTopic]) -> Mapping[str, str]:
        """Return the id of each topic that exists. One that we may not describe counts as existing, without an id."""
        if not topics:
            return {}
        described = await admin.topics(topics)
        ids = {name: topic.topic_id for name, topic in described.done.items()}
        return dict.fromkeys(described.troubles(), "") | ids

    async def _check_cluster(self, admin: Admin) -> None:
        now = await admin.cluster_id()
        before = self._cluster_ids.get(admin.alias, now)
        self._cluster_ids[admin.alias] = now
        if now != before:
            self._losses.forget(admin.alias)
            raise ClusterReplaced(admin.alias, before, now)

    def _check_state(self, ids: Mapping[str, str], missing: Collection[str]) -> None:
        alias, before, now = self._ctx.target.alias, self.state_id, ids.get(self._state, "")
        if before and now and before != now:
            raise TopicReplaced(alias, self._state, before, now)
        if self._state in missing:
            raise TopicMissing(alias, self._state)


def is_another_state(former: tuple[str, str], present: tuple[str, str], *, is_new: bool) -> bool:
    """Return whether the state topic is another one than in the session before, on the same cluster.

    Args:
        former: Ids of the cluster and of the topic in the session before; "" is unknown and not compared.
        present: Their ids now.
        is_new: This session has created the topic.
    """
    if not former[0] or former[0] != present[0]:
        return False
    return is_new or bool(former[1] and present[1] and former[1] != present[1])
