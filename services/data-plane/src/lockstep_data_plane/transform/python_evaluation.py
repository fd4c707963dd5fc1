"""The evaluation of a Python function: record batches in, one dense batch and its source offsets out.

A function decides each record by itself. So it may be asked for any rows together: the answer may end early, and rows
are asked for again, in smaller tables, to find the record that it fails for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lockstep_data_plane.record_batch.codecs import JAVAS_LEVELS
from lockstep_data_plane.record_batch.compiled_rebuild import as_batch
from lockstep_data_plane.record_batch.layout import (
    CODEC_MASK,
    CONTROL,
    CorruptRecordError,
    Stretch,
    scan,
    stretches_within,
)
from lockstep_data_plane.record_batch.record_columns import (
    BatchOfRows,
    RecordColumns,
    UnpackedBatch,
    read_columns,
    unpack,
    write_rows,
)
from lockstep_data_plane.transform.python_function import FunctionFailed, FunctionRefused, TableFunction
from lockstep_data_plane.transform.python_table import (
    MadeRows,
    RowRules,
    TableTooLarge,
    head_of,
    make_table,
    read_table,
)

TABLE_BYTES = 8 * 1024 * 1024
"""The size of records, uncompressed, from which on no further batch joins a table."""


@dataclass(frozen=True, slots=True)
class EvaluationLimits:
    """The limits of each answer."""

    batch_bytes: int
    """The largest batch of an answer, unless a single record is larger."""
    unpacked_bytes: int
    """The most that the records of a batch, and a table, may take in memory."""


@dataclass(frozen=True, slots=True)
class RecordProblem:
    """A record that could not be evaluated."""

    row: int
    condition: str
    fragment: str


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The answer to a request. Each source offset up to `covers` is decided."""

    batch: bytes = field(repr=False)
    """One batch without a producer; empty: no record is left."""
    stretches: Sequence[Stretch]
    covers: int
    is_whole: bool
    failures: Sequence[tuple[int, str, str]]
    """Source offset, condition and fragment."""
    records_read: int
    oldest: int

    def fields(self) -> Mapping[str, Any]:
        """Return the answer as the fields of a frame, without the batch."""
        return {
            "stretches": [(first, count) for first, _, count in self.stretches],
            "covers": self.covers,
            "is_whole": self.is_whole,
            "failures": self.failures,
            "records_read": self.records_read,
            "oldest": self.oldest,
        }


def evaluate(
    function: TableFunction,
    batches: bytes | memoryview,
    start: int,
    topic: str,
    partition: int,
    rules: RowRules,
    limits: EvaluationLimits,
) -> Evaluated:
    """Return what a function leaves of the records of whole batches from offset `start` on.

    Raises:
        FunctionRefused: The function returned what it must not, or a batch is damaged (BATCH_CORRUPT).
        MemoryError: There is too little memory, which says nothing about the records.
    """
    try:
        gathered, covers, is_whole = _gather(batches, start, limits.unpacked_bytes)
        columns = read_columns(gathered, start)
    except CorruptRecordError as exc:
        raise FunctionRefused("BATCH_CORRUPT", f"a batch behind offset {start - 1}: {exc}") from exc
    if not columns.rows:
        return Evaluated(b"", (), covers, is_whole, (), 0, -1)
    evaluation = _Evaluation(function, columns, make_table(columns, topic, partition), rules, limits)
    made, asked, problem = evaluation.ask_all()
    return _Answer(columns, BatchOfRows.of(gathered, columns), limits).of(made, asked, problem, covers, is_whole)


def _gather(batches: bytes | memoryview, start: int, at_most: int) -> tuple[list[UnpackedBatch], int, bool]:
    """Return the batches that are evaluated together, the last offset in them, and whether they are all."""
    gathered: list[UnpackedBatch] = []
    size, covers = 0, -1
    for batch in scan(batches):
        if not batch.attributes & CONTROL and batch.last_offset >= start:
            if size >= TABLE_BYTES:
                return gathered, covers, False
            gathered.append(unpack(batch, at_most))
            size += len(gathered[-1].body)
        covers = batch.last_offset
    return gathered, covers, True


