"""What `lockstep transform check` says of a transform, from what the trial answered."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_config.flow.transform_settings import TransformSettings
from lockstep_ops.exit_codes import Exit
from lockstep_ops.transform.transform_check import (
    TransformCheck,
    excerpt,
    exit_code,
    flows_without_topic,
    mistake_lines,
    trial_request,
)
from lockstep_rules.filters import NameFilter
from lockstep_state.codecs.transform_trial import TrialCost, TrialMistake, TrialResult
from tests.support.flow_context import flow_settings

SETTINGS = TransformSettings(
    name="pii",
    topics=NameFilter(("customers",)),
    sql="SELECT valeu AS value\nFROM records",
    secrets={"salt": "very-salty"},
    statement_location="mm2.properties:9: lockstep.transform.pii.sql",
)
MISTAKE = TrialMistake("COLUMN_UNKNOWN", 1, 8, "valeu", "there is no such column", "UNRESOLVED_COLUMN", "value")
FINE = TrialResult("pii", (), ("value",), ("key", "timestamp", "value"), True, ("salt",), "012", TrialCost(0.2, 5e5, 9))


def test_a_mistake_has_its_place_and_a_mark() -> None:
    check = TransformCheck(SETTINGS, ("A->B",), TrialResult("pii", (MISTAKE,)))
    assert mistake_lines(check, MISTAKE) == [
        "mm2.properties:9: lockstep.transform.pii.sql: line 1, column 8: there is no such column (valeu) "
        "[UNRESOLVED_COLUMN]; instead: value",
        "    SELECT valeu AS value",
        "           ^",
    ]
    assert exit_code([check]) == Exit.TROUBLE
    assert "version" not in check.as_json()


def test_what_changes_is_named() -> None:
    check = TransformCheck(SETTINGS, ("A->B",), FINE)
    assert check.columns_kept == ("headers",)
    assert [remark.split()[1] for remark in check.remarks] == ["key", "timestamp", "record"]
    assert check.mistakes == ()
    assert exit_code([check]) == Exit.FINE
    body = json.dumps(check.as_json())
    assert '"secrets": ["salt"]' in body
    assert "very-salty" not in body
    assert "very-salty" not in repr(trial_request(SETTINGS))


def test_a_secret_that_is_missing_is_a_mistake() -> None:
    check = TransformCheck(SETTINGS, ("A->B",), TrialResult("pii", secrets=("salt", "pepper")))
    (mistake,) = check.mistakes
    assert mistake.code == "SECRET_MISSING"
    assert mistake.suggestion == "add lockstep.transform.pii.secret.pepper=${file:/PATH:KEY}"


def test_what_is_not_known_of_a_function_is_none() -> None:
    settings = replace(SETTINGS, sql="", python="acme:mask")
    check = TransformCheck(settings, ("A->B",), TrialResult("pii", version="012", cost=TrialCost(0.2, 5e5, 9)))
    assert exit_code([check]) == Exit.FINE
    body = check.as_json()
    assert (body["version"], body["secrets"], body["statement"]) == ("012", ["salt"], "acme:mask")
    assert body["columns_written"] is body["columns_kept"] is body["filters"] is None
    assert "a record alone decides" in check.remarks[0]
    request = trial_request(settings)
    assert (request.statement, request.function) == ("", "acme:mask")


def test_function_that_cannot_be_used_is_a_mistake() -> None:
    mistake = TrialMistake("FUNCTION_NOT_IMPORTED", 0, 0, "", "acme cannot be imported")
    check = TransformCheck(replace(SETTINGS, sql="", python="acme:mask"), ("A->B",), TrialResult("pii", (mistake,)))
    assert exit_code([check]) == Exit.TROUBLE
    assert mistake_lines(check, mistake) == [f"{SETTINGS.statement_location}: acme cannot be imported"]


def test_excerpts() -> None:
    assert excerpt("a\nb", 3, 1) == []
    assert excerpt("a", 0, 0) == []
    assert excerpt("a", 1, 2) == ["    a", "     ^"]
    long = "x" * 300 + "!" + "y" * 300
    line, mark = excerpt(long, 1, 301)
    assert line[mark.index("^")] == "!"
    assert len(line) == 104


@pytest.mark.parametrize(
    ("topics", "transformed", "is_found"),
    [
        ("customers", "customers", True),
        ("customers", "A.customers", False),
        ("customers", "orders", False),
        (".*", "orders-[0-9]+", True),
        ("orders-[a-z]{2}", "orders-.*", True),
        ("orders-eu, orders-us", "orders-.*", True),
        ("customers", "customers, orders", True),
    ],
)
def test_transform_of_no_topic_of_the_flow_is_noted(
    tmp_path: Path, topics: str, transformed: str, is_found: bool
) -> None:
    settings = flow_settings(
        tmp_path,
        f"A->B.topics = {topics}\nlockstep.transform.pii.topics = {transformed}\n"
        "lockstep.transform.pii.mask = $.name: remove\n",
    )
    (transform,) = settings.data_plane.transforms
    without = flows_without_topic(transform, [settings])
    assert without == (() if is_found else ("A->B",))
    remarks = TransformCheck(transform, ("A->B",), TrialResult("pii"), without).remarks
    assert [remark.split(":")[0] for remark in remarks] == [
        f"no topic was found that {flow} mirrors and lockstep.transform.pii.topics selects" for flow in without
    ]
