"""A plan sees from a statement's text whether it filters, and what it changes."""

import pytest

from lockstep_rules.statement_outline import assigned_columns, filters_records


@pytest.mark.parametrize(
    ("statement", "filters"),
    [
        ("SELECT * FROM records", False),
        ("SELECT * FROM records WHERE value IS NOT NULL", True),
        ("select * from records\nwhere(true)", True),
        ("SELECT 'where' AS value FROM records", False),
        ("SELECT 'it\\'s where' AS value FROM records -- where", False),
        ("SELECT * FROM records /* nothing,\nwhere */", False),
        ('SELECT "where" AS value FROM records', False),
        ("SELECT nowhere FROM records", False),
    ],
)
def test_a_condition_is_a_filter(statement: str, filters: bool) -> None:
    assert filters_records(statement) is filters


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("SELECT * FROM records", set()),
        ("SELECT json_mask(value, '$.a', 'remove') AS value FROM records", {"value"}),
        ("SELECT upper(key) as KEY, timestamp + INTERVAL 1 HOUR AS `timestamp` FROM records", {"key", "timestamp"}),
        ("SELECT 'x AS key' AS value FROM records", {"value"}),
        ("SELECT key, value AS values FROM records", set()),
    ],
)
def test_an_alias_is_a_column_that_is_made_anew(statement: str, columns: set[str]) -> None:
    assert assigned_columns(statement) == columns
