"""The alert rules and the dashboard that the chart brings, as values."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tools.docs.metrics import DECLARED
from tools.docs.promql import Selector, named_in

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "lockstep"
RULES = CHART / "rules" / "lockstep.rules.yaml"
DASHBOARD = CHART / "dashboards" / "lockstep.json"

LABELS = {metric.shown_as: frozenset(metric.labels) for metrics in DECLARED.values() for metric in metrics}
"""The labels of each metric that some service's page may show."""

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
    """In their order."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [
        Alert(rule["alert"], rule["expr"], rule["labels"]["severity"], rule["annotations"])
        for group in groups
        for rule in group["rules"]
    ]


def dashboard() -> dict[str, Any]:
    """Our own, as Grafana reads it."""
    found: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return found


def expressions(board: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Title of the panel and expression of each query, variables and all."""
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def watched() -> Iterator[Selector]:
    """What alerts and panels select of the pages, where everything is chosen, and Strimzi's panels."""
    yield from STRIMZIS
    for expression in (*(alert.expression for alert in alerts()), *(one for _, one in expressions(dashboard()))):
        for selector in named_in(filled_in(expression)).selectors:
            if selector.metric in LABELS:
                yield selector


def filled_in(expression: str) -> str:
    """As Prometheus is asked it where everything is chosen."""
    for interval in INTERVALS:
        expression = expression.replace(interval, "5m")
    return re.sub(r"\$\w+", ".*", expression)
