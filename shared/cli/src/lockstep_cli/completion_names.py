"""Print the topics, partitions and slots of flows, for completion.

    python -m lockstep_cli.completion_names FILE FLOW...

Each is a line of its kind and its name. The process that starts this one ends it if the target is slow.
"""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from lockstep_cli.completion import WITHIN_S
from lockstep_cli.flow_selection import choose_flows
from lockstep_ops.status.flow_report import read_rows
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, Row, SlotStatus


def scope_names(rows: Mapping[str, Row]) -> Iterator[str]:
    """Yield a line for each topic that is mirrored, each partition that is copied and each slot."""
    for row in rows.values():
        match row:
            case MirroredTopic(phase="mirrored"):
                yield f"topic {row.source_topic}"
            case PartitionProgress():
                yield f"partition {row.topic}-{row.partition}"
            case SlotStatus():
                yield f"slot {row.slot}"


async def _print_names(file: Path, flows: list[str]) -> None:
    """Print the names of these flows of a file, or of all enabled ones if none is given."""
    for settings in choose_flows(file, flows, all_enabled=not flows):
        rows, _ = await read_rows(settings, WITHIN_S)
        for line in scope_names(rows):
            click.echo(line)


if __name__ == "__main__":
    asyncio.run(_print_names(Path(sys.argv[1]), sys.argv[2:]))
