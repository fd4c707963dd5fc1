"""Carry out a plan on the target. What each resource came to is the answer; nothing is decided here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lockstep_runtime.admin import Admin
from lockstep_runtime.described import NewTopic
from lockstep_topic_sync.plan import Alter, Create, Grow

__all__ = ["Applied", "alter", "create", "grow"]


@dataclass(frozen=True, slots=True)
class Applied:
    """Source topics for which it worked, and why not for the others. Existing already is neither: a fresh look
    tells."""

    done: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


async def create(
    target: Admin, wanted: Sequence[Create], configs: Mapping[str, Mapping[str, str]], replication_factor: int
) -> Applied:
    """Create remote topics, each with the configs under its source name."""
    new = [NewTopic(c.target, c.partitions, replication_factor, dict(configs[c.source])) for c in wanted]
    outcome = await target.create_topics(new)
    failed = {name: t for name, t in outcome.troubles().items() if not Admin.existed(t)}
    return Applied(
        tuple(c.source for c in wanted if c.target in outcome.done),
        {c.source: str(failed[c.target]) for c in wanted if c.target in failed},
    )


async def grow(target: Admin, wanted: Sequence[Grow]) -> Applied:
    """Add partitions to remote topics."""
    outcome = await target.create_partitions({g.target: g.total for g in wanted})
    failed = outcome.troubles()
    return Applied(
        tuple(g.source for g in wanted if g.target in outcome.done),
        {g.source: str(failed[g.target]) for g in wanted if g.target in failed},
    )


async def alter(target: Admin, wanted: Sequence[Alter]) -> Applied:
    """Set and take back configs of remote topics."""
    outcome = await target.alter_configs({a.target: a.changes for a in wanted})
    failed = outcome.troubles()
    return Applied(
        tuple(a.source for a in wanted if a.target in outcome.done),
        {a.source: str(failed[a.target]) for a in wanted if a.target in failed},
    )
