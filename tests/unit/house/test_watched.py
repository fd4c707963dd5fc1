"""Alert rules and dashboard name what pages show, say what to do, and are fit for Grafana.

What promtool says of them is in `tests/chart/test_rules.py`; that live pages show what they select, in
`tests.support.metrics.wait_for_all_declared`."""

import re
from itertools import combinations
from typing import Any

import pytest

from tests.support.watched import (
    LABELS,
    OF_TARGETS,
    Alert,
    Selector,
    alerts,
    dashboard,
    expressions,
    named_in,
    undeclared,
)

BOARD = dashboard()
PANELS: list[dict[str, Any]] = BOARD["panels"]
SHOWN = [panel for panel in PANELS if panel["type"] != "row"]


def test_an_expression_names_metrics_selectors_and_groups() -> None:
    named = named_in(
        'max by (flow, case) (max_over_time(a_total{b="c{d}", e=~"$f"}[5m:1m])) / on (flow) group_left (x) g offset 1h'
    )
    assert named.selectors == [Selector("a_total", (("b", "=", "c{d}"), ("e", "=~", "$f"))), Selector("g")]
    assert named.grouped == {"flow", "case", "x"}


@pytest.mark.parametrize(
    ("operator", "text", "selected"),
    [
        ("=", "A", {"A"}),
        ("!=", "A", {"B", ""}),
        ("=~", "A|B", {"A", "B"}),
        ("!~", ".+", {""}),
        ("=~", ".*", {"A", "B", ""}),
    ],
)
def test_a_selector_selects_as_prometheus_does(operator: str, text: str, selected: set[str]) -> None:
    selector = Selector("m", (("l", operator, text),))
    assert {value for value in ("A", "B", "") if selector.selects({"l": value} if value else {})} == selected


def test_undeclared_metrics_and_labels_are_found() -> None:
    declared = {"a": frozenset({"flow"})}
    assert undeclared('sum by (namespace, flow) (a{job="x", flow="y"})', declared) == []
    assert undeclared('sum by (topic) (a{state="x"}) + b', declared) == [
        "no metric b",
        "a has no label state",
        "nothing there has a label topic",
    ]


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)
def test_alert_uses_declared_metrics_and_has_a_remedy(alert: Alert) -> None:
    assert undeclared(alert.expression, LABELS) == []
    assert alert.severity in ("warning", "critical")
    assert alert.annotations.keys() == {"summary", "description", "runbook_url"}
    shown = set(re.findall(r"\$labels\.(\w+)", " ".join(alert.annotations.values())))
    labels = named_in(alert.expression).grouped | OF_TARGETS
    assert shown <= labels, "a label that the expression does not keep"


@pytest.mark.parametrize(("title", "expression"), list(expressions(BOARD)))
def test_dashboard_panel_uses_declared_metrics(title: str, expression: str) -> None:
    assert undeclared(expression, LABELS) == []


def test_every_query_selects_by_the_variables() -> None:
    names = {variable["name"] for variable in BOARD["templating"]["list"]}
    for title, expression in expressions(BOARD):
        used = set(re.findall(r"\$(\w+)", re.sub(r"\$__\w+", "", expression)))
        assert {"namespace", "job"} <= used <= names, title
        for selector in named_in(expression).selectors:
            assert ("flow" in used) or "flow" not in LABELS[selector.metric], title


def test_dashboard_panels_are_distinct_and_do_not_overlap() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    for panel in PANELS:
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24, panel["title"]
    for one, other in combinations(PANELS, 2):
        a, b = one["gridPos"], other["gridPos"]
        apart = (
            a["x"] + a["w"] <= b["x"]
            or b["x"] + b["w"] <= a["x"]
            or a["y"] + a["h"] <= b["y"]
            or b["y"] + b["h"] <= a["y"]
        )
        assert apart, f"{one['title']} and {other['title']}"


@pytest.mark.parametrize("panel", SHOWN, ids=lambda panel: panel["title"])
def test_dashboard_panel_has_a_description_and_what_grafana_needs(panel: dict[str, Any]) -> None:
    assert len(panel["description"]) > 20
    assert panel["type"] in ("stat", "timeseries", "table", "state-timeline")
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    references = [target["refId"] for target in panel["targets"]]
    assert references
    assert len(set(references)) == len(references)
    assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert steps[0]["value"] is None
    assert [step["value"] for step in steps[1:]] == sorted(step["value"] for step in steps[1:])


def test_dashboard_needs_no_input() -> None:
    assert BOARD["id"] is None
    assert BOARD["uid"] == "lockstep"
    assert "__inputs" not in BOARD, "a dashboard that Grafana's sidecar loads is not asked for its inputs"
    assert [variable["name"] for variable in BOARD["templating"]["list"]] == [
        "datasource",
        "namespace",
        "job",
        "flow",
        "console",
    ]
    everything = {variable["name"]: variable.get("allValue") for variable in BOARD["templating"]["list"]}
    # Outside Kubernetes there is no namespace, and ".*" fits a label that is not there.
    assert {everything[name] for name in ("namespace", "job", "flow")} == {".*"}
