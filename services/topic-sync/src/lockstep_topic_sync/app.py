"""The rounds of topic-sync in one flow: read both clusters, plan, apply, write the rows.

There are two rounds. The one for topics reads the source's names and partition counts every two seconds, less often if
a listing takes long. It reads the target's ids and details too, when those changed or every ten seconds. `config_sync`
has the one for configs. A topic that fails is tried again with a back-off of its own and stops no other.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from lockstep_config.flow.mirroring_rules import topic_rules
from lockstep_kafka.common.admin_types import Outcome, TopicDescription
from lockstep_kafka.common.asyncio_util import share_kept_s
from lockstep_kafka.common.tracing import set_attributes
from lockstep_rules.policy import DefaultReplicationPolicy
from lockstep_rules.topic_plan import (
    Create,
    LeftOutTopic,
    Selection,
    TopicRules,
    heartbeats_note,
    name_owners,
    partition_plan,
    select_topics,
)
from lockstep_runtime.flow.context import Answer, FlowContext
from lockstep_runtime.telemetry.log_dedup import LOGGED, LogDedup
from lockstep_runtime.telemetry.metrics import Sample
from lockstep_state.commands.command import Command
from lockstep_state.commands.command_vocabulary import Scope
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.rows.data_plane_rows import Assignment
from lockstep_state.rows.state_rows import ClusterCapabilities, MirroredTopic, Row
from lockstep_topic_sync import metrics
from lockstep_topic_sync.cluster_watch import ClusterWatch
from lockstep_topic_sync.config_sync import CONFIGS, ConfigSync
from lockstep_topic_sync.mirrored_topics import (
    SelectedTopic,
    TopicEvent,
    count_by_phase,
    creating_row,
    gone_rows,
    left_out,
    left_out_row,
    mirrored_row,
    topic_events,
    unseen_row,
)
from lockstep_topic_sync.retry_schedule import RetrySchedule
from lockstep_topic_sync.selection_report import SelectionReport
from lockstep_topic_sync.topic_creator import TopicCreator

CHECK_INTERVAL = timedelta(seconds=2)
"""The interval at which new topics are looked for. MM2's refresh.topics.interval.seconds (ten minutes) is only the
upper limit."""

PAUSE_FACTOR = 4.0
"""The pause after a round, as a multiple of its processor time. With 10,000 topics a round takes most of a second,
which every two seconds is half a core."""

IDS_EVERY, IDS_AT_LEAST_EVERY = 10.0, 60.0
"""Seconds after which both clusters are listed although the source's names did not change. That finds re-created
topics, and changes by other clients to the target's."""

IDS_SHARE = 0.003
"""The greatest share of a core for that: describing 1,000 partitions is some 15 ms of processor."""

VISIBLE_WITHIN = 1.0
"""Seconds to wait for a topic just created to appear in the metadata. The next round finds later ones."""

REFRESH = "topic refresh"


