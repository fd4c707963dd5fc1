"""Read the rows that a watch has of its flow now, or say why it has none."""

import asyncio
from collections.abc import Mapping
from typing import Any

from lockstep_console.flow_watch import FlowWatch
from lockstep_console.followed.watched_topic import WatchedTopic
from lockstep_state.rows.row import NewerVersion
from lockstep_state.rows.state_rows import Row

READ_WITHIN_S = 5.0
"""The seconds for which a request waits for the first reading of a topic, when the console has just begun."""


async def wait_read(topic: WatchedTopic) -> None:
    """Return once a topic was read, or it is known why it cannot be. If that takes long, its `trouble` says so."""
    try:
        async with asyncio.timeout(READ_WITHIN_S):
            await topic.judged()
    except TimeoutError:
        return


async def known_rows(watch: FlowWatch) -> tuple[Mapping[str, Row], dict[str, Any]]:
    """Return the rows of a flow, and the field `unknown` with a sentence if they are not, or not all, known now."""
    await wait_read(watch.rows)
    try:
        rows = watch.rows.rows
    except NewerVersion as exc:
        return {}, {"unknown": str(exc)}
    trouble = watch.rows.trouble
    return rows, {} if trouble is None else {"unknown": str(trouble)}
