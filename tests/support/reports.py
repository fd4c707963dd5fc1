"""Reports made of rows, for the tests of `lockstep status`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lockstep_cli.rendering.status import report_parts
from lockstep_ops.status.partition_status import LogOffsets
from lockstep_ops.status.report import Report
from lockstep_ops.status.report_builder import build_report
from lockstep_rules.offsets.lag import LogRange
from lockstep_rules.switch.switch_readiness import SwitchLimits
from lockstep_state.commands.command_vocabulary import SERVICES
from lockstep_state.names import Flow
from lockstep_state.reasons.reason import NO_REASON
from lockstep_state.rows.state_rows import Assignment, MirroredTopic, PartitionProgress, Row, SlotStatus
from tests.support import reasons
from tests.support.printed import printed
from tests.support.source_groups import groups_read_at

FLOW = Flow("A", "B")
NOW = 1_000_000
GROUPS_READ = groups_read_at(NOW)
LIMITS = SwitchLimits(max_lag_ms=10_000, syncs_groups=True)


def reported(
    *rows: Row,
    replicas: Mapping[str, int] | None = None,
    unreadable: tuple[str, ...] = (),
    ends: Mapping[tuple[str, int], int] | None = None,
    limits: SwitchLimits = LIMITS,
    members: Mapping[str, Sequence[str]] | None = None,
    replicas_unknown: Sequence[str] = (),
    services: Sequence[str] = SERVICES,
    groups_read: Sequence[Row] = GROUPS_READ,
    **logs: Any,
) -> Report:
    """Return the report of these rows. `ends` are of the source. The target has all that the rows speak of."""
    by_key = {row.key(): row for row in (*groups_read, *rows)}
    target_ends = {
        (f"A.{row.topic}", row.partition): row.downstream + 1 for row in rows if isinstance(row, PartitionProgress)
    }
    source = {tp: LogRange(0, end) for tp, end in (ends or {}).items()}
    log_offsets = LogOffsets(**{"source": source, "target": target_ends, **logs})
    return build_report(
        FLOW,
        by_key,
        at_ms=NOW,
        services=services,
        replicas=replicas,
        replicas_unknown=replicas_unknown,
        unreadable=unreadable,
        logs=log_offsets,
        limits=limits,
        members=members or {},
    )


def at_work(*partitions: tuple[str, int], slot: int = 0, heard_ms: int = NOW) -> tuple[Row, ...]:
    """Return the rows of a slot that has the partitions and has said so."""
    status = SlotStatus(slot=slot, phase="started", partitions=len(partitions), at_ms=heard_ms)
    return Assignment(slot=slot, partitions=partitions), status


def topic(name: str = "t", partitions: int = 1, phase: str = "mirrored", reason: str = "") -> MirroredTopic:
    remote = f"A.{name}"
    return MirroredTopic(
        source_topic=name,
        target_topic=remote,
        partitions=partitions,
        target_partitions=partitions,
        phase=phase,
        cause=reasons.reported(reason) if reason else NO_REASON,
    )


def progress(name: str = "t", partition: int = 0, reason: str = "", **fields: object) -> PartitionProgress:
    row = PartitionProgress(topic=name, partition=partition, upstream=9, source_end=20, slot=0, at_ms=NOW)
    row = replace(row, cause=reasons.reported(reason)) if reason else row
    return replace(row, **fields)  # type: ignore[arg-type] # fields by name


def shown(report: Report, *sections: str, only_trouble: bool = False) -> str:
    return printed(report_parts(report, sections, only_trouble=only_trouble))
