"""What `docs/reference/offset-runs.md` says of the rows is so: their schema, and what they weigh."""

import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest

from lockstep_data_plane.core.offset_run_log import CHUNK, RING, OffsetRunLog
from lockstep_state.rows.state_rows import OffsetRuns
from lockstep_state.schemas import schema
from tests.support.json_schema import faults
from tests.support.offset_truth import FIRST, Copied, Stretch

DOCS = Path(__file__).resolve().parents[3] / "docs" / "reference"
SCHEMA = schema("runs")


def transactions(count: int) -> Iterator[Stretch]:
    """Ten records and a marker each."""
    for number in range(count):
        yield 10**9 + 11 * number, 10**9 + 10 * number, 10


def half_compacted(offsets: int) -> Iterator[Stretch]:
    """Of each two records one is left, at random."""
    dice = random.Random(1)
    down, length = 10**9, 0
    for up in range(10**9, 10**9 + offsets):
        if dice.random() < 0.5:
            length += 1
        elif length:
            yield up - length, down, length
            down, length = down + length, 0


@dataclass
class Weight:
    seconds: int = 0
    rows: int = 0
    written: int = 0
    largest: int = 0
    kept: int = 0


def weighed(slot_spans: Iterable[Stretch], a_second: int) -> Weight:
    """Copied at so many records a second, written once a second."""
    progress = replace(FIRST, source_topic_id="s" * 22, target_topic_id="t" * 22, topic="orders")
    log, weight, records = OffsetRunLog(100).continued(progress), Weight(), 0
    present: dict[bytes, int] = {}
    for stretch in slot_spans:
        log.add_run(*stretch)
        records += stretch[2]
        if records < a_second * (weight.seconds + 1):
            continue
        weight.seconds += 1
        rows = log.due()
        log.mark_written(rows)
        for row in rows:
            key, value = replace(row, at_ms=1_800_000_000_000).encode()
            present[key] = len(key) + len(value)
            weight.rows += 1
            weight.written += present[key]
            weight.largest = max(weight.largest, present[key])
    weight.kept = sum(present.values())
    return weight


def table() -> str:
    """For `docs/reference/offset-runs.md`."""
    lines = [
        "| one partition | rows a second | bytes a second | largest row | kept in the topic |",
        "|---|---|---|---|---|",
    ]
    for name, slot_spans, a_second in (
        ("plain, 100,000 records/s", [(n * 1000, n * 1000, 1000) for n in range(1000)], 100_000),
        ("1,000 transactions/s of 10 records", transactions(60_000), 10_000),
        ("1,000 transactions/s of one record", ((2 * n, n, 1) for n in range(60_000)), 1_000),
        ("half compacted, 50,000 records/s", half_compacted(1_000_000), 50_000),
    ):
        w = weighed(slot_spans, a_second)
        cells = (f"{w.rows / w.seconds:.1f}", *(f"{n:,}" for n in (w.written // w.seconds, w.largest, w.kept)))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def test_the_document_has_the_sizes() -> None:
    assert table() in (DOCS / "offset-runs.md").read_text(), f"docs/reference/offset-runs.md is to hold\n{table()}"


def test_real_rows_keep_to_the_schema() -> None:
    partition = Copied(lag_max=10)
    for times in range(3):
        partition.copies([(40_000 * times + 3 * n, 30_000 * times + 2 * n, 2) for n in range(CHUNK * RING // 2 + 9)])
        partition.writes()
        partition.dies_and_goes_on()
    rows = [row for row in partition.log if isinstance(row, OffsetRuns)]
    assert max(row.edition for row in rows) >= 1, "also thinned ones"
    for row in rows:
        assert list(faults(json.loads(row.encode()[1]), SCHEMA)) == []


def test_the_schema_knows_every_field_and_no_other() -> None:
    assert SCHEMA["properties"].keys() == {"version"} | {f.name for f in fields(OffsetRuns)}
    assert set(SCHEMA["required"]) == SCHEMA["properties"].keys() - {"at_ms", "term"}
    assert SCHEMA["properties"]["version"]["const"] == OffsetRuns.version
    assert SCHEMA["properties"]["chunk"]["maximum"] == RING - 1
    assert SCHEMA["properties"]["runs"]["maxItems"] == CHUNK


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"version": 2}, "row.version is 2"),
        ({"chunk": 16}, "row.chunk is 16"),
        ({"edition": -1}, "row.edition is -1"),
        ({"topic": 1}, "row.topic is no string"),
        ({"runs": []}, "row.runs has 0 items"),
        ({"runs": [[0, 0, 1]] * 257}, "row.runs has 257 items"),
        ({"runs": [[0, 0]]}, "row.runs[0] has 2 items"),
        ({"runs": [[0, 0, 0]]}, "row.runs[0][2] is 0"),
    ],
)
def test_offset_runs_schema_refuses_a_malformed_row(change: dict[str, Any], fault: str) -> None:
    row = OffsetRuns(topic="t", partition=0, chunk=0, producer_id=4000, runs=((0, 0, 5),))
    assert fault in list(faults({**json.loads(row.encode()[1]), **change}, SCHEMA))


def test_a_row_without_its_runs_breaks_the_schema() -> None:
    assert list(faults({"version": 1}, SCHEMA))[-1] == "row lacks runs"
