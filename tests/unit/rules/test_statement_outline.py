"""A plan sees from a statement's text whether it filters, and what it changes."""

import pytest

from lockstep_rules.statement_outline import COLUMNS, assigned_columns, filters_records


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
        (r"SELECT regexp_replace(value, r'\', '/') AS value FROM records WHERE topic = 'a'", True),
        ("SELECT `where` FROM records", True),  # in doubt
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
        ("SELECT upper(key) key FROM records", {"key"}),
        ("SELECT upper(r.key) `Key`, r.timestamp FROM records r", {"key"}),
        ("SELECT key AS key, r.timestamp AS timestamp, `value` value FROM records r", set()),
        ("SELECT value AS key, r.value timestamp FROM records r", {"key", "timestamp"}),
        ("SELECT CAST(extract(DAY FROM timestamp) AS STRING) key, value FROM records", {"key"}),
        ("WITH r AS (SELECT sha2(key, 256) key, value FROM records) SELECT key, value FROM r", {"key"}),
        ("SELECT concat(key, ',', value) AS value FROM records", {"value"}),
        ("SELECT headers[0].key FROM records", {"key"}),
        ("SELECT upper(key) AS", set()),
        ("FROM records |> SET key = upper(key) |> WHERE partition = 1", {"key"}),
        ("SELECT s.* FROM (SELECT named_struct('key', value) AS s FROM records)", COLUMNS),
        ("SELECT r.* FROM records r", set()),
        ("FROM records SELECT upper(key) AS key WHERE offset > 1", {"key"}),
        ("SELECT", set()),
    ],
)
def test_a_named_expression_is_a_column_that_is_made_anew(statement: str, columns: set[str]) -> None:
    assert assigned_columns(statement) == columns
