"""Records before and after a transform, for a person to compare (`lockstep transform try`). Pure.

Without `values` no key, value or header value is shown: only sizes, digests, and how many fields differ.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lockstep_ops.exit_codes import Exit
from lockstep_ops.record_parts import PARTS, part_text, parts_as_json
from lockstep_state.codecs.strict_json import parse_json
from lockstep_state.codecs.transform_trial import TrialOutcome, TrialPartition, TrialRecord

LONGEST_SHOWN = 2_000
"""The most characters of a value that are shown."""
MOST_FIELDS = 10_000
"""The most fields of a value that are compared."""
STATES = ("changed", "unchanged", "dropped", "failed")


@dataclass(frozen=True, slots=True)
class TriedRecord:
    """A record of the source, and what the transform made of it."""

    topic: str
    partition: int
    before: TrialRecord
    outcome: TrialOutcome

    @property
    def state(self) -> str:
        """Return one of `STATES`."""
        if self.outcome.state != "kept":
            return self.outcome.state
        return "changed" if self.changed_parts else "unchanged"

    @property
    def changed_parts(self) -> tuple[str, ...]:
        """Return those of `PARTS` that differ, if the record is kept."""
        after = self.outcome.record
        if after is None:
            return ()
        return tuple(part for part in PARTS if getattr(self.before, part) != getattr(after, part))

    def as_json(self, *, values: bool) -> dict[str, Any]:
        """Return it for programs."""
        after = self.outcome.record
        changed = changed_fields(self.before.value, None if after is None else after.value)
        return {
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.before.offset,
            "state": self.state,
            "changed": list(self.changed_parts),
            "changed_fields": None if changed is None else list(changed) if values else len(changed),
            "condition": self.outcome.condition,
            "fragment": self.outcome.fragment,
            "before": parts_as_json(self.before, values=values),
            "after": None if after is None else parts_as_json(after, values=values),
        }


@dataclass(frozen=True, slots=True)
class PartRow:
    """A line of the comparison: a part of a record before and after, or what became of the whole record."""

    record: str
    """Topic, partition and offset; "": the line above has them."""
    part: str
    before: str
    after: str
    state: str


def tried_records(partitions: Iterable[TrialPartition], outcomes: Iterable[TrialOutcome]) -> tuple[TriedRecord, ...]:
    """Return each record with its outcome, in the order of the records.

    Raises:
        KeyError: A record has no outcome.
    """
    by_offset = {(outcome.topic, outcome.partition, outcome.offset): outcome for outcome in outcomes}
    return tuple(
        TriedRecord(
            partition.topic, partition.partition, record, by_offset[partition.topic, partition.partition, record.offset]
        )
        for partition in partitions
        for record in partition.records
    )


def counts(records: Iterable[TriedRecord]) -> Mapping[str, int]:
    """Return how many records became what, for each of `STATES`."""
    by_state = Counter(record.state for record in records)
    return {state: by_state[state] for state in STATES}


def exit_code(records: Sequence[TriedRecord]) -> Exit:
    """Return the exit code of `lockstep transform try`. Without a record nothing was tried."""
    if any(record.state == "failed" for record in records):
        return Exit.TROUBLE
    return Exit.FINE if records else Exit.NOT_VERIFIED


def part_rows(records: Iterable[TriedRecord], *, values: bool) -> Iterator[PartRow]:
    """Yield the lines of the comparison. Of a record that is kept they are its parts that differ."""
    for record in records:
        name = f"{record.topic}-{record.partition} {record.before.offset}"
        after = record.outcome.record
        if record.outcome.state == "failed":
            fragment = f" in {record.outcome.fragment}" if record.outcome.fragment else ""
            shown = shown_part(record.before.value, values)
            yield PartRow(name, "value", shown, f"failed: {record.outcome.condition}{fragment}", "failed")
        elif after is None:
            yield PartRow(name, "value", shown_part(record.before.value, values), "dropped", "dropped")
        elif not record.changed_parts:
            yield PartRow(name, "value", shown_part(record.before.value, values), "unchanged", "unchanged")
        for part in record.changed_parts:
            before_text, after_text = (shown_part(getattr(version, part), values) for version in (record.before, after))
            if part == "value" and after is not None:
                after_text += _fields_text(changed_fields(record.before.value, after.value), values)
            yield PartRow(name, part, before_text, after_text, "changed")
            name = ""


def shown_part(part: Any, values: bool) -> str:
    """Return a part of a record as a text; without `values` as its size and a digest."""
    return part_text(part, _excerpt if values else None)


def _excerpt(part: bytes) -> str:
    text = part[: 4 * LONGEST_SHOWN].decode("utf-8", "backslashreplace")
    if len(text) <= LONGEST_SHOWN and len(part) <= 4 * LONGEST_SHOWN:
        return text
    return f"{text[:LONGEST_SHOWN]}… ({len(part):,} bytes)"


def changed_fields(before: bytes | None, after: bytes | None) -> tuple[str, ...] | None:
    """Return the paths of scalars that only one value has, or that differ; None: one of them is no JSON."""
    if before is None or after is None:
        return None
    try:
        fields = [dict(_fields(parse_json(value), "$")) for value in (before, after)]
    except (ValueError, OverflowError):
        return None
    earlier, later = fields
    missing = object()
    return tuple(path for path in {**earlier, **later} if earlier.get(path, missing) != later.get(path, missing))


def _fields(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the path of each scalar, and its value with its type. Raises OverflowError if there are too many."""
    waiting: list[tuple[str, Any]] = [(path, value)]
    count = 0
    while waiting:
        path, value = waiting.pop()
        count += 1
        if count > MOST_FIELDS:
            raise OverflowError
        if isinstance(value, dict) and value:
            waiting += [(f"{path}.{name}", member) for name, member in value.items()]
        elif isinstance(value, list) and value:
            waiting += [(f"{path}[{index}]", item) for index, item in enumerate(value)]
        else:
            yield path, (type(value), str(value))


def _fields_text(changed: Sequence[str] | None, values: bool) -> str:
    if not changed:
        return ""
    if values:
        return f"  ({', '.join(sorted(changed)[:10])}{', …' if len(changed) > 10 else ''})"
    return f", {len(changed):,} {'field differs' if len(changed) == 1 else 'fields differ'}"
