"""One service in one flow, from the first contact with the target to the last: replay, join, lead, act, stand down.

Each session begins by reaching the target. It ends with a `ClusterError` or a crash of the group's consumer, and the
next one begins after a pause (`restarts.md`). A session also ends, in order, when other credentials are to be used.
All clients end with it, and the next one begins at once. `status` keeps what a session has found. Independent of
Faust: the group comes in as `Membership`.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from lockstep_config import FlowSettings
from lockstep_config.credentials.certificate_expiry import CertificateEnds, certificate_ends
from lockstep_config.flow import client_settings
from lockstep_config.flow.client_settings import StoresUnusable
from lockstep_kafka.common.asyncio_util import run_unless_set, to_next_tick, without_end
from lockstep_kafka.common.errors import ClusterError, ClusterReplaced, errors_in
from lockstep_kafka.librdkafka.control_producer import ACTS_WITHIN, ControlProducer, ControlTopicLog
from lockstep_kafka.topics.control_topics import ensure_control_topics, flow_topics
from lockstep_kafka.topics.topic_follower import TopicFollower, target_follower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.flow.context import FlowContext, FlowService
from lockstep_runtime.flow.control_topic_creation import log_created, report_refused_configs
from lockstep_runtime.membership.group_watch import GroupWatch, InstanceTaken
from lockstep_runtime.membership.leader_loop import TICK, LeaderLoop
from lockstep_runtime.membership.session_watch import SessionWatch, is_another_state
from lockstep_runtime.membership.topic_losses import TopicLosses
from lockstep_runtime.membership.trouble_reporter import TroubleReporter
from lockstep_runtime.util.task_restarts import TaskRestarts
from lockstep_state.names import Flow, events_topic, state_topic

WORKS_AFTER = 5.0
"""Seconds a main loop has to run after a trouble of its own before it is logged as recovered."""

FORGETS_AFTER = 60.0
"""Seconds after which a replica that does not act forgets what failed while it did.

The leader retries it, or it is over. A replica that leads again sooner logs that its troubles are over.
"""

SESSION_ENDS = "this life of the flow ends"
STUCK = 20.0
"""Seconds without a tick of the event loop after which the flow does not count as alive."""


class Membership(Protocol):
    """The membership of this instance in the service's group on the target."""

    async def join(self) -> None:
        """Start. Assignments arrive through methods of the runner. Raises GroupLost."""

    async def ended(self) -> None:
        """Wait for ever; raise GroupLost when the consumer has crashed."""

    async def leave(self) -> None:
        """Stop within a few seconds."""


