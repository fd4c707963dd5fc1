"""The results of `lockstep transform`: facts of each transform, and records side by side. Pure: it prints nothing."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from lockstep_cli.rendering.table import Column, RowTable, facts
from lockstep_ops.formatting import count_text, visible
from lockstep_ops.transform.transform_check import TransformCheck
from lockstep_ops.transform.transform_try import PartRow, TriedRecord, counts, part_rows
from lockstep_state.codecs.transform_trial import TrialCost

STYLES = {"changed": "", "unchanged": "dim", "dropped": "yellow", "failed": "red"}


def check_parts(file: Path, checks: Sequence[TransformCheck]) -> Iterator[RenderableType]:
    """Yield the facts of each transform that can be used, and a verdict."""
    for check in checks:
        if not check.mistakes:
            yield facts(*_facts(check), title=f"{check.settings.name}  {', '.join(check.flows)}")
            yield ""
    wrong = sum(1 for check in checks if check.mistakes)
    if not checks:
        yield (
            f"{visible(str(file))}: no flow has a transform: add lockstep.transform.NAME.topics, and .mask, .sql, "
            ".sql.file or .python"
        )
    elif wrong:
        yield f"{visible(str(file))}: {wrong} of {count_text(len(checks), 'transform')} cannot be used"
    else:
        yield f"{visible(str(file))}: {count_text(len(checks), 'transform')} can be used"


def try_parts(
    topic: str, check: TransformCheck, records: Sequence[TriedRecord], *, values: bool
) -> Iterator[RenderableType]:
    """Yield the records before and after, a line for each part that differs, and how many became what."""
    columns: Sequence[Column[PartRow]] = (
        Column("record", lambda row: row.record, "name"),
        Column("part", lambda row: row.part, "name"),
        Column("before", lambda row: row.before),
        Column("after", lambda row: Text(visible(row.after), STYLES[row.state])),
    )
    if records:
        title = f"{visible(topic)}  transform {check.settings.name} {check.result.version}"
        yield RowTable(columns, part_rows(records, values=values), title=title)
        yield ""
    state_counts = counts(records)
    words = ", ".join(f"{count:,} {state}" for state, count in state_counts.items())
    yield f"{count_text(len(records), 'record')} of {visible(topic)}: {words}"


def _facts(check: TransformCheck) -> Iterator[tuple[str, str]]:
    settings, result = check.settings, check.result
    yield "  from", settings.statement_location
    yield "  topics", ", ".join(settings.topics.include)
    if settings.python:
        yield "  function", settings.python
    else:
        yield "  made anew", ", ".join(result.columns_written) or "nothing"
        yield "  kept", ", ".join(check.columns_kept) or "nothing"
        yield "  filter", _filter_text(check)
    yield "  on error", settings.on_error
    if check.secrets:
        yield "  secrets", ", ".join(check.secrets)
    yield "  version", result.version or "unknown, because a secret is missing"
    if result.cost is not None:
        yield "  cost", _cost_text(result.cost)
    for remark in check.remarks:
        yield "  note", remark


def _filter_text(check: TransformCheck) -> str:
    if not check.result.filters:
        return "none: each record stays"
    tombstones = "pass" if check.settings.tombstones == "pass" else "are filtered too"
    remainder = "" if check.settings.filtered == "drop" else "; what is filtered leaves a tombstone of its key"
    return f"records may be filtered; tombstones {tombstones}{remainder}"


def _cost_text(cost: TrialCost) -> str:
    if not cost.call_ms:
        return f"not measured: {cost.reason}"
    return (
        f"{cost.call_ms:.2f} ms a call of one record, {cost.records_per_s:,.0f} records a second in large calls "
        f"(a sample record of {cost.sample_bytes} bytes, one core of this machine)"
    )
