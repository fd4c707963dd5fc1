"""The creation and growth of remote topics, with their events."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from logging import DEBUG

from lockstep_kafka.admin.lowered_factor import warn_of_lowered
from lockstep_rules.topic_plan import Create, Grow, TopicRules, creation_configs, factor_words, possible_factor
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.reasons.reason import Reason
from lockstep_topic_sync import apply
from lockstep_topic_sync.config_sync import ConfigSync


class TopicCreator:
    """The creator of one flow's remote topics.

    `failed` gets the reasons by source topic; such topics are tried again.
    """

    def __init__(self, ctx: FlowContext, configs: ConfigSync, failed: Callable[[Mapping[str, Reason]], None]) -> None:
        self._ctx = ctx
        self._configs = configs
        self._failed = failed
        self._lowered = False
        self._demanded: frozenset[int] = frozenset()
        """Replication factors that the target demanded instead of the wanted one, and that were reported."""

    async def create(self, rules: TopicRules, creations: Sequence[Create]) -> None:
        """Create remote topics with the configs of their source topics, with an event for each."""
        if not creations:
            return
        ctx = self._ctx
        configs: dict[str, dict[str, str]] = {}
        async for read in ctx.source.config_pieces(c.source for c in creations):
            unknown = self._configs.unsupported(read.troubles())
            configs |= {name: {} for name in unknown}
            self._failed({n: trouble.to_reason() for n, trouble in read.troubles().items() if n not in unknown})
            configs |= {name: creation_configs(rules, source_configs) for name, source_configs in read.done.items()}
        ready = [c for c in creations if c.source in configs]
        factor = await self._replication_factor(rules)
        ctx.must_act()
        applied = await apply.create(ctx.target, ready, configs, factor)
        self._failed(applied.failed)
        created = [c for c in ready if c.source in applied.done]
        for c in created:
            self._configs.created(c.target)
        await self._report_demanded(factor, applied.factors)
        await asyncio.gather(*(self._report_created(c, factor, configs[c.source], applied) for c in created))
        await self._configs.log_refused(applied.refused)

    async def grow(self, growths: Sequence[Grow]) -> None:
        """Add partitions to remote topics, with an event for each."""
        if not growths:
            return
        self._ctx.must_act()
        applied = await apply.grow(self._ctx.target, growths)
        self._failed(applied.failed)
        await asyncio.gather(*(self._report_grown(g) for g in growths if g.source in applied.done))

    async def _report_created(self, c: Create, factor: int, configs: Mapping[str, str], applied: apply.Applied) -> None:
        left_out = applied.refused.get(c.source, {})
        text = f"{c.source} -> {c.target} ({c.partitions} {'partition' if c.partitions == 1 else 'partitions'})"
        await self._ctx.event(
            "TopicCreated",
            c.source,
            text,
            target=c.target,
            partitions=c.partitions,
            replication_factor=applied.factors.get(c.source, factor),
            configs={key: value for key, value in configs.items() if key not in left_out},
        )

    async def _report_grown(self, g: Grow) -> None:
        text = f"{g.source} -> {g.target} ({g.before} -> {g.total})"
        await self._ctx.event("PartitionsAdded", g.source, text, target=g.target, before=g.before, total=g.total)

    async def _replication_factor(self, rules: TopicRules) -> int:
        requested, brokers = rules.replication_factor, await self._ctx.target.broker_count()
        factor = possible_factor(requested, brokers)
        if factor < requested and not self._lowered:
            self._lowered, alias = True, self._ctx.target.alias
            warn_of_lowered(alias, requested, brokers)
            # Its line is that warning, which the control topics may have had already.
            text = f"new topics on {alias}"
            await self._ctx.event("ReplicationFactorLowered", text=text, level=DEBUG, wanted=requested, brokers=brokers)
        return factor

    async def _report_demanded(self, requested: int, factors: Mapping[str, int]) -> None:
        """Append one event for each other replication factor that the target demanded."""
        new = frozenset(factors.values()) - self._demanded
        self._demanded |= new
        alias = self._ctx.target.alias
        await asyncio.gather(
            *(
                self._ctx.event(
                    "ReplicationFactorRefused",
                    text=f"new topics on {alias}: {requested} wanted, and {alias} takes {factor_words(factor)}",
                    wanted=requested,
                    accepted=factor,
                )
                for factor in sorted(new)
            )
        )