class FlowRunner:
    """Run a service for its `FlowContext`."""

    def __init__(
        self,
        ctx: FlowContext,
        service: FlowService,
        memberships: "Callable[[FlowRunner], Membership]",
    ) -> None:
        """Take what makes a membership for each session; a membership calls methods of this runner."""
        self.ctx = ctx
        self._service = service
        self._work_name = f"the whole of {ctx.service}"
        """The name of a trouble of the whole service. The service's name may be that of one of its rounds."""
        self._lead = LeaderLoop(ctx, service, self._work_name)
        self._memberships = memberships
        self._replayed_at: float | None = None
        self._ticked_at = self._acted_at = ctx.clock.monotonic()
        self._instance = ctx.instance
        """The instance name of the configuration; another process may have it as well."""
        self._renamed_to: InstanceTaken | None = None
        """The error that gave this instance another name, until an event reports it."""
        self._replaced: ClusterReplaced | None = None
        """The error of a session that ended because another cluster answered, until an event reports it."""
        self._cluster_ids: dict[str, str] = {}
        self._losses = TopicLosses(ctx)
        self._former_ids = ("", "")
        """Ids of the target's cluster and of the state topic in the session before."""
        self._renewed: FlowSettings | None = None
        self._renewing = asyncio.Event()
        self._restarts = TaskRestarts(self._report, ctx.clock.monotonic, longest_s=10.0, wake=self._renewing)
        self._group_watch = GroupWatch(ctx)
        self.rebalancing = False
        """The group is about to assign this instance's share of the work."""
        self.certificates: tuple[CertificateEnds, ...] = ()
        """When the certificates expire that the clients of the present session were made with."""

    # -- state ---------------------------------------------------------------------------------------------------------

    @property
    def flow(self) -> Flow:
        return self.ctx.flow

    @property
    def is_acting(self) -> bool:
        return self.ctx.is_acting

    @property
    def rejoins(self) -> bool:
        """Return whether the next membership is that of a new member, without the instance's former partitions."""
        return self._group_watch.rejoins

    @property
    def degraded(self) -> bool:
        """Return whether something in the flow fails and is retried."""
        return bool(self.ctx.periodic.troubles.now)

    @property
    def ready(self) -> bool:
        """Return whether the target's control topics have been replayed at least once."""
        return self._replayed_at is not None

    @property
    def ready_for(self) -> timedelta:
        """Return for how long the flow has been `ready`; zero if it is not."""
        began = self._replayed_at
        return timedelta() if began is None else timedelta(seconds=self.ctx.clock.monotonic() - began)

    def find_stall(self) -> str | None:
        blocked_s = self.ctx.clock.monotonic() - self._ticked_at
        return f"{self.ctx.flow}: nothing moved for {blocked_s:.0f} s" if blocked_s > STUCK else None

    def status(self) -> Mapping[str, Any]:
        """Return the service's own JSON values, and those of its membership, leadership and troubles."""
        ctx = self.ctx
        troubles = ctx.periodic.troubles.now | ctx.remote_troubles.now
        return {
            **self._service.status(),
            "ready": self.ready,
            "degraded": self.degraded,
            "instance": ctx.instance,
            "acting": ctx.is_acting,
            "wanted": ctx.desired_state.connector(ctx.connector).word,
            "standing": ctx.leadership_state.value,
            "term": ctx.term,
            "leader": ctx.leadership.leader(0),
            "partitions": sorted(ctx.leadership.held),
            "troubles": troubles,
            "unreadable": {"counts": ctx.unreadable.counts, "present": list(ctx.unreadable.present)},
            "restarts": self._restarts.failures,
            "state_position": ctx.state.position,
        }

    # -- sessions ------------------------------------------------------------------------------------------------------

    async def renew(self, settings: FlowSettings) -> None:
        """Go on with settings that differ in credentials: the present session ends in order, the next one has them."""
        self._renewed = settings
        self._renewing.set()

    async def run(self) -> None:
        """Run sessions until cancelled, and report what fails. Raises only what is no ClusterError."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(without_end("the report of troubles", TroubleReporter(self.ctx).run()))
            tasks.create_task(without_end("the tick", self._tick()))
            await self._restarts.run_forever(self._run_session)

    async def _run_session(self) -> None:
        try:
            await self._apply_settings()
            await run_unless_set(self._renewing, self._session())
        except* StoresUnusable as group:
            raise ClusterError(self.ctx.target.alias, str(next(errors_in(group)))) from group

    def _report(self, error: ClusterError) -> None:
        self.ctx.periodic.troubles.record_failure("target", error)
        if isinstance(error, ClusterReplaced):
            self._replaced = error
        if isinstance(error, InstanceTaken):
            self._renamed_to = error
            self.ctx.instance = f"{self._instance}-{secrets.token_hex(2)}"

    async def _apply_settings(self) -> None:
        """Use the settings that `renew` was given. No task has a client now."""
        self._renewing.clear()
        settings = self._renewed
        if settings is None:
            return
        ctx = self.ctx
        ctx.settings = settings
        clients = settings.clients
        await ctx.source.renew(client_settings.source_admin(settings, ctx.service), clients.source_admin)
        await ctx.target.renew(client_settings.target_admin(settings, ctx.service), clients.target_admin)
        self._restarts.backoff.reset()
        if self._renewed is settings:  # else newer ones came in, and what failed on the way comes again
            self._renewed = None

    async def _tick(self) -> None:
        while True:
            self._ticked_at = self.ctx.clock.monotonic()
            await asyncio.sleep(to_next_tick(TICK))

    async def _session(self) -> None:
        ctx, settings = self.ctx, self.ctx.settings
        try:
            self.certificates = await asyncio.to_thread(certificate_ends, settings)
        except OSError as exc:
            raise StoresUnusable(str(exc)) from exc
        await ctx.target.probe()
        factor = settings.control.replication_factor
        created = await ensure_control_topics(ctx.target, flow_topics(ctx.flow, settings.group_id, factor))
        log_created(ctx, ctx.target, created)
        watch = SessionWatch(ctx, self._cluster_ids, self._losses)
        if (replaced := await watch.begin(created.names)) is not None:
            self._replaced = replaced
            if self._renamed_to is not None:  # that was the group of another cluster, which does not know us
                ctx.instance, self._renamed_to = self._instance, None
        conf = client_settings.target_producer(settings, ctx.service)
        facts = ControlProducer(ctx.target.alias, conf, access=ctx.target.access)
        acts = ControlProducer(ctx.target.alias, conf, within=ACTS_WITHIN, access=ctx.target.access)
        await facts.start()
        try:
            ctx.open(acts, ControlTopicLog(facts, events_topic(ctx.flow, settings.group_id)))
            if (renamed := self._renamed_to) is not None:
                text = (
                    f"{ctx.instance}, for another process is {renamed.instance}: give each replica its own --instance"
                )
                await ctx.event("InstanceRenamed", ctx.instance, text, taken=renamed.instance)
                self._renamed_to = None
            if (replacement := self._replaced) is not None:
                await ctx.event(
                    "ClusterReplaced",
                    replacement.alias,
                    str(replacement),
                    cluster=replacement.alias,
                    before=replacement.before,
                    now=replacement.now,
                )
                self._replaced = None
            await report_refused_configs(ctx, ctx.target, created)
            await self._replay_and_serve(facts, watch, created.names)
        finally:
            await self._lead.stand_down(SESSION_ENDS)
            await asyncio.gather(facts.stop(), acts.stop())

    async def _replay_and_serve(self, facts: ControlProducer, watch: SessionWatch, created: Collection[str]) -> None:
        """Replay the state topic, join the group, and work. `created` has the topics that this session has created."""
        ctx = self.ctx
        topic = state_topic(ctx.flow, ctx.settings.group_id)
        ctx.leadership.reset()
        ctx.state.open(ControlTopicLog(facts, topic), self._on_claim, self._service.wants)
        async with target_follower(ctx.settings, ctx.service, topic, ctx.state.receive) as follower:
            await follower.caught_up()
            self._compare_state_topics(watch, is_new=topic in created)
            if not self.ready:
                self._replayed_at = ctx.clock.monotonic()
                ctx.log.info("ready", f"{topic} replayed to offset {ctx.state.position + 1}", ready=True)
            membership = self._memberships(self)
            self.rebalancing = True
            try:
                await membership.join()
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(follower.failed())
                    tasks.create_task(membership.ended())
                    tasks.create_task(without_end("the watch over the clusters", watch.run()))
                    tasks.create_task(without_end("the watch over the target", self._watch_target(follower)))
                    tasks.create_task(
                        without_end("the watch over the group", self._group_watch.run(lambda: follower.trouble))
                    )
                    tasks.create_task(without_end("the leadership", self._lead.run(tasks)))
            except* ClusterError as group:
                # Now, and not when all is cleaned up: that takes a while where brokers are away.
                self.ctx.periodic.troubles.record_failure("target", next(errors_in(group)))
                raise
            finally:
                await self._lead.stand_down(SESSION_ENDS)
                await membership.leave()

    def _compare_state_topics(self, watch: SessionWatch, *, is_new: bool) -> None:
        """Let the state log know whether the topic was replaced since the session before."""
        now = watch.target_id, watch.state_id
        replaced = is_another_state(self._former_ids, now, is_new=is_new)
        self.ctx.state.compare(replaced=replaced)
        if now[1] or replaced or now[0] != self._former_ids[0]:  # an unknown topic id changes nothing
            self._former_ids = now

    async def _watch_target(self, follower: TopicFollower) -> None:
        """Report when the target goes away and when it is back, as the follower's connection shows.

        While the target answers, a replica that stands by comes to forget what failed while it led.
        """
        troubles = self.ctx.periodic.troubles
        while True:
            if follower.trouble:
                self._acted_at = self.ctx.clock.monotonic()  # it cannot lead, and may when the target is back
                try:
                    await self.ctx.target.probe()
                except ClusterError as trouble:
                    troubles.record_failure("target", trouble)
                else:
                    follower.trouble_over()
            else:
                troubles.record_success("target")
                self._restarts.backoff.reset()
                now = self.ctx.clock.monotonic()
                if now - self._lead.acting_since > WORKS_AFTER:
                    troubles.record_success(self._work_name, answered=False)
                if self.ctx.is_acting:
                    self._acted_at = now
                elif now - self._acted_at > FORGETS_AFTER:
                    troubles.forget_all()
            await asyncio.sleep(to_next_tick(TICK))

    # -- called by the membership --------------------------------------------------------------------------------------

    def assigned(self, partitions: frozenset[int]) -> None:
        """Take the partitions of the commands topic that the group has assigned."""
        self.ctx.log.debug("group joined", f"commands partitions {sorted(partitions)}", partitions=sorted(partitions))
        self.ctx.leadership.assigned(partitions)
        self.rebalancing = False
        self._lead.wake()

    async def revoked(self) -> None:
        """Give up all partitions; acting has ended when this returns."""
        self.ctx.leadership.assigned(())
        self.rebalancing = True
        await self._lead.stand_down("the group divides the work anew")
        self._lead.wake()

    def on_heartbeat(self, sent_at: float) -> None:
        """Note that the group has answered a heartbeat that was sent at that time (`clock.monotonic`).

        The time of the answer does not count: an answer may have been in the socket while the process was frozen. May
        be called from any thread.
        """
        self.ctx.heartbeat_at = sent_at

    def receive_commands(self, records: Sequence[Record]) -> None:
        """Take commands that came through the group."""
        self._lead.receive_commands(records)

    def _on_claim(self, label: str, instance: str, offset: int) -> None:
        self._lead.read_claim(label, instance, offset, new=self.ready)
