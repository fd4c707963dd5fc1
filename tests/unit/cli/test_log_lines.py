"""One log out of many."""

import json
from datetime import UTC

from lockstep_cli.processes.log_lines import LogLine, as_json, as_text, parse

NOW = "2026-11-20T12:00:00.000+00:00"
CREATED = LogLine(
    "2026-11-20T11:59:58.123+00:00",
    "info",
    "topic-sync",
    "A->B",
    "topic created",
    "orders -> A.orders",
    {"partitions": 8},
)


def test_a_service_line_becomes_one_line_of_columns() -> None:
    assert (
        as_text(CREATED, flow_width=4, colours=False, zone=UTC)
        == "11:59:58  topic-sync  A->B  topic created  orders -> A.orders"
    )


def test_warnings_say_that_they_are_and_info_does_not() -> None:
    line = LogLine(NOW, "warning", "run", "", "B.x: has no effect")
    assert (
        as_text(line, flow_width=4, colours=False, zone=UTC)
        == "12:00:00  run               warning: B.x: has no effect"
    )


def test_colours_only_where_asked() -> None:
    assert "\x1b" not in as_text(CREATED, flow_width=4, colours=False)
    assert "\x1b[36mtopic-sync" in as_text(CREATED, flow_width=4, colours=True)


def test_log_line_has_its_traceback_below() -> None:
    line = LogLine(
        NOW, "error", "checkpoint", "", "crashed", "", {"error": "KeyError: 1", "traceback": "Traceback\n  KeyError: 1"}
    )
    first, *below = as_text(line, flow_width=4, colours=False, zone=UTC).split("\n")
    assert first.endswith("error: crashed  KeyError: 1")
    assert below == ["Traceback", "  KeyError: 1"]


def test_a_json_line_survives_the_way_through() -> None:
    text = as_json(CREATED)
    assert parse("topic-sync", text, NOW) == CREATED
    assert json.loads(text)["service"] == "topic-sync"


def test_a_line_that_is_no_log_line_is_its_own_message() -> None:
    assert parse("data-plane", "Traceback (most recent call last):\n", NOW) == LogLine(
        NOW, "info", "data-plane", "", "Traceback (most recent call last):"
    )
    assert parse("data-plane", '{"a": 1}', NOW).message == '{"a": 1}'
    assert parse("data-plane", "{broken", NOW).message == "{broken"


def test_log_lines_without_a_remedy_are_debug() -> None:
    assert parse("data-plane", "WARNING: Using incubator modules: jdk.incubator.vector", NOW).level == "debug"
