"""The sync of topic configs in one flow, by the schedule of `ConfigScanSchedule`.

A topic whose configs cannot be read or set is tried again with a back-off of its own. Its row has the reason meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta

from lockstep_kafka.admin.request_pieces import merge_outcomes
from lockstep_kafka.common.admin_types import Outcome
from lockstep_kafka.common.errors import ClusterError, RequestUnsupported
from lockstep_rules.topic_plan import Alter, TopicRules, alterations
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.rows.state_rows import MirroredTopic
from lockstep_state.topic_config import TopicConfig
from lockstep_topic_sync import apply
from lockstep_topic_sync.config_scan_schedule import ConfigScanSchedule
from lockstep_topic_sync.mirrored_topics import TARGET_CONFIGS
from lockstep_topic_sync.retry_schedule import RetrySchedule

CONFIGS = "config sync"


class ConfigSync:
    """The topic configs of one term. `write` writes the rows of the topics it is given (source to target name)."""

    def __init__(
        self,
        ctx: FlowContext,
        rules: Callable[[], Awaitable[TopicRules]],
        write: Callable[[Mapping[str, str]], Awaitable[None]],
    ) -> None:
        self._ctx = ctx
        self._rules = rules
        self._write = write
        self._enabled = ctx.settings.topic_sync.sync_configs
        self._schedule = ConfigScanSchedule(ctx.settings.topic_sync.sync_configs_every.total_seconds())
        self._retries = RetrySchedule()
        self._target_configs: dict[str, Mapping[str, str]] = {}
        """The `TARGET_CONFIGS` by target topic, as last read; absent after they were set."""
        self._stale: set[str] = set()
        """Topics whose rows are out of date."""
        self._contested: set[str] = set()
        self._unsupported_logged: set[tuple[str, str]] = set()
        """Requests that a cluster lacks, and that were logged: its alias, and the operation."""
        self.refused: dict[str, Mapping[str, str]] = {}
        """Keys that the target refuses, each with its answer, by source topic."""

    @property
    def every(self) -> timedelta:
        """The interval between rounds."""
        return timedelta(seconds=self._schedule.every)

    def target_configs(self, remote: str) -> Mapping[str, str] | None:
        """Return the `TARGET_CONFIGS` of a target topic; None: unknown."""
        return self._target_configs.get(remote)

    def failure(self, topic: str) -> Reason:
        """Return why the last attempt at the configs of a source topic failed; no reason if it did not."""
        return self._retries.reasons.get(topic, NO_REASON)

    async def read_target_configs(self, topics: Mapping[str, str]) -> None:
        """Read the unknown configs of these existing target topics (source to target name)."""
        waiting = self._retries.waiting(self._ctx.clock.monotonic())
        unread = {
            remote: name
            for name, remote in topics.items()
            if remote not in self._target_configs and name not in waiting
        }
        async for read in self._ctx.target.config_pieces(unread):
            self._note_troubles({unread[remote]: trouble for remote, trouble in read.troubles().items()})
            self._target_configs |= {remote: _kept(configs) for remote, configs in read.done.items()}

    def created(self, remote: str) -> None:
        """Forget the configs of a target topic that was created, perhaps again."""
        self._target_configs.pop(remote, None)

    async def round(self) -> None:
        """Describe the topics whose turn it is and set what differs; all of them if an operator asked for it."""
        ctx = self._ctx
        rules = await self._rules()
        rows = ctx.state.all(MirroredTopic)
        topics = {row.source_topic: row.target_topic for row in rows if row.phase == "mirrored"}
        self._forget_others(topics)
        for row in rows:
            if not row.is_selected:
                self.refused.pop(row.source_topic, None)
        now, all_of_them = ctx.clock.monotonic(), ctx.periodic.was_triggered(CONFIGS)
        described_first = topics if all_of_them else self._retries.ready(now)
        not_now: frozenset[str] = frozenset() if all_of_them else self._retries.waiting(now)
        due_topics = self._schedule.start_round(topics, now, first=described_first, not_now=not_now)
        if self._enabled:
            async for read in ctx.source.config_pieces(due_topics):
                await self._follow(rules, topics, read, all_of_them=all_of_them)
        else:
            await self._follow_target({name: topics[name] for name in due_topics}, all_of_them=all_of_them)
        stale, self._stale = self._stale & topics.keys(), set()
        if stale:
            await self._write({name: topics[name] for name in sorted(stale)})

    async def log_refused(self, refused: Mapping[str, Mapping[str, str]]) -> None:
        """Append an event, once for each topic, with the configs that the target refuses."""
        new = {topic: keys for topic, keys in refused.items() if self.refused.get(topic, {}).keys() != keys.keys()}
        await asyncio.gather(*(self._report_refused(topic, keys) for topic, keys in new.items()))
        self.refused.update(refused)

    async def _report_refused(self, topic: str, keys: Mapping[str, str]) -> None:
        refusals = "; ".join(f"{key} ({reason})" for key, reason in keys.items())
        text = f"{topic}: cluster {self._ctx.target.alias} does not take {refusals}; its other configs are set"
        await self._ctx.event("ConfigRefused", topic, text, keys=dict(keys))

    async def _follow(
        self, rules: TopicRules, topics: Mapping[str, str], read: Outcome[tuple[TopicConfig, ...]], *, all_of_them: bool
    ) -> None:
        """Set the configs of target topics to those read at the source, if a comparison is due."""
        now = self._ctx.clock.monotonic()
        self._note_troubles(read.troubles())
        due: dict[str, tuple[TopicConfig, ...]] = {}
        for name, configs in read.done.items():
            if self._schedule.record_scan(name, hash(configs), now) or all_of_them:
                due[name] = configs
            else:
                self._succeeded(name)
        target = await merge_outcomes(self._ctx.target.config_pieces(topics[name] for name in due))
        troubles = {name: target.troubles()[topics[name]] for name in due if topics[name] in target.troubles()}
        unknown = self.unsupported(troubles)
        failures = {name: trouble.to_reason() for name, trouble in troubles.items() if name not in unknown}
        differing: list[Alter] = []
        compared: list[str] = []
        for name, configs in due.items():
            present = target.done.get(topics[name])
            if present is None:
                continue
            compared.append(name)
            self._keep(name, topics[name], present)
            changes = alterations(rules, configs, present)
            if changes:
                differing.append(Alter(name, topics[name], changes))
        applied = await self._alter(differing)
        failures.update(applied.failed)
        self.unsupported(applied.unsupported)
        self._failed(failures)
        await self.log_refused(applied.refused)
        for name in (*compared, *unknown):
            if name not in applied.refused:
                self.refused.pop(name, None)
            if name not in failures:  # nor where that is not known: it would be asked in each round
                self._schedule.compared(name, hash(due[name]), now)
                self._succeeded(name)

    async def _follow_target(self, topics: Mapping[str, str], *, all_of_them: bool) -> None:
        """Read the configs of target topics, which the data plane needs also if configs are not synced."""
        now = self._ctx.clock.monotonic()
        scan = self._schedule.record_scan
        due = {remote: name for name, remote in topics.items() if scan(name, 0, now) or all_of_them}
        async for read in self._ctx.target.config_pieces(due):
            self._note_troubles({due[remote]: trouble for remote, trouble in read.troubles().items()})
            for remote, configs in read.done.items():
                self._keep(due[remote], remote, configs)
                self._schedule.compared(due[remote], 0, now)
                self._succeeded(due[remote])

    async def _alter(self, alterations: Sequence[Alter]) -> apply.Applied:
        if not alterations:
            return apply.Applied()
        ctx = self._ctx
        ctx.must_act()
        applied = await apply.alter(ctx.target, alterations)
        altered = [a for a in alterations if a.source in applied.done]
        for a in altered:
            self._target_configs.pop(a.target, None)
            self._stale.add(a.source)
        await asyncio.gather(*(self._report_altered(a, applied.refused.get(a.source, {})) for a in altered))
        for a in altered:
            self._log_contested(a)
        return applied

    async def _report_altered(self, a: Alter, refused: Collection[str]) -> None:
        changes = {key: value for key, value in a.changes.items() if key not in refused}
        words = ", ".join(f"{k} back to default" if v is None else f"{k}={v}" for k, v in changes.items())
        text = f"{a.source} -> {a.target}: {words}"
        await self._ctx.event("ConfigAltered", a.source, text, target=a.target, changes=changes)

    def _log_contested(self, altered: Alter) -> None:
        held_s = self._schedule.altered(altered.source, self._ctx.clock.monotonic())
        if not held_s:
            self._contested.discard(altered.source)
        elif altered.source not in self._contested:
            self._contested.add(altered.source)
            self._ctx.log.warn(
                "configs contested",
                f"{altered.target} on {self._ctx.target.alias} differs from {altered.source} again and again"
                f" ({', '.join(altered.changes)}): find out who else sets it; it is compared less often from now on",
                subject=altered.source,
            )

    def _keep(self, topic: str, remote: str, configs: Sequence[TopicConfig]) -> None:
        kept = _kept(configs)
        if self._target_configs.get(remote) != kept:
            self._target_configs[remote] = kept
            self._stale.add(topic)

    def unsupported(self, troubles: Mapping[str, ClusterError]) -> frozenset[str]:
        """Return the topics whose configs cannot be read or set, for a cluster lacks the request.

        That is no failure, and is logged once.
        """
        unknown = {name: trouble for name, trouble in troubles.items() if isinstance(trouble, RequestUnsupported)}
        for trouble in unknown.values():
            if (request := (trouble.alias, trouble.operation)) not in self._unsupported_logged:
                self._unsupported_logged.add(request)
                self._ctx.log.warn("configs not known", f"{trouble}; topics are mirrored without what it needs")
        return frozenset(unknown)

    def _note_troubles(self, troubles: Mapping[str, ClusterError]) -> None:
        unknown = self.unsupported(troubles)
        self._failed({name: trouble.to_reason() for name, trouble in troubles.items() if name not in unknown})
        for name in unknown:
            self._succeeded(name)

    def _failed(self, failures: Mapping[str, Reason]) -> None:
        for topic, reason in failures.items():
            if self.failure(topic) != reason:
                self._stale.add(topic)
            self._retries.failed_for(topic, reason, self._ctx.clock.monotonic())

    def _succeeded(self, topic: str) -> None:
        if self.failure(topic):
            self._stale.add(topic)
        self._retries.succeeded(topic)

    def _forget_others(self, topics: Mapping[str, str]) -> None:
        self._retries.keep_only(topics)
        self._contested &= topics.keys()
        remotes = frozenset(topics.values())
        self._target_configs = {remote: kept for remote, kept in self._target_configs.items() if remote in remotes}


def _kept(configs: Sequence[TopicConfig]) -> dict[str, str]:
    return {c.name: c.value for c in configs if c.name in TARGET_CONFIGS}
