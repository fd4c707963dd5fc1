"""Carry out a plan on the target. What each resource came to is the answer; nothing is decided here.

A broker refuses a topic's configs as a whole when it does not take one of them. That is a key that its version does not
know, or a value that it does not allow. Then each key is tried by itself, so that the one stops neither the others nor
the topic.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from lockstep_protocol.reason import Reason
from lockstep_protocol.topic_plan import Alter, Create, Grow
from lockstep_runtime.kafka.admin import Admin
from lockstep_runtime.kafka.admin_types import NewTopic, Outcome

Tried = Callable[[Mapping[str, Mapping[str, str | None]]], Awaitable[Outcome[None]]]


@dataclass(frozen=True, slots=True)
class Applied:
    """Source topics for which it worked, and why not for the others. Existing already is neither: a fresh listing shows
    it."""

    done: tuple[str, ...] = ()
    failed: Mapping[str, Reason] = field(default_factory=dict)
    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Config keys that the target does not take and that were left out, each with what it said, by source topic."""


async def create(
    target: Admin, wanted: Sequence[Create], configs: Mapping[str, Mapping[str, str]], replication_factor: int
) -> Applied:
    """Create remote topics, each with the configs under its source name, or with those of them that the target
    takes."""

    def new(c: Create, chosen: Mapping[str, str | None]) -> NewTopic:
        values = {key: value for key, value in chosen.items() if value is not None}
        return NewTopic(c.target, c.partitions, replication_factor, values)

    async def tried(chosen: Mapping[str, Mapping[str, str | None]]) -> Outcome[None]:
        return await target.create_topics([new(by_target[t], c) for t, c in chosen.items()], validate_only=True)

    by_target = {c.target: c for c in wanted}
    outcome = await target.create_topics([new(c, configs[c.source]) for c in wanted])
    unfit = {t: configs[by_target[t].source] for t in _unfit(outcome)}
    refused = await _each_alone(unfit, tried)
    # Where each key is taken by itself, it is their combination that is not: then the topic fails as it did.
    fit = {t: {k: v for k, v in unfit[t].items() if k not in keys} for t, keys in refused.items() if keys}
    again = await target.create_topics([new(by_target[t], chosen) for t, chosen in fit.items()])
    troubles = {t: trouble for t, trouble in outcome.troubles().items() if t not in fit} | again.troubles()
    failed = {t: trouble for t, trouble in troubles.items() if not Admin.existed(trouble)}
    return Applied(
        tuple(c.source for c in wanted if c.target in outcome.done or c.target in again.done),
        {c.source: failed[c.target].to_reason() for c in wanted if c.target in failed},
        {by_target[t].source: refused[t] for t in fit if t not in failed},
    )


async def grow(target: Admin, wanted: Sequence[Grow]) -> Applied:
    """Add partitions to remote topics."""
    outcome = await target.create_partitions({g.target: g.total for g in wanted})
    failed = outcome.troubles()
    return Applied(
        tuple(g.source for g in wanted if g.target in outcome.done),
        {g.source: failed[g.target].to_reason() for g in wanted if g.target in failed},
    )


async def alter(target: Admin, wanted: Sequence[Alter]) -> Applied:
    """Set and take back configs of remote topics; `done` are those of which at least one key was changed."""
    by_target = {a.target: a for a in wanted}
    outcome = await target.alter_configs({a.target: a.changes for a in wanted})
    unfit = {t: by_target[t].changes for t in _unfit(outcome)}
    refused = await _each_alone(unfit, target.alter_configs)
    failed = {t: trouble for t, trouble in outcome.troubles().items() if t not in unfit}
    done = outcome.done.keys() | {t for t, keys in refused.items() if keys.keys() != unfit[t].keys()}
    return Applied(
        tuple(a.source for a in wanted if a.target in done),
        {a.source: failed[a.target].to_reason() for a in wanted if a.target in failed},
        {by_target[t].source: keys for t, keys in refused.items() if keys},
    )


def _unfit(outcome: Outcome[None]) -> list[str]:
    return [name for name, trouble in outcome.failed.items() if Admin.refused_configs(trouble)]


async def _each_alone(configs: Mapping[str, Mapping[str, str | None]], tried: Tried) -> dict[str, dict[str, str]]:
    """Which keys `tried` does not take by themselves, with what it says, by target topic. One request for the first
    key of every topic, one for the second, and so on."""
    refused: dict[str, dict[str, str]] = {name: {} for name in configs}
    left = {name: list(chosen.items()) for name, chosen in configs.items() if chosen}
    while left:
        turn = {name: entries.pop() for name, entries in left.items()}
        outcome = await tried({name: {key: value} for name, (key, value) in turn.items()})
        for name, trouble in outcome.troubles().items():
            refused[name][turn[name][0]] = str(trouble) if name in outcome.denied else outcome.failed[name].why
        left = {name: entries for name, entries in left.items() if entries}
    return refused