class _Evaluation:
    """The questions to a function about the records of one request."""

    def __init__(
        self, function: TableFunction, columns: RecordColumns, table: Any, rules: RowRules, limits: EvaluationLimits
    ) -> None:
        self._function = function
        self._columns = columns
        self._table = table
        self._rules = rules
        self._limits = limits

    def ask_all(self) -> tuple[MadeRows | None, int, RecordProblem | None]:
        """Return what was made of the first rows, how many these are, and what is wrong with the row behind them."""
        count, problem = self._columns.rows, None
        while count:
            try:
                made = self._ask(count)
            except FunctionFailed:
                problem = self._first_problem(count)
                count = problem.row
            except TableTooLarge:
                if count == 1:
                    return None, 0, RecordProblem(0, "RECORD_TOO_LARGE", self._function.name)
                count, problem = count // 2, None
            else:
                if made.failures:
                    row = min(made.failures)
                    return head_of(made, row), row, RecordProblem(row, made.failures[row], self._function.name)
                return made, count, problem
        return None, 0, problem

    def _ask(self, count: int) -> MadeRows:
        table = self._table.slice(0, count)
        made = self._function(table)
        return read_table(self._function.name, made, table, self._columns, self._rules, self._limits.unpacked_bytes)

    def _first_problem(self, count: int) -> RecordProblem:
        """Return the first record that the function fails for, given that it fails for the first `count` together."""
        first, end = 0, count
        while end - first > 1:
            middle = (first + end) // 2
            if self._failure(first, middle) is None:
                first = middle
            else:
                end = middle
        failed = self._failure(first, first + 1)
        if failed is None:
            raise FunctionRefused(
                "NOT_BY_RECORD", f"{self._function.name} fails for records together that it takes one by one"
            )
        return RecordProblem(first, failed.condition, failed.fragment)

    def _failure(self, first: int, end: int) -> FunctionFailed | None:
        try:
            self._function(self._table.slice(first, end - first))
        except FunctionFailed as failed:
            return failed
        return None


class _Answer:
    """The making of an answer from rows."""

    def __init__(self, columns: RecordColumns, batch_of: BatchOfRows, limits: EvaluationLimits) -> None:
        self._columns = columns
        self._batch_of = batch_of
        self._limits = limits

    def of(
        self, made: MadeRows | None, asked: int, problem: RecordProblem | None, covers: int, is_whole: bool
    ) -> Evaluated:
        """Return the answer, which ends early behind a problem, or if there are more rows than were asked for."""
        failures: Sequence[tuple[int, str, str]] = ()
        if problem is not None:
            covers, is_whole = self._columns.offset(problem.row), False
            failures = [(covers, problem.condition, problem.fragment)]
        elif asked < self._columns.rows:
            covers, is_whole = self._columns.offset(asked) - 1, False
        if made is None or not made.count:
            return Evaluated(b"", (), covers, is_whole, failures, asked, -1)
        rows = memoryview(made.rows.rows).cast("B").cast("i")
        codec = self._batch_of.batch_of_row(rows[0]).batch.attributes & CODEC_MASK
        kept = made.count
        batch, oldest = self._written(made, kept, codec)
        while len(batch) > self._limits.batch_bytes and kept > 1:
            kept = max(1, min(kept // 2, kept * self._limits.batch_bytes // len(batch)))
            batch, oldest = self._written(made, kept, codec)
        if kept < made.count:
            covers, is_whole, failures = self._columns.offset(rows[kept]) - 1, False, ()
        offsets = memoryview(self._columns.offsets).cast("q")
        stretches = stretches_within([offsets[row] for row in rows[:kept]])
        return Evaluated(batch, stretches, covers, is_whole, failures, asked, oldest)

    def _written(self, made: MadeRows, count: int, codec: int) -> tuple[bytes, int]:
        written = write_rows(self._columns, made.rows.head(count))
        batch = as_batch(written.body, count, written.base, written.newest, codec, JAVAS_LEVELS)
        return batch, written.oldest
