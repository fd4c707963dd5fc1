"""The alert rules and the dashboard that the chart brings, as values, and what their PromQL expressions name.

Whether an expression is PromQL, promtool says (`tests/chart/test_rules.py`).
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tools.docs.metrics import DECLARED

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "lockstep"
RULES = CHART / "rules" / "lockstep.rules.yaml"
DASHBOARD = CHART / "dashboards" / "lockstep.json"

LABELS = {metric.shown_as: frozenset(metric.labels) for metrics in DECLARED.values() for metric in metrics}
"""The labels of each metric that some service's page may show."""

OF_TARGETS = frozenset({"namespace", "job", "instance", "pod"})
"""Labels that Prometheus gives to every series of a target."""
OF_PROMETHEUS = {"up": frozenset[str](), "ALERTS": frozenset({"alertname", "alertstate", "severity"})}

WORDS = frozenset({"and", "or", "unless", "bool", "offset"})
TEXT = r'"(?:\\.|[^"\\])*"'
CONDITION = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"((?:\\.|[^"\\])*)"')
PART = re.compile(
    rf"""{TEXT}|\[[^\]]*\]|\#[^\n]*|(?<![\w:])\d[\w.]*  # texts, ranges, comments and numbers name nothing
    |\b(?:by|without|on|ignoring|group_left|group_right)\s*\((?P<labels>[^)]*)\)
    |(?<![\w:])(?P<metric>\$?[A-Za-z_:][\w:]*+)  # without braces it must be no function and no aggregation
     (?:\s*\{{(?P<conditions>(?:{TEXT}|[^"}}])*)\}}|(?!\s*\(|\s+(?:by|without)\b))""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Selector:
    """Some series of a metric: label, operator and text of each condition."""

    metric: str
    conditions: tuple[tuple[str, str, str], ...] = ()

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Return whether a series of the metric with these labels is one of them. As for Prometheus, a label that is
        not there is empty, and an expression is for the whole text."""
        for label, operator, text in self.conditions:
            value = labels.get(label, "")
            same = re.fullmatch(text, value) is not None if "~" in operator else value == text
            if same == operator.startswith("!"):
                return False
        return True


@dataclass(slots=True)
class Named:
    """What an expression selects, and the labels of its `by (...)`, `on (...)` and so on."""

    selectors: list[Selector] = field(default_factory=list)
    grouped: set[str] = field(default_factory=set)


def named_in(expression: str) -> Named:
    """Return what an expression names. Variables of a dashboard may stand in texts and ranges."""
    names = Named()
    for part in PART.finditer(expression):
        names.grouped.update(re.findall(r"\w+", part["labels"] or ""))
        if part["metric"] and part["metric"] not in WORDS:
            conditions = CONDITION.findall(part["conditions"] or "")
            plain = tuple((label, operator, re.sub(r"\\(.)", r"\1", text)) for label, operator, text in conditions)
            names.selectors.append(Selector(part["metric"], plain))
    return names


def undeclared(expression: str, declared: Mapping[str, frozenset[str]]) -> list[str]:
    """Return in words what it names that no page shows. `declared`: the labels of each metric."""
    labels_by_metric = {**declared, **OF_PROMETHEUS}
    named = named_in(expression)
    wrong = [f"no metric {selected.metric}" for selected in named.selectors if selected.metric not in labels_by_metric]
    labels_of_pages = set(OF_TARGETS)
    for selector in named.selectors:
        labels = labels_by_metric.get(selector.metric, frozenset())
        labels_of_pages |= labels
        labels_asked = {label for label, _, _ in selector.conditions}
        wrong += [f"{selector.metric} has no label {label}" for label in sorted(labels_asked - labels - OF_TARGETS)]
    return wrong + [f"nothing there has a label {selected}" for selected in sorted(named.grouped - labels_of_pages)]


STRIMZIS = (
    Selector("kafka_consumer_fetch_manager_records_lag", (("clientid", "=~", '.*replication-consumer"'),)),
    Selector("kafka_producer_buffer_available_bytes", (("clientid", "=~", '".*SourceConnector-[0-9]+"'),)),
    Selector(
        "kafka_connect_connector_task_offset_commit_avg_time_ms",
        (("connector", "=~", '".*SourceConnector"'), ("task", "=~", "[0-9]+")),
    ),
    Selector("kafka_connect_source_task_source_record_active_count", (("connector", "=~", '".*SourceConnector"'),)),
)
"""What panels of Strimzi's dashboard for MirrorMaker 2 select by the value of a label, as of August 2026 (1.3); which
metrics and labels they ask for is in `tests/unit/house/test_metrics_page.py`."""

INTERVALS = ("$__rate_interval", "$__interval", "$__range")


@dataclass(frozen=True, slots=True)
class Alert:
    """One rule of `RULES`."""

    name: str
    expression: str
    severity: str
    annotations: dict[str, str]


def alerts() -> list[Alert]:
    """Return the alerts in their order."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [
        Alert(rule["alert"], rule["expr"], rule["labels"]["severity"], rule["annotations"])
        for group in groups
        for rule in group["rules"]
    ]


def dashboard() -> dict[str, Any]:
    """Return our own dashboard, as Grafana reads it."""
    content: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return content


def expressions(board: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield title of the panel and expression of each query, variables and all."""
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def watched() -> Iterator[Selector]:
    """Yield what alerts and panels select of the pages, where everything is chosen, and Strimzi's panels."""
    yield from STRIMZIS
    for expression in (
        *(alert.expression for alert in alerts()),
        *(panel_expression for _, panel_expression in expressions(dashboard())),
    ):
        for selector in named_in(filled_in(expression)).selectors:
            if selector.metric in LABELS:
                yield selector


def filled_in(expression: str) -> str:
    """Return an expression as Grafana asks Prometheus if everything is chosen."""
    for interval in INTERVALS:
        expression = expression.replace(interval, "5m")
    return re.sub(r"\$\w+", ".*", expression)
