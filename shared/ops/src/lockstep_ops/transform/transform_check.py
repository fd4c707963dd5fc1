"""What is known about each transform of a file once it was compiled or loaded (`lockstep transform check`). Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lockstep_config.flow.model import FlowSettings
from lockstep_config.flow.record_transforms import find_suggested_topic
from lockstep_config.flow.transform_settings import TransformSettings
from lockstep_config.keys.transform_keys import PREFIX, secret_key
from lockstep_ops.exit_codes import Exit
from lockstep_rules.filters import NameFilter
from lockstep_state.codecs.transform_trial import TrialMistake, TrialPartition, TrialRequest, TrialResult

COLUMNS = ("key", "value", "headers", "timestamp")
"""The columns that a transform may make anew."""
LONGEST_EXCERPT = 100
FUNCTION_REMARKS = (
    "whether a record alone decides what becomes of it cannot be checked: a copy that differs at a resume is in doubt",
    "which columns it makes anew, and whether it filters, is not known before it runs: lockstep transform try shows it",
)
"""What is to be said of every function in Python."""


@dataclass(frozen=True, slots=True)
class TransformCheck:
    """One transform, the flows that have it, and what came of its statement or function."""

    settings: TransformSettings
    flows: tuple[str, ...]
    result: TrialResult
    without_topic: tuple[str, ...] = ()
    """The flows among them for which no name was found that they mirror and the transform selects."""

    @property
    def mistakes(self) -> tuple[TrialMistake, ...]:
        """Return the mistakes of the statement, and each secret that it takes and does not have."""
        missing = [name for name in self.result.secrets if name not in self.settings.secrets]
        return (*self.result.mistakes, *(_missing_secret(self.settings.name, name) for name in missing))

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the names of the secrets that it gets."""
        return tuple(sorted(self.settings.secrets)) if self.settings.python else self.result.secrets

    @property
    def columns_kept(self) -> tuple[str, ...]:
        """Return the columns that stay each record's own under a statement."""
        return tuple(name for name in COLUMNS if name not in self.result.columns_written)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what else changes with these columns, and with a filter, a sentence each."""
        result = self.result
        if result.mistakes:
            return ()
        remarks = [
            f"no topic was found that {flow} mirrors and {PREFIX}{self.settings.name}.topics selects: "
            "both take names as the source has them"
            for flow in self.without_topic
        ]
        if self.settings.python:
            return (*remarks, *FUNCTION_REMARKS)
        if "key" in result.columns_written:
            remarks.append(
                "the key is made anew, and each record stays in its partition: equal keys may be in several partitions"
            )
        if "timestamp" in result.columns_written:
            remarks.append("the timestamp is made anew: the target's retention goes by it")
        if result.filters and self.settings.filtered == "drop":
            remarks.append(
                "a record that is filtered leaves nothing: in a compacted topic an older record of its key stays"
            )
        return tuple(remarks)

    def as_json(self) -> dict[str, Any]:
        """Return it for programs. No secret is in it, only their names. What is not known of a function is None."""
        settings, result = self.settings, self.result
        body: dict[str, Any] = {
            "name": settings.name,
            "flows": list(self.flows),
            "topics": list(settings.topics.include),
            "place": settings.statement_location,
            "kind": "python" if settings.python else "sql",
            "statement": settings.python or settings.sql,
            "mistakes": [asdict(mistake) for mistake in self.mistakes],
        }
        if not result.mistakes:
            is_known = not settings.python
            body |= {
                "version": result.version,
                "columns_written": list(result.columns_written) if is_known else None,
                "columns_kept": list(self.columns_kept) if is_known else None,
                "columns_read": list(result.columns_read) if is_known else None,
                "filters": result.filters if is_known else None,
                "tombstones": settings.tombstones,
                "filtered": settings.filtered,
                "on_error": settings.on_error,
                "secrets": list(self.secrets),
                "remarks": list(self.remarks),
                "cost": None if result.cost is None else asdict(result.cost),
            }
        return body


def transforms_of(flows: Iterable[FlowSettings]) -> dict[TransformSettings, tuple[str, ...]]:
    """Return each transform of these flows once, with the flows that have it, in the order of the flows."""
    having: dict[TransformSettings, tuple[str, ...]] = {}
    for settings in flows:
        for transform in settings.data_plane.transforms:
            having[transform] = (*having.get(transform, ()), str(settings.flow))
    return having


def flows_without_topic(transform: TransformSettings, flows: Iterable[FlowSettings]) -> tuple[str, ...]:
    """Return the flows with a transform that mirror no topic that it selects, as far as their patterns show.

    A flow counts only if names are known that each of both selects, and no name is known that both do.
    """
    return tuple(
        str(settings.flow)
        for settings in flows
        if transform in settings.data_plane.transforms and _are_apart(transform.topics, settings)
    )


def _are_apart(topics: NameFilter, settings: FlowSettings) -> bool:
    if not isinstance(settings.topics, NameFilter):  # a class of the user's
        return False
    are_known = all(find_suggested_topic(selection, lambda _: True) for selection in (topics, settings.topics))
    shared = find_suggested_topic(topics, settings.replicates) or find_suggested_topic(settings.topics, topics.matches)
    return are_known and not shared


def trial_request(
    transform: TransformSettings, partitions: Sequence[TrialPartition] = (), *, measured: bool = False
) -> TrialRequest:
    """Return the request of a trial of a transform."""
    return TrialRequest(
        transform.name,
        transform.sql,
        transform.tombstones,
        transform.filtered,
        transform.secrets,
        tuple(partitions),
        measured,
        transform.python,
    )


def exit_code(checks: Iterable[TransformCheck]) -> Exit:
    """Return the exit code of `lockstep transform check`."""
    return Exit.TROUBLE if any(check.mistakes for check in checks) else Exit.FINE


def mistake_lines(check: TransformCheck, mistake: TrialMistake) -> list[str]:
    """Return a mistake with its place, and the line of the statement with a mark below the character."""
    position = f"line {mistake.line}, column {mistake.column}: " if mistake.line else ""
    fragment = f" ({mistake.fragment})" if mistake.fragment else ""
    condition = f" [{mistake.condition}]" if mistake.condition else ""
    suggestion = f"; instead: {mistake.suggestion}" if mistake.suggestion else ""
    return [
        f"{check.settings.statement_location}: {position}{mistake.message}{fragment}{condition}{suggestion}",
        *excerpt(check.settings.sql, mistake.line, mistake.column),
    ]


def excerpt(statement: str, line: int, column: int) -> list[str]:
    """Return a line of a statement and a line with a mark below a character of it; nothing if there is none."""
    lines = statement.splitlines()
    if not 0 < line <= len(lines) or not 0 < column <= len(lines[line - 1]) + 1:
        return []
    first = max(0, min(column - 1 - LONGEST_EXCERPT // 2, len(lines[line - 1]) - LONGEST_EXCERPT))
    shown = lines[line - 1][first : first + LONGEST_EXCERPT].replace("\t", " ")
    return [f"    {shown}", f"    {' ' * (column - 1 - first)}^"]


def _missing_secret(transform: str, name: str) -> TrialMistake:
    message = f"the statement takes the secret {name!r}, and {transform} has none of this name"
    return TrialMistake(
        "SECRET_MISSING", 0, 0, "", message, suggestion=f"add {secret_key(transform, name)}=${{file:/PATH:KEY}}"
    )
