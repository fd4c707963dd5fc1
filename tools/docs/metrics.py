"""The tables of `docs/reference/metrics.md`, from the declared metrics."""

from collections.abc import Iterable, Mapping

import lockstep_acl_sync.metrics
import lockstep_checkpoint.metrics
import lockstep_cli.processes.run_metrics
import lockstep_console.metrics
import lockstep_data_plane.driver.metrics
import lockstep_heartbeat.metrics
import lockstep_runtime.flow.common_metrics
import lockstep_topic_sync.metrics
from lockstep_state.metric import Metric
from tools.docs.pages import DOCS, table

PAGE = DOCS / "reference" / "metrics.md"

SERVICES: Mapping[str, Iterable[Metric]] = {
    "topic-sync": lockstep_topic_sync.metrics.METRICS,
    "acl-sync": lockstep_acl_sync.metrics.METRICS,
    "data-plane": lockstep_data_plane.driver.metrics.METRICS,
    "checkpoint": lockstep_checkpoint.metrics.METRICS,
    "heartbeat": lockstep_heartbeat.metrics.METRICS,
}
COMMON = lockstep_runtime.flow.common_metrics.METRICS
RUN = lockstep_cli.processes.run_metrics.METRICS
CONSOLE = lockstep_console.metrics.METRICS
DECLARED: Mapping[str, Iterable[Metric]] = {
    "every service": COMMON,
    "lockstep run": RUN,
    **SERVICES,
    "console": CONSOLE,
}

OF_A_WINDOW = ("min", "max", "avg")
"""What ends the names of metrics over a time."""


def declared_by(service: str) -> set[str]:
    """Return the names of the samples that a service's page shows."""
    return {
        metric.shown_as for metric in (*lockstep_runtime.flow.common_metrics.page_metrics(service), *SERVICES[service])
    }


def blocks() -> Mapping[str, str]:
    """Return the table of each page of metrics."""
    return {f"metrics of {shown_by}": _table(metrics) for shown_by, metrics in DECLARED.items()}


def _table(metrics: Iterable[Metric]) -> str:
    """Return ours first, then MM2's. A metric that is the least, the most or the mean of another is in its row."""
    rows: dict[str, tuple[Metric, list[str]]] = {}
    for metric in sorted(metrics, key=lambda metric: bool(metric.like)):
        base, _, suffix = metric.shown_as.rpartition("_")
        if suffix in OF_A_WINDOW and base in rows:
            rows[base][1].append(f"`_{suffix}`")
        else:
            rows[metric.shown_as] = metric, [f"`{metric.shown_as}`"]
    cells = ((", ".join(names), ", ".join(metric.labels), metric.meaning) for metric, names in rows.values())
    return table("metric | labels | meaning", cells)
