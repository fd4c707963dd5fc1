"""Create the control topics that a service of a flow needs, and report what a cluster refuses of them."""

import asyncio
from collections.abc import Sequence

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.topics.control_topics import (
    ControlTopic,
    CreatedTopics,
    ensure_control_topics,
    refused_configs_text,
)
from lockstep_runtime.flow.context import FlowContext


async def create_control_topics(ctx: FlowContext, admin: Admin, topics: Sequence[ControlTopic]) -> tuple[str, ...]:
    """Create the topics that are missing, report configs that the cluster refused, and return the names created.

    The events topic has to be open. Raises as `ensure_control_topics`.
    """
    created = await ensure_control_topics(admin, topics)
    log_created(ctx, admin, created)
    await report_refused_configs(ctx, admin, created)
    return created.names


def log_created(ctx: FlowContext, admin: Admin, created: CreatedTopics) -> None:
    """Log a line for each topic that was created."""
    for name in created.names:
        ctx.log.info("control topic created", f"{name} on {admin.alias}", topic=name)


async def report_refused_configs(ctx: FlowContext, admin: Admin, created: CreatedTopics) -> None:
    """Write one event for each created topic of which the cluster refused configs."""
    alias = admin.alias
    await asyncio.gather(
        *(
            ctx.event(
                "ConfigRefused", name, refused_configs_text(name, alias, refused), cluster=alias, keys=dict(refused)
            )
            for name, refused in created.refused.items()
        )
    )
