"""A flow as the API shows it: the body of `lockstep status --output json`, with what an operator needs beside it.

A cluster that has not answered since the report was read counts at once: nothing is painted fine by an old report.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from typing import Any

from lockstep_config import FlowSettings
from lockstep_ops.decisions import count_decisions, decisions
from lockstep_ops.status.flow_status import UnknownStatus
from lockstep_ops.status.overview_sentence import overview_sentence
from lockstep_ops.status.report import PartitionLine, Report, Trouble
from lockstep_ops.status.report_json import line_as_json, report_as_json
from lockstep_rules.offsets.lag_history import summarize
from lockstep_rules.offsets.verified_copy import find_verification
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import LagBlock, Row

NOT_BEGUN_UPSTREAM = -1

MOST_NAMED = 50
"""Most troubles, blockers of a switch, and halted partitions to decide about, of a flow.

With a section of `WHOLE` it has all of them.
"""

WHOLE = frozenset({"topics", "partitions"})
"""The sections that may be as long as those lists. A page reads the others every two seconds."""


def flow_body(
    settings: FlowSettings,
    status: Report | UnknownStatus,
    rows: Mapping[str, Row],
    away: Mapping[str, str],
    *,
    read_ms: int,
    now_ms: int,
    known_ms: int = 0,
    sections: Collection[str] = (),
) -> dict[str, Any]:
    """Return a flow as JSON values.

    Args:
        settings: The flow.
        status: Its report, or why there is none.
        rows: The rows that the report is of, by key.
        away: Why clusters of the flow do not answer now, by alias.
        read_ms: When the report was read, in Unix milliseconds, or when it was known that there is none.
        now_ms: The present time.
        known_ms: When the last report was read, in Unix milliseconds; 0: there was none yet.
        sections: The sections of the report that are shown.
    """
    flow = settings.flow
    if flow.target in away:
        status = UnknownStatus.because(flow, away[flow.target])
    names = {"source": flow.source, "target": flow.target}
    if isinstance(status, UnknownStatus):
        return {
            **status.as_json(),
            **names,
            "at_ms": read_ms,
            "known_ms": known_ms or None,
            "sentence": f"{flow}: unknown: {status.reason}",
            "history": _history_body(rows, now_ms),
            "verified_until_ms": None,
            "decisions": [],
        }
    verified_ms = verified_until(status.partitions, rows)
    cluster = f"cluster {flow.source}"
    has_gone = flow.source in away and all(trouble.what != cluster for trouble in status.troubles)
    if has_gone:
        status = replace(status, troubles=(Trouble(cluster, away[flow.source]), *status.troubles))
    most = None if WHOLE.intersection(sections) else MOST_NAMED
    body = {
        **report_as_json(status, sections, most_named=most),
        **names,
        "at_ms": read_ms,
        "sentence": overview_sentence(status, verified_ms, now_ms),
        "history": _history_body(rows, now_ms),
        "verified_until_ms": verified_ms,
        "decisions": [decision.as_json() for decision in decisions(status, rows, most)],
    }
    if has_gone:
        is_ready = None if body["switch_ready"] is None else False
        body |= {"switch_ready": is_ready, "sentence": f"{flow}: {away[flow.source]}"}
    if most is not None:
        counts = {
            "switch_blockers": len(status.switch_blockers),
            "troubles": len(status.troubles),
            "decisions": count_decisions(status, rows),
        }
        body |= {f"{name}_left_out": count - len(body[name]) for name, count in counts.items()}
    return body


def _history_body(rows: Mapping[str, Row], now_ms: int) -> dict[str, Any]:
    """Return the worst recovery point of the last day, and for how long it is known."""
    summary = summarize((row for row in rows.values() if isinstance(row, LagBlock)), now_ms)
    return {name: value for name, value in asdict(summary).items() if name != "now_ms"}


def verified_until(partitions: Collection[PartitionLine], rows: Mapping[str, Row]) -> int | None:
    """Return up to when all copies are compared, in Unix milliseconds, or None if some never were.

    Partitions of which nothing is copied do not count.
    """
    earliest = None
    for line in partitions:
        if line.upstream == NOT_BEGUN_UPSTREAM:
            continue
        moment = _partition_verified(rows, (line.topic, line.partition))
        if moment is None:
            return None  # without a look at the others, of which there may be 100,000
        earliest = moment if earliest is None else min(earliest, moment)
    return earliest


def _partition_verified(rows: Mapping[str, Row], tp: TopicPartition) -> int | None:
    """Return up to when a partition's copy is compared, or None if it never was."""
    row = find_verification(rows, tp)
    return None if row is None or row.upstream < 0 else row.verified_ms


def partition_body(line: PartitionLine, rows: Mapping[str, Row], spark: Collection[int | None]) -> dict[str, Any]:
    """Return a partition as JSON values, with its lag of the last minutes."""
    return {
        **line_as_json(line),
        "copied_to": line.upstream,
        "verified_until_ms": _partition_verified(rows, (line.topic, line.partition)),
        "spark": list(spark),
    }
