"""`docs/reference/metrics.md` from the declarations: `python -m tools.docs.metrics` writes its tables anew.

They are between the lines that name them; the text around them is written by hand."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import lockstep_acl_sync.metrics
import lockstep_checkpoint.metrics
import lockstep_cli.processes.run_metrics
import lockstep_data_plane.driver.metrics
import lockstep_heartbeat.metrics
import lockstep_runtime.flow.common_metrics
import lockstep_topic_sync.metrics
from lockstep_state.metric import Metric

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md"

SERVICES: Mapping[str, Iterable[Metric]] = {
    "topic-sync": lockstep_topic_sync.metrics.METRICS,
    "acl-sync": lockstep_acl_sync.metrics.METRICS,
    "data-plane": lockstep_data_plane.driver.metrics.METRICS,
    "checkpoint": lockstep_checkpoint.metrics.METRICS,
    "heartbeat": lockstep_heartbeat.metrics.METRICS,
}
COMMON = lockstep_runtime.flow.common_metrics.METRICS
RUN = lockstep_cli.processes.run_metrics.METRICS
DECLARED: Mapping[str, Iterable[Metric]] = {"every service": COMMON, "lockstep run": RUN, **SERVICES}

WITH_TLS = frozenset(metric.shown_as for metric in lockstep_runtime.flow.common_metrics.OF_TLS)
"""What a page shows beside that where its flows have certificates."""

BLOCK = re.compile(r"(<!-- metrics of ([a-z -]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def declared_by(service: str) -> set[str]:
    """The names of the samples that a service's page shows."""
    return {metric.shown_as for metric in (*lockstep_runtime.flow.common_metrics.shown_by(service), *SERVICES[service])}


def filled(page: str) -> str:
    """The page with its tables as the declarations are now. Raises KeyError for a table of nobody."""
    return BLOCK.sub(lambda block: f"{block[1]}{table(DECLARED[block[2]])}", page)


def table(metrics: Iterable[Metric]) -> str:
    """Ours and MM2's apart, ours first."""
    ours = [metric for metric in metrics if not metric.like]
    theirs = [metric for metric in metrics if metric.like]
    lines = []
    if ours:
        lines += ["", "| metric | type | labels | meaning |", "|---|---|---|---|"]
        lines += [f"| `{m.shown_as}` | {m.type.value} | {_labels(m)} | {m.meaning} |" for m in ours]
    if theirs:
        lines += ["", "| metric | type | labels | meaning | MBean |", "|---|---|---|---|---|"]
        lines += [f"| `{m.shown_as}` | {m.type.value} | {_labels(m)} | {m.meaning} | `{m.like}` |" for m in theirs]
    return "\n".join([*lines, "", ""])


def _labels(metric: Metric) -> str:
    return ", ".join(metric.labels) or "-"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
