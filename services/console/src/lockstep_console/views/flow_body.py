"""A flow as the API shows it: the body of `lockstep status --output json`, with what an operator needs beside it.

A cluster that has not answered since the report was read counts at once: nothing is painted fine by an old report.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from lockstep_config import FlowSettings
from lockstep_ops.decisions import decisions
from lockstep_ops.status.flow_status import UnknownStatus
from lockstep_ops.status.overview_sentence import overview_sentence
from lockstep_ops.status.report import PartitionLine, Report, Trouble, combine_if_known
from lockstep_ops.status.report_json import line_as_json, report_as_json
from lockstep_rules.offsets.lag_history import summarize
from lockstep_rules.offsets.verified_copy import find_verification
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import LagBlock, Row

NOT_BEGUN_UPSTREAM = -1

MOST_NAMED = 50
"""Most troubles, and most blockers of a switch, of a flow without sections. With sections it has all of them."""


def flow_body(
    settings: FlowSettings,
    status: Report | UnknownStatus,
    rows: Mapping[str, Row],
    away: Mapping[str, str],
    *,
    read_ms: int,
    now_ms: int,
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
        sections: The sections of the report that are shown.
    """
    flow = settings.flow
    if flow.target in away and not isinstance(status, UnknownStatus):
        status = UnknownStatus.because(flow, away[flow.target])
    names = {"source": flow.source, "target": flow.target}
    if isinstance(status, UnknownStatus):
        return {
            **status.as_json(),
            **names,
            "at_ms": read_ms,
            "sentence": f"{flow}: unknown: {status.reason}",
            "history": _history_body(rows, now_ms),
            "verified_until_ms": None,
            "decisions": [],
        }
    verified_ms = verified_until(status.partitions, rows)
    body = {
        **report_as_json(status, sections),
        **names,
        "at_ms": read_ms,
        "sentence": overview_sentence(status, verified_ms, now_ms),
        "history": _history_body(rows, now_ms),
        "verified_until_ms": verified_ms,
        "decisions": [decision.as_json() for decision in decisions(status, rows)],
    }
    if flow.source in away:
        body = _with_source_away(body, flow.source, away[flow.source])
    return body if sections else _shortened(body)


def _shortened(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with at most `MOST_NAMED` of each list that may have an entry for each partition."""
    lists = {name: body[name] for name in ("switch_blockers", "troubles")}
    return {
        **body,
        **{name: entries[:MOST_NAMED] for name, entries in lists.items()},
        **{f"{name}_left_out": max(0, len(entries) - MOST_NAMED) for name, entries in lists.items()},
    }


def _with_source_away(body: dict[str, Any], alias: str, sentence: str) -> dict[str, Any]:
    """Return the body of a flow whose source does not answer any more since the report was read."""
    what = f"cluster {alias}"
    if any(trouble["what"] == what for trouble in body["troubles"]):
        return body
    return {
        **body,
        "fine": False,
        "switch_ready": False if body["switch_ready"] is not None else None,
        "troubles": [asdict(Trouble(what, sentence)), *body["troubles"]],
        "sentence": f"{body['flow']}: {sentence}",
    }


def _history_body(rows: Mapping[str, Row], now_ms: int) -> dict[str, Any]:
    """Return the worst recovery point of the last day, and for how long it is known."""
    summary = summarize((row for row in rows.values() if isinstance(row, LagBlock)), now_ms)
    return {name: value for name, value in asdict(summary).items() if name != "now_ms"}


def verified_until(partitions: Collection[PartitionLine], rows: Mapping[str, Row]) -> int | None:
    """Return up to when all copies are compared, in Unix milliseconds, or None if some never were.

    Partitions of which nothing is copied do not count.
    """
    moments = [
        _partition_verified(rows, (line.topic, line.partition))
        for line in partitions
        if line.upstream != NOT_BEGUN_UPSTREAM
    ]
    return combine_if_known(moments, min) if moments else None


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
