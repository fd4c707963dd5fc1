"""What may be a transform, and what is said about what may not."""

# ruff: noqa: S608  # Spark has no data here but the record's

import json
from collections.abc import Sequence

import pytest

from lockstep_config.flow.transform_chain import IN_SQL
from lockstep_data_plane.transform.compiled_transform import StatementRefused
from lockstep_rules.statement_outline import assigned_columns, filters_records
from lockstep_state.codecs.transform_trial import TrialMistake
from tests.support.batch_bytes import batch_bytes, record
from tests.support.transform_jvm import TransformJvm, records_of

WHERE = "SELECT value FROM records WHERE"


def refused(jvm: TransformJvm, statement: str) -> Sequence[TrialMistake]:
    with pytest.raises(StatementRefused) as caught:
        jvm.compile(statement)
    assert "Exception" not in str(caught.value), "an error is no stack trace"
    return caught.value.findings


@pytest.mark.parametrize(
    ("statement", "code", "line", "column", "fragment"),
    [
        ("SELECT keyy FROM records", "COLUMN_UNKNOWN", 1, 8, "keyy"),
        ("SELECT key\nFROM records\nWHERE valu IS NULL", "COLUMN_UNKNOWN", 3, 7, "valu"),
        ("SELECT key FROM records WHER a", "SYNTAX_INVALID", 1, 30, ""),
        ("SELECT key FROM records; SELECT 1", "SYNTAX_INVALID", 1, 26, ""),
        ("SELECT value FROM csv.`/etc/passwd`", "RELATION_NOT_ALLOWED", 1, 19, "csv.`/etc/passwd`"),
        ("SELECT value FROM other", "RELATION_NOT_ALLOWED", 1, 19, "other"),
        ("SELECT r.value FROM records r JOIN records s ON r.key = s.key", "CLAUSE_NOT_ALLOWED", 1, None, None),
        ("SELECT value FROM records ORDER BY offset", "CLAUSE_NOT_ALLOWED", 1, None, None),
        ("SELECT value FROM records LIMIT 3", "CLAUSE_NOT_ALLOWED", 1, None, None),
        ("SELECT DISTINCT value FROM records", "CLAUSE_NOT_ALLOWED", 1, None, None),
        ("SELECT key FROM records GROUP BY key", "CLAUSE_NOT_ALLOWED", 1, None, None),
        ("SELECT value FROM records UNION ALL SELECT value FROM records", "CLAUSE_NOT_ALLOWED", 1, None, None),
        ("SELECT /*+ COALESCE(1) */ value FROM records", "CLAUSE_NOT_ALLOWED", 1, None, None),
        ("SELECT value FROM records LATERAL VIEW explode(array(1)) t AS x", "CLAUSE_NOT_ALLOWED", 1, None, None),
        ("SELECT value FROM range(3)", "CLAUSE_NOT_ALLOWED", 1, None, None),
        (f"{WHERE} offset = (SELECT 1)", "SUBQUERY_NOT_ALLOWED", 1, 42, "(SELECT 1)"),
        (f"{WHERE} EXISTS (SELECT 1 FROM records)", "SUBQUERY_NOT_ALLOWED", 1, None, None),
        (f"{WHERE} key IN (SELECT key FROM records)", "SUBQUERY_NOT_ALLOWED", 1, None, None),
        (f"{WHERE} rand() > 0.5", "FUNCTION_NOT_ALLOWED", 1, 33, "rand()"),
        (f"{WHERE} timestamp < now()", "FUNCTION_NOT_ALLOWED", 1, 45, "now()"),
        (f"{WHERE} timestamp < current_timestamp", "EXPRESSION_NOT_ALLOWED", 1, 45, "current_timestamp"),
        (f"{WHERE} timestamp < TIMESTAMP 'now'", "EXPRESSION_NOT_ALLOWED", 1, 45, "TIMESTAMP 'now'"),
        (f"{WHERE} timestamp < CAST('today' AS TIMESTAMP)", "EXPRESSION_NOT_ALLOWED", 1, 45, None),
        (f"{WHERE} CAST(timestamp AS DATE) < to_date('yesterday')", "EXPRESSION_NOT_ALLOWED", 1, None, None),
        (f"{WHERE} unix_timestamp() > 0", "EXPRESSION_NOT_ALLOWED", 1, None, None),
        (f"{WHERE} topic = current_user", "EXPRESSION_NOT_ALLOWED", 1, 41, "current_user"),
        (f"{WHERE} topic = session_user()", "FUNCTION_NOT_ALLOWED", 1, 41, "session_user()"),
        ("SELECT aes_encrypt(value, '0000111122223333') AS value FROM records", "FUNCTION_NOT_ALLOWED", 1, 8, None),
        ("SELECT java_method('java.util.UUID', 'randomUUID') AS key FROM records", "FUNCTION_NOT_ALLOWED", 1, 8, None),
        ("SELECT sum(offset) AS key FROM records", "FUNCTION_NOT_ALLOWED", 1, 8, "sum(offset)"),
        ("SELECT explode(headers) AS key FROM records", "FUNCTION_NOT_ALLOWED", 1, 8, None),
        ("SELECT uper(topic) AS key FROM records", "FUNCTION_UNKNOWN", 1, 8, "uper(topic)"),
        ("SELECT system.builtin.rand() AS key FROM records", "FUNCTION_UNKNOWN", 1, 8, None),
        ("SELECT offset + 1 AS offset FROM records", "COLUMN_NOT_WRITABLE", None, None, None),
        ("SELECT topic AS origin FROM records", "COLUMN_NOT_WRITABLE", None, None, None),
        ("SELECT key, key FROM records", "COLUMN_TWICE", None, None, None),
        ("SELECT offset AS value FROM records", "TYPE_MISMATCH", None, None, None),
        ("SELECT struct(offset) AS value FROM records", "TYPE_MISMATCH", None, None, None),
        ("SELECT key AS timestamp FROM records", "TYPE_MISMATCH", None, None, None),
        ("SELECT array('a') AS headers FROM records", "TYPE_MISMATCH", None, None, None),
        ("SELECT json_mask(value, 'iban', 'mask') AS value FROM records", "ARGUMENT_INVALID", 1, 25, "'iban'"),
        ("SELECT json_mask(value, '$.a', 'rot13') AS value FROM records", "ARGUMENT_INVALID", 1, 32, "'rot13'"),
        ("SELECT json_mask(value, topic, 'mask') AS value FROM records", "ARGUMENT_INVALID", 1, 25, "topic"),
        ("SELECT json_text(value) AS value FROM records", "ARGUMENT_INVALID", 1, 8, "json_text(value)"),
        (f"{WHERE} from_json(CAST(value AS STRING), 'a INT', map('mode', 'PERMISSIVE')).a = 1",
         "FROM_JSON_NOT_FAILFAST", 1, None, None),
        ("WITH records AS (SELECT * FROM records) SELECT value FROM records", "CLAUSE_NOT_ALLOWED", None, None, None),
        ("DROP TABLE records", "CLAUSE_NOT_ALLOWED", None, None, None),
        ("SELECT sha2(key, 256) AS key FROM records WHERE 1 = 2", "CLAUSE_NOT_ALLOWED", None, None, None),
        ("SET spark.sql.ansi.enabled = false", "CLAUSE_NOT_ALLOWED", None, None, None),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(
    jvm: TransformJvm, statement: str, code: str, line: int | None, column: int | None, fragment: str | None
) -> None:
    finding = refused(jvm, statement)[0]
    assert finding.code == code, finding
    assert line is None or finding.line == line, finding
    assert column is None or finding.column == column, finding
    assert fragment is None or finding.fragment == fragment, finding
    assert finding.message


def test_a_statement_that_is_nested_too_deeply_is_refused(jvm: TransformJvm) -> None:
    [finding] = refused(jvm, f"{WHERE} {'(' * 20_000}offset{')' * 20_000} > 1")
    assert finding.code == "STATEMENT_INVALID"


def test_all_that_is_forbidden_is_named_at_once(jvm: TransformJvm) -> None:
    findings = refused(jvm, "SELECT uuid() AS key, rand() AS value FROM records LIMIT 1")
    assert {finding.fragment for finding in findings} >= {"uuid()", "rand()"}
    assert {finding.code for finding in findings} == {"FUNCTION_NOT_ALLOWED", "CLAUSE_NOT_ALLOWED"}


def test_what_was_meant_is_suggested(jvm: TransformJvm) -> None:
    assert refused(jvm, "SELECT uper(topic) AS key FROM records")[0].suggestion == "upper"
    assert "key" in refused(jvm, "SELECT keyy FROM records")[0].suggestion
    assert "to_json" in refused(jvm, "SELECT topic AS origin FROM records")[0].suggestion


def test_what_is_read_and_written_is_known(jvm: TransformJvm) -> None:
    compiled = jvm.compile("SELECT key, upper(topic) AS value FROM records WHERE timestamp > TIMESTAMP '2020-01-01'")
    assert compiled.columns_read == {"topic", "timestamp"}
    assert compiled.columns_written == {"value"}
    assert compiled.secrets == ()
    everything = jvm.compile("SELECT * FROM records WHERE partition = 1")
    assert everything.columns_read == {"partition"}
    assert not everything.columns_written


def test_a_common_table_expression_and_a_subquery_in_from_are_inlined(jvm: TransformJvm) -> None:
    statement = """
        WITH german AS (SELECT *, json_text(value, '$.country') AS country FROM records)
        SELECT key FROM (SELECT key, country FROM german WHERE country IS NOT NULL) WHERE country = 'DE'
    """
    compiled = jvm.compile(statement)
    assert "value" in compiled.columns_read
    assert not compiled.columns_written


def test_the_version_is_that_of_all_that_a_result_depends_on(jvm: TransformJvm) -> None:
    one = jvm.compile("SELECT upper(topic) AS key FROM records")
    assert one.version == jvm.compile("SELECT upper(topic) AS key FROM records").version
    other = jvm.compile("SELECT lower(topic) AS key FROM records").version
    assert one.version.digest != other.digest
    assert (one.version.spark, len(one.version.jar)) == ("4.3.0", 64)


def test_the_driver_s_own_settings_change_nothing(jvm: TransformJvm) -> None:
    statement = "SELECT date_format(timestamp, 'yyyy-MM-dd HH:mm') AS key FROM records"
    before = jvm.compile(statement).version
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    try:
        session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        session.conf.set("spark.sql.ansi.enabled", "false")
        assert jvm.compile(statement).version == before
    finally:
        session.conf.unset("spark.sql.session.timeZone")
        session.conf.unset("spark.sql.ansi.enabled")


def test_a_secret_is_nowhere_but_by_its_name(jvm: TransformJvm) -> None:
    compiled = jvm.compile("SELECT json_mask(value, '$.a', 'tokenise(pepper)') AS value FROM records")
    assert compiled.secrets == ("pepper",)
    assert b"$.a" in compiled.stages
    assert "stages" not in repr(compiled)


def test_a_condition_that_no_record_passes_is_allowed_where_tombstones_stay_as_they_are(jvm: TransformJvm) -> None:
    compiled = jvm.compile("SELECT key, json_mask(value, '$.a', 'mask') AS value FROM records WHERE false")
    assert compiled.filters
    assert not compiled.columns_written


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT sha2(key, 256) key, value FROM records WHERE offset > 1",
        "SELECT key AS key, r.timestamp timestamp, value FROM records r",
        "SELECT k key FROM (SELECT sha2(key, 256) k FROM records WHERE partition = 1)",
        "WITH r AS (SELECT sha2(key, 256) `KEY`, value FROM records) SELECT r.* FROM r",
        "WITH r(key, value) AS (SELECT sha2(key, 256), value FROM records) SELECT key, value FROM r",
        "SELECT r.* FROM (SELECT sha2(key, 256), value FROM records) AS r(key, value)",
        "SELECT s.* FROM (SELECT named_struct('key', sha2(key, 256)) AS s FROM records)",
        "SELECT headers[0].key FROM records",
        "SELECT value AS timestamp, TIMESTAMP '2020-01-01' AS timestamp FROM records",
        "SELECT CAST(extract(DAY FROM timestamp) AS STRING) key FROM records",
        "FROM records SELECT sha2(key, 256) AS key WHERE offset > 1",
        "FROM records |> WHERE offset > 1 |> SELECT sha2(key, 256) AS key",
        "FROM records |> SET key = sha2(key, 256)",
        "FROM records |> EXTEND sha2(key, 256) AS h |> DROP key |> RENAME h AS key",
        r"SELECT regexp_replace(topic, r'\\', '/') AS value FROM records WHERE topic = 'a' /* ' */",
    ],
)
def test_an_outline_names_no_less_than_the_compiler(jvm: TransformJvm, statement: str) -> None:
    """A plan has no Spark. What it says of a statement is at least what Spark finds, or Spark refuses the statement."""
    try:
        compiled = jvm.compile(statement)
    except StatementRefused:
        return
    assert compiled.columns_written <= assigned_columns(statement)
    assert filters_records(statement) or not compiled.filters


