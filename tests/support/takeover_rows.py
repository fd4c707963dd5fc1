"""What a take-over and a hand-back find: rows, offsets of MM2, and a flow as it is before them."""

from dataclasses import replace
from typing import Any

from lockstep_ops.takeover.offset_location import offset_location
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import DesiredState, MirroredTopic, PartitionProgress, Row
from tests.support.printed import printed

FLOW = Flow("A", "B")
shown = printed
OFFSETS = "mm2-offsets.A.internal"
DEDICATED = offset_location("dedicated", FLOW, None, OFFSETS)
STOPPED = DesiredState(scope="connector:MirrorSourceConnector", phase="stopped")


def rows_of(*rows: Row) -> dict[str, Row]:
    return {row.key(): row for row in rows}


def progress(partition: int = 0, upstream: int = 9, **fields: Any) -> PartitionProgress:
    return replace(PartitionProgress(topic="t", partition=partition, upstream=upstream, located=True), **fields)


def topic(**fields: Any) -> MirroredTopic:
    return replace(MirroredTopic(source_topic="t", target_topic="A.t"), **fields)