class TopicSync:
    """The owner of the `topic/*` rows of one flow."""

    # Assignments say which slots there are, for commands about one.
    wants: ClassVar[frozenset[type[Row]]] = frozenset({MirroredTopic, Assignment, ClusterCapabilities})

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self._settings = ctx.settings.topic_sync
        self._begin()
        ctx.metrics.ask(self._samples)

    def _begin(self) -> None:
        """Forget what an earlier term learned: other replicas have acted since."""
        self._rules: TopicRules | None = None
        self._retries = RetrySchedule()
        self._configs = ConfigSync(self._ctx, self._rules_now, self._write_again)
        # Rounds for topics and for configs meet here: what one is about to say, the other need not.
        self._writing = asyncio.Lock()
        self._last_listing: tuple[dict[str, int], dict[str, int]] | None = None
        self._last_written: tuple[dict[str, int], dict[str, int], Mapping[str, LeftOutTopic]] | None = None
        self._checked_closely = float("-inf")
        self._ids_rest_s = IDS_EVERY
        self._missed_once: frozenset[str] = frozenset()
        self._no_copies: frozenset[str] = frozenset()
        self._hidden: dict[str, Reason] = {}
        self._asked_hidden = float("-inf")
        self._settled = False
        self._first_selection: frozenset[str] | None = None
        self._log_dedup = LogDedup()
        self._selection_report = SelectionReport(self._ctx)
        self._creator = TopicCreator(self._ctx, self._configs, self._failed)
        self._refreshed = asyncio.Event()

    async def run(self) -> None:
        self._begin()
        settings = self._settings
        interval = min(CHECK_INTERVAL, settings.refresh_every)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._ctx.periodic.every(REFRESH, interval, self._refresh, pause_factor=PAUSE_FACTOR))
            tasks.create_task(self._ctx.periodic.every(CONFIGS, self._configs.every, self._sync_configs))
            tasks.create_task(ClusterWatch(self._ctx).run())

    async def command(self, command: Command, scope: Scope) -> Answer | None:
        return None

    def status(self) -> Mapping[str, Any]:
        rows = self._ctx.state.all(MirroredTopic)
        phases = {phase: sum(row.phase == phase for row in rows) for phase in sorted({row.phase for row in rows})}
        return {
            "topics": phases,
            "failing": {row.source_topic: row.reason for row in rows if row.cause},
            "configs refused": {topic: dict(keys) for topic, keys in self._configs.refused.items()},
        }

    def _samples(self) -> Iterator[Sample]:
        """Yield the metrics of the rows; none while another replica leads."""
        ctx, flow = self._ctx, str(self._ctx.flow)
        if not ctx.is_acting:
            return
        rows = ctx.state.all(MirroredTopic)
        for phase, count in count_by_phase(rows).items():
            yield Sample(metrics.TOPICS, (flow, phase), count)
        yield Sample(metrics.MISSING_PARTITIONS, (flow,), sum(row.missing for row in rows))

    # -- topics --------------------------------------------------------------------------------------------------------

    async def _refresh(self) -> None:
        ctx = self._ctx
        if self._settled and not self._settings.refresh_enabled and not ctx.periodic.was_triggered(REFRESH):
            return  # looked once, as MM2 does; from now on only when an operator asks
        ctx.must_act()
        rules = await self._rules_now()
        source, target = await self._list()
        selection = await self._selected(rules, source, target)
        await self._selection_report.on_listed(source)
        topics = self._of_the_first_round(selection.topics)
        set_attributes(topics=len(topics))
        missed = frozenset(row.source_topic for row in ctx.state.all(MirroredTopic)) - topics.keys()
        missed -= selection.left_out.keys()
        # A topic counts as gone when two rounds of one term miss it: a listing can be short while brokers change.
        missed_twice = missed & self._missed_once
        self._missed_once = missed
        listed = (
            {name: source[name] for name in topics},
            {remote: target[remote] for remote in topics.values() if remote in target},
            selection.left_out,
        )
        now, at_rest = ctx.clock.monotonic(), True
        if listed != self._last_written or not self._is_checked_recently or self._retries.ready(now):
            began = time.process_time()
            await self._write_left_out(selection)
            keeps_counts = self._settings.keeps_counts
            plan = partition_plan(topics, source, target, not_now=self._retries.waiting(now), keeps_counts=keeps_counts)
            set_attributes(to_create=len(plan.create), to_grow=len(plan.grow))
            await self._write_creating(rules, plan.create)
            await self._creator.create(rules, plan.create)
            await self._creator.grow(plan.grow)
            created = {c.target for c in plan.create} - self._failed_remotes(topics)
            await self._write(topics, created | listed[1].keys(), created)
            self._last_written, self._checked_closely = listed, now
            at_rest = not (plan.create or plan.grow)
            cost = time.process_time() - began if at_rest else 0.0
            self._ids_rest_s = share_kept_s(cost, IDS_SHARE, soonest=IDS_EVERY, latest=IDS_AT_LEAST_EVERY)
        hidden = await self._report_hidden(rules, missed_twice - source.keys())
        await self._write_gone(missed_twice - hidden.keys(), topics, source)
        # What has just grown may not show yet, and a round that finds nothing to do is to see it.
        self._settled = at_rest and not self._retries.reasons and listed[1].keys() == set(topics.values())
        self._refreshed.set()

    def _of_the_first_round(self, topics: Mapping[str, str]) -> Mapping[str, str]:
        """Return the topics that count if refreshes are disabled.

        These are those of the first round, or of one that an operator asks for. A topic that fails is tried again.
        """
        if self._settings.refresh_enabled:
            return topics
        if self._first_selection is None or self._ctx.periodic.was_triggered(REFRESH):
            self._first_selection = frozenset(topics)
        return {name: remote for name, remote in topics.items() if name in self._first_selection}

    async def _selected(self, rules: TopicRules, source: Mapping[str, int], target: Mapping[str, int]) -> Selection:
        """Return the selection. With `cycles_exact`, a topic counts as no copy under two conditions.

        Two listings of the target had no original of it (one can be short while brokers change). The target does not
        know the original by its name either (a topic that may not be described is in no listing). A topic found to be
        no copy stays so.
        """
        rows = self._ctx.state.all(MirroredTopic)
        owners = name_owners(rows)
        if not rules.cycles_exact:
            return select_topics(rules, source, target=target, owners=owners)
        copies = {row.source_topic: row.original for row in rows if row.phase == "left-out" and row.original}
        own = {row.source_topic for row in rows if row.phase == "mirrored"}
        selection = select_topics(rules, source, target=target, copies=copies, own=own, owners=owners)
        earlier, no_copies = self._no_copies, selection.no_copies
        self._no_copies = frozenset(no_copies)
        if no_copies.keys() - earlier:
            self._last_listing = None  # so that the next listing is another one
        candidates = {name: no_copies[name] for name in (no_copies.keys() & earlier) - own}
        if not candidates:
            return selection
        read = await self._ctx.target.topics({original for originals in candidates.values() for original in originals})
        hidden = read.done.keys() | read.troubles().keys()
        own |= {name for name, originals in candidates.items() if not originals & hidden}
        return select_topics(rules, source, target=target, copies=copies, own=own, owners=owners)

    async def _write_creating(self, rules: TopicRules, creations: Sequence[Create]) -> None:
        """Write the rows of topics whose copies get other names, before these are created.

        As soon as a copy exists, the opposite flow may bring a topic of its name to the source. Then the row alone says
        which of both topics the copy belongs to, also after a kill.
        """
        policy, state = rules.policy, self._ctx.state
        if not isinstance(policy, DefaultReplicationPolicy) or not policy.renames:
            return
        owners = name_owners(state.all(MirroredTopic))
        await self._write_changes(
            creating_row(new.source, new.target, state.get(MirroredTopic, new.source))
            for new in creations
            if owners.get(new.target) != new.source
        )

    async def _write_left_out(self, selection: Selection) -> None:
        """Write the row and event of each topic that its name leaves out, once."""
        state = self._ctx.state
        rows = [left_out_row(name, rule, state.get(MirroredTopic, name)) for name, rule in selection.left_out.items()]
        rows = [row for row in rows if state.differs(row)]
        if rows:
            await self._write_changes(
                rows, [left_out(row, missed=row.source_topic in selection.no_copies) for row in rows]
            )

    async def _list(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return names and partition counts on both clusters.

        A listing of thousands costs, so the target's earlier one is used while no change is to be expected.
        """
        ctx = self._ctx
        listed, source = self._last_listing, await ctx.source.topic_names()
        if (
            listed is None
            or listed[0] != source
            or not (self._settled and self._is_checked_recently)
            or ctx.periodic.was_triggered(REFRESH)
        ):
            listed = source, await ctx.target.topic_names()
        self._last_listing = listed
        return listed

    @property
    def _is_checked_recently(self) -> bool:
        """The last complete reading is recent."""
        return self._ctx.clock.monotonic() - self._checked_closely < self._ids_rest_s

    async def _rules_now(self) -> TopicRules:
        if self._rules is None:
            ctx, settings = self._ctx, self._ctx.settings
            is_same_cluster = await ctx.source.cluster_id() == await ctx.target.cluster_id()
            if is_same_cluster:
                ctx.log.warn(
                    "one cluster under two aliases",
                    f"{ctx.source.alias} and {ctx.target.alias}: topics that keep their name are left out, and so are "
                    "those whose names begin with either alias",
                )
            self._rules = topic_rules(settings, one_cluster=is_same_cluster)
        return self._rules

    def _failed(self, failures: Mapping[str, Reason]) -> None:
        for topic, reason in failures.items():
            self._retries.failed_for(topic, reason, self._ctx.clock.monotonic())

    def _failed_remotes(self, topics: Mapping[str, str]) -> set[str]:
        return {topics[topic] for topic in self._retries.reasons if topic in topics}

    # -- rows ----------------------------------------------------------------------------------------------------------

    async def _write(self, topics: Mapping[str, str], remotes: set[str], created: set[str]) -> None:
        """Write the rows of selected topics that changed.

        `remotes` are existing target topics, `created` those created just now.
        """
        state, rules = self._ctx.state, await self._rules_now()
        sources = await self._ctx.source.topics(topics)
        targets = await self._targets(remotes, created)
        await self._configs.read_target_configs({n: remote for n, remote in topics.items() if remote in targets.done})
        hidden = targets.troubles()
        unseen = {name: hidden[remote].to_reason() for name, remote in topics.items() if remote in hidden}
        unseen |= {name: trouble.to_reason() for name, trouble in sources.troubles().items()}
        self._failed(unseen)
        async with self._writing:
            rows = []
            for name, remote in topics.items():
                source, target = sources.done.get(name), targets.done.get(remote)
                before = state.get(MirroredTopic, name)
                if name in unseen:
                    rows.append(unseen_row(name, remote, unseen[name], before))
                elif source is not None:
                    topic = SelectedTopic(
                        source,
                        remote,
                        target,
                        configs=self._configs.target_configs(remote) if target is not None else None,
                        failure=self._retries.reasons.get(name, NO_REASON),
                        configs_failure=self._configs.failure(name),
                        note=heartbeats_note(rules, name, remote),
                        keeps_count=self._settings.keeps_counts,
                    )
                    if not topic.behind:
                        self._retries.succeeded(name)
                    if (row := mirrored_row(topic, before)) is not None:
                        rows.append(row)
            await self._write_changes(rows)

    async def _report_hidden(self, rules: TopicRules, unlisted: frozenset[str]) -> Mapping[str, Reason]:
        """Return the unlisted topics that may not be described (any more), with the reason. Their rows get it too.

        They are not gone.
        """
        state, now = self._ctx.state, self._ctx.clock.monotonic()
        rows_of_topics = {row.source_topic: row for row in state.all(MirroredTopic) if row.source_topic in unlisted}
        mirrored = {n for n, row in rows_of_topics.items() if row.is_selected}
        selected_topics = select_topics(rules, mirrored, own=mirrored).topics.keys()
        if asks_again := now - self._asked_hidden >= IDS_EVERY:
            self._asked_hidden = now
        names = selected_topics if asks_again else selected_topics - self._hidden.keys()
        read = await self._ctx.source.topics(names)
        self._hidden = {n: reason for n, reason in self._hidden.items() if n in selected_topics - names}
        self._hidden |= {name: trouble.to_reason() for name, trouble in read.troubles().items()}
        rows = [
            unseen_row(name, rows_of_topics[name].target_topic, reason, rows_of_topics[name])
            for name, reason in self._hidden.items()
        ]
        await self._write_changes(rows)
        return self._hidden

    async def _targets(self, remotes: set[str], created: set[str]) -> Outcome[TopicDescription]:
        deadline = self._ctx.clock.monotonic() + VISIBLE_WITHIN
        while True:
            targets = await self._ctx.target.topics(remotes)
            if created <= targets.done.keys() | targets.troubles().keys() or self._ctx.clock.monotonic() > deadline:
                return targets
            await asyncio.sleep(0.1)

    async def _write_gone(
        self, gone_topics: frozenset[str], topics: Mapping[str, str], source: Mapping[str, int]
    ) -> None:
        rows = [row for row in self._ctx.state.all(MirroredTopic) if row.source_topic in gone_topics]
        await self._write_changes(gone_rows(rows, topics, source))
        self._retries.keep_only(topics)

    async def _report(self, event: TopicEvent) -> None:
        """Append the event.

        One missing permission fails thousands of topics, so most of the log lines are at debug then.
        """
        count = self._log_dedup.count(event.detail.get("cause", NO_REASON))
        if count == LOGGED + 1:
            self._ctx.log.warn("more topics failed", "for want of the same permission; lockstep status names them")
        level = logging.DEBUG if count > LOGGED else event.level
        await self._ctx.event(event.kind, event.subject, event.text, level=level, **event.detail)

    async def _write_changes(self, rows: Iterable[MirroredTopic], events: Sequence[TopicEvent] = ()) -> None:
        """Write the rows that differ, and append the events of their changes and `events`."""
        ctx, state = self._ctx, self._ctx.state
        changed = [row for row in rows if state.differs(row)]
        events = [
            *events,
            *(event for row in changed for event in topic_events(state.get(MirroredTopic, row.source_topic), row)),
        ]
        await state.write_all(changed)
        await asyncio.gather(*map(self._report, events))  # at once, for each waits until it is appended
        self._log_dedup.keep_only(row.cause for row in ctx.state.all(MirroredTopic) if row.cause)

    # -- configs -------------------------------------------------------------------------------------------------------

    async def _sync_configs(self) -> None:
        await self._refreshed.wait()
        await self._configs.round()

    async def _write_again(self, topics: Mapping[str, str]) -> None:
        await self._write(topics, set(topics.values()), set())
