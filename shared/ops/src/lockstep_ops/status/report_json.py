"""A report as JSON values, which programs read from `lockstep status --output json` and from the console. Pure."""

from collections.abc import Collection
from dataclasses import asdict
from typing import Any

from lockstep_ops.status.readiness import blockers_as_json
from lockstep_ops.status.report import Report

PLAIN = (
    *("flow", "at_ms", "fine", "lag_records", "lag_at_least", "lag_unknown", "lag_ms"),
    *("not_copying", "groups_held", "passed_over", "appends", "exact", "heartbeat", "empty_selections"),
)
"""Values of a report that are in JSON as they are."""

SECTIONS = ("services", "topics", "partitions", "slots", "groups")
"""The sections of a report. Each has the lines of the report's field of that name."""


def report_as_json(
    report: Report, sections: Collection[str] = SECTIONS, *, only_trouble: bool = False, most_named: int | None = None
) -> dict[str, Any]:
    """Return the report as JSON values: sums, troubles, and the lines of `sections`, which may be none.

    Args:
        report: The report.
        sections: The sections.
        only_trouble: Whether their lines are only those in trouble.
        most_named: Most troubles, and most blockers of a switch. None: all of them.
    """
    body: dict[str, Any] = {name: getattr(report, name) for name in PLAIN}
    body["switch_ready"] = report.switch_ready
    body["switch_blockers"] = blockers_as_json(report.switch_blockers[:most_named])
    body["acls"] = None if report.acls is None else line_as_json(report.acls)
    for name in ("held_back", "troubles", "unreadable", "clusters"):
        most = most_named if name == "troubles" else None
        body[name] = [asdict(line) for line in getattr(report, name)[:most]]
    for name in SECTIONS:
        if name in sections:
            body[name] = [line_as_json(line) for line in getattr(report, name) if line.cause or not only_trouble]
    return body


def line_as_json(line: Any) -> dict[str, Any]:
    """Return the fields of a line (`FailableLine`), with the code of what fails beside its sentence."""
    return {**asdict(line), "trouble": line.trouble, "cause": line.cause.to_json()}
