"""topic-sync in one flow: look at both clusters, plan, apply, write down what is so.

Two rounds. Topics: every two seconds names and partition counts, and ids and details when those changed or every ten
seconds. Configs: each `sync.topic.configs.interval.seconds`. A topic that fails is tried again with back-off of its
own and stops no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from lockstep_protocol.commands import Command
from lockstep_protocol.state import MirroredTopic, Row
from lockstep_protocol.verbs import Scope
from lockstep_runtime.context import Answer, FlowContext
from lockstep_topic_sync import apply, metrics
from lockstep_topic_sync.inventory import Topics, read_configs, read_topics
from lockstep_topic_sync.mirrored import (
    TARGET_CONFIGS,
    Happened,
    Seen,
    gone_rows,
    mirrored_row,
    unseen_row,
    what_happened,
)
from lockstep_topic_sync.plan import (
    Alter,
    Create,
    Grow,
    Rules,
    Topic,
    alterations,
    creation_configs,
    partition_plan,
    selected,
)
from lockstep_topic_sync.retries import Retries

__all__ = ["TopicSync", "build"]

LOOK_EVERY = timedelta(seconds=2)
"""How soon a new topic is noticed; MM2's refresh.topics.interval.seconds (ten minutes) is the longest time here, not
the usual."""

IDS_EVERY = 10.0
"""Seconds after which topic ids are compared even though no name and no count changed: that finds re-created topics."""

VISIBLE_WITHIN = 1.0
"""Seconds to wait for a topic just created to appear in the metadata; later ones are found by the next round."""

REFRESH = "topic refresh"
CONFIGS = "config sync"


class TopicSync:
    """Owner of the `topic/*` rows of one flow."""

    wants: ClassVar[frozenset[type[Row]]] = frozenset({MirroredTopic})

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self._settings = ctx.settings.topic_sync
        self._begin()

    def _begin(self) -> None:
        """Forget what an earlier term learned: others have acted since."""
        self._rules: Rules | None = None
        self._retries = Retries()
        self._config_failures: dict[str, str] = {}
        self._configs_refused: dict[str, Mapping[str, str]] = {}
        self._target_configs: dict[str, Mapping[str, str]] = {}
        self._listed: tuple[dict[str, int], dict[str, int]] | None = None
        self._looked_closely = float("-inf")
        self._missed: frozenset[str] = frozenset()
        self._settled = False
        self._lowered = False
        self._refreshed = asyncio.Event()

    async def run(self) -> None:
        self._begin()
        settings = self._settings
        every = min(LOOK_EVERY, settings.refresh_every)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ctx.every(REFRESH, every, self._refresh))
            tasks.create_task(self._ctx.every(CONFIGS, settings.sync_configs_every, self._sync_configs))

    async def command(self, command: Command, scope: Scope) -> Answer | None:
        return None

    def status(self) -> Mapping[str, Any]:
        rows = self._ctx.state.all(MirroredTopic)
        phases = {phase: sum(row.phase == phase for row in rows) for phase in sorted({row.phase for row in rows})}
        return {
            "topics": phases,
            "failing": {row.source_topic: row.reason for row in rows if row.reason},
            "configs refused": {topic: dict(keys) for topic, keys in self._configs_refused.items()},
        }

    # -- topics --------------------------------------------------------------------------------------------------------

    async def _refresh(self) -> None:
        ctx = self._ctx
        if self._settled and not self._settings.refresh_enabled and not ctx.rounds.hurried(REFRESH):
            return  # looked once, as MM2 does; from now on only when an operator asks
        ctx.must_act()
        rules = await self._rules_now()
        source, target = await ctx.source.topic_names(), await ctx.target.topic_names()
        topics = selected(rules, source)
        missed = frozenset(row.source_topic for row in ctx.state.all(MirroredTopic)) - topics.keys()
        # A topic counts as gone when two rounds of one term miss it: a listing can be short while brokers change.
        gone = missed & self._missed
        self._missed = missed
        listed = (
            {name: source[name] for name in topics},
            {remote: target[remote] for remote in topics.values() if remote in target},
        )
        now = ctx.clock.monotonic()
        if listed != self._listed or now - self._looked_closely >= IDS_EVERY or self._retries.due(now):
            plan = partition_plan(topics, source, target, not_now=self._retries.waiting(now))
            await self._create(rules, plan.create)
            await self._grow(plan.grow)
            created = {c.target for c in plan.create} - self._failed_remotes(topics)
            await self._write(topics, created | listed[1].keys(), created)
            self._listed, self._looked_closely = listed, now
        await self._write_gone(gone, topics, source)
        self._settled = not self._retries.reasons and listed[1].keys() == set(topics.values())
        self._refreshed.set()

    async def _rules_now(self) -> Rules:
        if self._rules is None:
            ctx, settings = self._ctx, self._ctx.settings
            same = await ctx.source.cluster_id() == await ctx.target.cluster_id()
            if same:
                ctx.log.warn(
                    "one cluster under two aliases",
                    f"{ctx.source.alias} and {ctx.target.alias}: topics that keep their name are left out",
                )
            self._rules = Rules(
                flow=ctx.flow,
                policy=settings.policy,
                topics=settings.topics,
                config_properties=settings.config_properties,
                replication_factor=self._settings.replication_factor,
                heartbeats_replicated=self._settings.heartbeats_replicated,
                cycle_by_source=settings.rules.cycle_by_source,
                same_cluster=same,
            )
        return self._rules

    async def _create(self, rules: Rules, wanted: Sequence[Create]) -> None:
        if not wanted:
            return
        ctx = self._ctx
        read = await read_configs(ctx.source, (c.source for c in wanted))
        self._failed(read.troubles)
        ready = [c for c in wanted if c.source in read.by_topic]
        configs = {c.source: creation_configs(rules, read.by_topic[c.source]) for c in ready}
        factor = await self._replication_factor(rules)
        ctx.must_act()
        applied = await apply.create(ctx.target, ready, configs, factor)
        self._failed(applied.failed)
        for c in ready:
            if c.source in applied.done:
                left_out = applied.refused.get(c.source, {})
                text = f"{c.source} -> {c.target} ({c.partitions} {'partition' if c.partitions == 1 else 'partitions'})"
                await ctx.event(
                    "TopicCreated",
                    c.source,
                    text,
                    target=c.target,
                    partitions=c.partitions,
                    replication_factor=factor,
                    configs={key: value for key, value in configs[c.source].items() if key not in left_out},
                )
        await self._tell_refused(applied.refused)

    async def _replication_factor(self, rules: Rules) -> int:
        wanted, brokers = rules.replication_factor, await self._ctx.target.broker_count()
        if wanted <= brokers:
            return wanted
        if not self._lowered:
            self._lowered = True
            text = f"new topics on {self._ctx.target.alias}: {wanted} wanted, {brokers} broker(s) there"
            await self._ctx.event("ReplicationFactorLowered", text=text, loud=True, wanted=wanted, brokers=brokers)
        return brokers

    async def _grow(self, wanted: Sequence[Grow]) -> None:
        if not wanted:
            return
        self._ctx.must_act()
        applied = await apply.grow(self._ctx.target, wanted)
        self._failed(applied.failed)
        for g in wanted:
            if g.source in applied.done:
                text = f"{g.source} -> {g.target} ({g.before} -> {g.total})"
                await self._ctx.event(
                    "PartitionsAdded", g.source, text, target=g.target, before=g.before, total=g.total
                )

    def _failed(self, failures: Mapping[str, str]) -> None:
        for topic, reason in failures.items():
            self._retries.failed(topic, reason, self._ctx.clock.monotonic())

    def _failed_remotes(self, topics: Mapping[str, str]) -> set[str]:
        return {topics[topic] for topic in self._retries.reasons if topic in topics}

    # -- rows ----------------------------------------------------------------------------------------------------------

    async def _write(self, topics: Mapping[str, str], remotes: set[str], created: set[str]) -> None:
        """Write the rows of selected topics that changed. `remotes`: target topics that exist, `created` just now."""
        state = self._ctx.state
        sources = await read_topics(self._ctx.source, topics)
        targets = await self._targets(remotes, created)
        await self._read_target_configs(targets.by_name.values())
        unseen = {name: targets.troubles[remote] for name, remote in topics.items() if remote in targets.troubles}
        unseen |= sources.troubles
        self._failed(unseen)
        rows, events = [], []
        for name, remote in topics.items():
            source, target = sources.by_name.get(name), targets.by_name.get(remote)
            if name in unseen:
                known = state.get(MirroredTopic, name)
                failed = unseen_row(name, remote, unseen[name], known)
                if state.differs(failed):
                    rows.append(failed)
                    events += what_happened(known, failed)
                continue
            if source is None:
                continue
            if target is not None and target.partitions >= source.partitions:
                self._retries.succeeded(name)
            known = state.get(MirroredTopic, name)
            configs = self._target_configs.get(remote) if target is not None else None
            row = mirrored_row(Seen(source, remote, target, configs, self._retries.reasons.get(name, "")), known)
            if row is not None and state.differs(row):
                rows.append(row)
                events += what_happened(known, row)
        await self._say(rows, events)

    async def _targets(self, remotes: set[str], created: set[str]) -> Topics:
        deadline = self._ctx.clock.monotonic() + VISIBLE_WITHIN
        while True:
            targets = await read_topics(self._ctx.target, remotes)
            if created <= targets.by_name.keys() | targets.troubles.keys() or self._ctx.clock.monotonic() > deadline:
                return targets
            await asyncio.sleep(0.1)

    async def _write_gone(self, gone: frozenset[str], topics: Mapping[str, str], source: Mapping[str, int]) -> None:
        known = [row for row in self._ctx.state.all(MirroredTopic) if row.source_topic in gone]
        rows = gone_rows(known, topics, source)
        before = {row.source_topic: row for row in known}
        await self._say(rows, [event for row in rows for event in what_happened(before[row.source_topic], row)])
        self._retries.only(topics)

    async def _say(self, rows: Sequence[MirroredTopic], events: Sequence[Happened]) -> None:
        ctx = self._ctx
        await ctx.state.write_all(rows)
        for happened in events:
            loud = happened.kind in ("TopicFailed", "TopicRecreated")
            await ctx.event(happened.kind, happened.subject, happened.text, loud=loud, **happened.detail)
        for phase in ("mirrored", "failed", "deleted", "excluded"):
            count = sum(row.phase == phase for row in ctx.state.all(MirroredTopic))
            ctx.metrics.of(metrics.TOPICS, str(ctx.flow), phase).set(count)

    async def _read_target_configs(self, targets: Iterable[Topic]) -> None:
        unread = [topic.name for topic in targets if topic.name not in self._target_configs]
        read = await read_configs(self._ctx.target, unread)
        for name, configs in read.by_topic.items():
            self._target_configs[name] = {c.name: c.value for c in configs if c.name in TARGET_CONFIGS}

    # -- configs -------------------------------------------------------------------------------------------------------

    async def _sync_configs(self) -> None:
        await self._refreshed.wait()
        ctx = self._ctx
        rules = await self._rules_now()
        topics = {row.source_topic: row.target_topic for row in ctx.state.all(MirroredTopic) if row.phase == "mirrored"}
        source = await read_configs(ctx.source, topics) if self._settings.sync_configs else None
        target = await read_configs(ctx.target, topics.values())
        failures = dict(source.troubles) if source is not None else {}
        wanted: list[Alter] = []
        for name, remote in topics.items():
            if remote in target.troubles:
                failures[name] = target.troubles[remote]
            elif source is not None and name in source.by_topic and remote in target.by_topic:
                changes = alterations(rules, source.by_topic[name], target.by_topic[remote])
                if changes:
                    wanted.append(Alter(name, remote, changes))
        applied = await self._alter(wanted)
        await self._tell_config_failures({**failures, **applied.failed})
        await self._tell_refused(applied.refused)
        checked = topics if source is not None else {}
        others = {topic: keys for topic, keys in self._configs_refused.items() if topic not in checked}
        self._configs_refused = {**others, **applied.refused}
        # The rows say what the target's topics are set to: let the next look read it again.
        self._target_configs.clear()
        self._looked_closely = float("-inf")
        ctx.rounds.hurry(REFRESH)

    async def _alter(self, wanted: Sequence[Alter]) -> apply.Applied:
        if not wanted:
            return apply.Applied()
        self._ctx.must_act()
        applied = await apply.alter(self._ctx.target, wanted)
        for a in wanted:
            if a.source in applied.done:
                refused = applied.refused.get(a.source, {})
                changes = {key: value for key, value in a.changes.items() if key not in refused}
                words = ", ".join(f"{k} back to default" if v is None else f"{k}={v}" for k, v in changes.items())
                text = f"{a.source} -> {a.target}: {words}"
                await self._ctx.event("ConfigAltered", a.source, text, target=a.target, changes=changes)
        return applied

    async def _tell_refused(self, refused: Mapping[str, Mapping[str, str]]) -> None:
        """Say once for each topic which of its configs the target does not take."""
        for topic, keys in refused.items():
            if self._configs_refused.get(topic, {}).keys() != keys.keys():
                said = "; ".join(f"{key} ({why})" for key, why in keys.items())
                text = f"{topic}: cluster {self._ctx.target.alias} does not take {said}; its other configs are set"
                await self._ctx.event("ConfigRefused", topic, text, loud=True, keys=dict(keys))
            self._configs_refused[topic] = keys

    async def _tell_config_failures(self, failures: Mapping[str, str]) -> None:
        for topic, reason in failures.items():
            if self._config_failures.get(topic) != reason:
                await self._ctx.event("TopicFailed", topic, f"{topic}, its configs: {reason}", loud=True, reason=reason)
        self._config_failures = dict(failures)


def build(ctx: FlowContext) -> TopicSync:
    """The service of one flow, for `lockstep_runtime.service`."""
    return TopicSync(ctx)
