"""Lines taken apart: scope, typed value, or why the key does not take it."""

from datetime import timedelta
from typing import Any

import pytest

from lockstep_config.resolve.cells import Cell, KeyScope, read_cells
from lockstep_config.text.properties import Entry
from lockstep_rules.filters import NameFilter
from lockstep_state.names import Flow


def read_cell(key: str, value: str) -> Cell:
    (cell,) = read_cells([Entry(key, value, 7)], ("A", "B"))
    return cell


def test_cell_keeps_its_line_and_its_scope() -> None:
    cell = read_cell("A->B.emit.checkpoints.interval.seconds", " 5 ")
    assert (cell.entry.line, cell.scope) == (7, KeyScope("emit.checkpoints.interval.seconds", Flow("A", "B")))


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("A->B.enabled", "TRUE", True),
        ("A->B.emit.checkpoints.interval.seconds", " 5 ", timedelta(seconds=5)),
        ("topics", "a, b.*", NameFilter(("a", "b.*"))),
        ("A->B.lockstep.connector.checkpoint.admin.timeout.ms", "7", timedelta(milliseconds=7)),
        ("replication.policy.separator", " ", ""),
        ("lockstep.checkpoint.opposite", " ", None),
        ("A->B.source.consumer.isolation.level", " READ_COMMITTED ", "read_committed"),
        ("A.consumer.fetch.max.bytes", " 12 ", 12),
        ("A->B.source.cluster.security.protocol", "sasl_ssl", "SASL_SSL"),
        ("B.bootstrap.servers", "b1:9092, b2:9092,", ("b1:9092", "b2:9092")),
        ("replication.policy.class", " com.example.Policy ", "com.example.Policy"),
        ("no.such.key", " x ", " x "),
    ],
)
def test_value_is_what_its_key_declares(key: str, text: str, value: Any) -> None:
    cell = read_cell(key, text)
    assert (cell.value, cell.refusal) == (value, "")


@pytest.mark.parametrize(
    ("key", "text", "refusal"),
    [
        ("A->B.enabled", "no", "is 'no', which is no boolean: write true or false"),
        ("A->B.groups", "(", "regular expression '(': a ( without its ), at character 1"),
        ("A.bootstrap.servers", "a", "has 'a', which is no HOST:PORT"),
        ("A.consumer.fetch.max.bytes", "many", "is 'many', which is no whole number"),
    ],
)
def test_refused_value_has_a_reason_and_no_value(key: str, text: str, refusal: str) -> None:
    cell = read_cell(key, text)
    assert (cell.value, cell.refusal) == (None, refusal)
