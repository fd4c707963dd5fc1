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

WITH_TLS = frozenset(metric.shown_as for metric in lockstep_runtime.flow.common_metrics.TLS_METRICS)
"""What a page shows beside that where its flows have certificates."""

OF_A_WINDOW = ("min", "max", "avg")
"""What ends the names of metrics over a time."""

BLOCK = re.compile(r"(<!-- metrics of ([a-z -]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def declared_by(service: str) -> set[str]:
    """The names of the samples that a service's page shows."""
    return {
        metric.shown_as for metric in (*lockstep_runtime.flow.common_metrics.page_metrics(service), *SERVICES[service])
    }


def filled(page: str) -> str:
    """The page with its tables as the declarations are now. Raises KeyError for a table of nobody."""
    return BLOCK.sub(lambda block: f"{block[1]}{table(DECLARED[block[2]])}", page)


def table(metrics: Iterable[Metric]) -> str:
    """Ours first, then MM2's. A metric that is the least, the most or the mean of another is in the row of that one."""
    rows: dict[str, tuple[Metric, list[str]]] = {}
    for metric in sorted(metrics, key=lambda metric: bool(metric.like)):
        base, _, suffix = metric.shown_as.rpartition("_")
        if suffix in OF_A_WINDOW and base in rows:
            rows[base][1].append(f"`_{suffix}`")
        else:
            rows[metric.shown_as] = metric, [f"`{metric.shown_as}`"]
    lines = ["", "| metric | labels | meaning |", "|---|---|---|"]
    lines += [f"| {', '.join(names)} | {', '.join(m.labels)} | {m.meaning} |" for m, names in rows.values()]
    return "\n".join([*lines, "", ""])


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
