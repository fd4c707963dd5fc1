"""The requests that carry out a plan on the target. They return a result for each resource and decide nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.admin.topic_creation import OneConfig, create_fitting_topics, find_refused_configs
from lockstep_kafka.common.admin_types import NewTopic, Outcome
from lockstep_kafka.common.errors import RequestUnsupported
from lockstep_rules.topic_plan import Alter, Create, Grow
from lockstep_state.reasons.reason import Reason


@dataclass(frozen=True, slots=True)
class Applied:
    """Source topics for which a request worked, and the reasons of the others.

    An existing topic is in neither: a fresh listing shows it.
    """

    done: tuple[str, ...] = ()
    failed: Mapping[str, Reason] = field(default_factory=dict)
    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Config keys that the target refused and that were left out, each with its answer, by source topic."""
    unsupported: Mapping[str, RequestUnsupported] = field(default_factory=dict)
    """Topics that stay as they are, for the target lacks the request. They are not in `failed`."""
    factors: Mapping[str, int] = field(default_factory=dict)
    """Replication factors of created topics for which the target refused the wanted one, by source topic."""


async def create(
    target: Admin, missing: Sequence[Create], configs: Mapping[str, Mapping[str, str]], replication_factor: int
) -> Applied:
    """Create remote topics, each with the configs under its source name, as far as the target accepts them."""
    by_target = {c.target: c.source for c in missing}
    new = [NewTopic(c.target, c.partitions, replication_factor, dict(configs[c.source])) for c in missing]
    creation = await create_fitting_topics(target, new)
    return Applied(
        tuple(by_target[name] for name in creation.created),
        {by_target[name]: trouble.to_reason() for name, trouble in creation.failed.items()},
        {by_target[name]: keys for name, keys in creation.refused.items()},
        factors={by_target[name]: factor for name, factor in creation.factors.items()},
    )


async def grow(target: Admin, growths: Sequence[Grow]) -> Applied:
    """Add partitions to remote topics."""
    outcome = await target.create_partitions({g.target: g.total for g in growths})
    failed = outcome.troubles()
    return Applied(
        tuple(g.source for g in growths if g.target in outcome.done),
        {g.source: failed[g.target].to_reason() for g in growths if g.target in failed},
    )


async def alter(target: Admin, alterations: Sequence[Alter]) -> Applied:
    """Set and delete configs of remote topics. `done` has the topics of which at least one key was changed."""
    by_target = {a.target: a for a in alterations}
    outcome = await target.alter_configs({a.target: a.changes for a in alterations})
    unfit = {t: by_target[t].changes for t, trouble in outcome.failed.items() if Admin.may_be_refused_configs(trouble)}

    async def alter_one(changes: Mapping[str, OneConfig]) -> Outcome[None]:
        return await target.alter_configs({name: {key: value} for name, (key, value) in changes.items()})

    refused, undecided = await find_refused_configs(unfit, alter_one)
    unsupported = {t: trouble for t, trouble in outcome.failed.items() if isinstance(trouble, RequestUnsupported)}
    failed = {t: trouble for t, trouble in outcome.troubles().items() if t not in unfit and t not in unsupported}
    failed |= undecided
    tried = refused.keys() - undecided.keys()
    done = outcome.done.keys() | {t for t in tried if refused[t].keys() != unfit[t].keys()}
    return Applied(
        tuple(a.source for a in alterations if a.target in done),
        {a.source: failed[a.target].to_reason() for a in alterations if a.target in failed},
        {by_target[t].source: keys for t, keys in refused.items() if keys},
        {by_target[t].source: trouble for t, trouble in unsupported.items()},
    )
