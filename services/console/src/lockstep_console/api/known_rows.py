"""Read the rows that a watch has of its flow now, or say why it has none."""

from collections.abc import Mapping
from typing import Any

from lockstep_console.flow_watch import FlowWatch
from lockstep_state.rows.row import NewerVersion
from lockstep_state.rows.state_rows import Row


async def known_rows(watch: FlowWatch) -> tuple[Mapping[str, Row], dict[str, Any]]:
    """Return the rows of a flow, and the field `unknown` with a sentence if they are not, or not all, known now."""
    await watch.rows.wait_read()
    await watch.rows.read_waiting()
    try:
        rows = watch.rows.rows
    except NewerVersion as exc:
        return {}, {"unknown": str(exc)}
    trouble = watch.rows.trouble
    return rows, {} if trouble is None else {"unknown": str(trouble)}