PARTS = {"key": b'{"FIELD": "7", "n": 1.50}', "value": b'{"n": 1.50, "FIELD": "7"}'}
OF_CONNECT = {
    "Cast": {"FIELD": 7, "n": 1.5},
    "ExtractField": 7,
    "HoistField": {"FIELD": {"FIELD": "7", "n": 1.5}},
    "InsertField": {"FIELD": "7", "n": 1.5, "added": "TEXT"},
    "MaskField": {"FIELD": "***", "n": 1.5},
    "ReplaceField": {"n": 1.5},
    "ValueToKey": 7,
}
"""What the transforms of Connect make of these parts, for values in JSON."""


@pytest.mark.parametrize("name", IN_SQL)
async def test_a_statement_in_place_of_a_class_of_connect_does_the_same(jvm: TransformJvm, name: str) -> None:
    columns = IN_SQL[name].replace("$.FIELD", "$.added") if name.startswith("InsertField") else IN_SQL[name]
    batch = batch_bytes([record(0, PARTS["value"], key=PARTS["key"])])
    answer = await jvm.answer(f"SELECT {columns} FROM records", batch)
    assert not answer.failures
    (made,) = records_of(answer)
    short, _, part = name.partition("$")
    changed = (part or "key").lower()
    assert json.loads(getattr(made, changed)) == OF_CONNECT[short]
    (other,) = PARTS.keys() - {changed}
    assert getattr(made, other) == PARTS[other]
