"""Declarations of metrics: each is one `Metric` with its name, type, labels and text.

A service declares its metrics in a `MetricSet`, from which `docs/reference/metrics.md` is written. A slot of the data
plane has no page. Its counts come through fields of its row, which have the metric in their metadata (`counter`,
`gauge`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum


class MetricType(Enum):
    """The type of a metric."""

    COUNTER = "counter"
    """It only grows while the process lives, and is shown with `_total` behind its name."""
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that a page may show. `meaning` is a sentence for people, without its stop."""

    name: str
    """The name without `_total`."""
    type: MetricType
    labels: tuple[str, ...]
    meaning: str
    like: str = field(default="", kw_only=True)
    """The JMX name of the metric of MirrorMaker 2, or of Kafka Connect, with the same meaning."""

    @property
    def shown_as(self) -> str:
        """The name of its samples."""
        return f"{self.name}_total" if self.type is MetricType.COUNTER else self.name


class MetricSet:
    """The metrics that one page may show: those of row fields, then others in the order of their declaration."""

    def __init__(self, *row_classes: type) -> None:
        of_fields = (row_metric.metric for row_class in row_classes for row_metric in row_metrics(row_class).values())
        self._declared = [metric for metric in of_fields if metric is not None]

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._declared)

    def counter(self, name: str, labels: tuple[str, ...], meaning: str, *, like: str = "") -> Metric:
        """Declare a count that only grows."""
        return self._declare(Metric(name, MetricType.COUNTER, labels, meaning, like=like))

    def gauge(self, name: str, labels: tuple[str, ...], meaning: str, *, like: str = "") -> Metric:
        """Declare a value that may fall."""
        return self._declare(Metric(name, MetricType.GAUGE, labels, meaning, like=like))

    def _declare(self, metric: Metric) -> Metric:
        self._declared.append(metric)
        return metric


@dataclass(frozen=True, slots=True)
class RowMetric:
    """The metric of a field of a row."""

    metric: Metric | None
    """None: the field counts, and is only part of other metrics."""
    since: str = ""
    """The field that names the beginning after which this one counts from 0. A page shows the sum of all beginnings.
    "": a page shows the value as it is."""
    divisor: int = 1


def counter(name: str, labels: tuple[str, ...], meaning: str, *, since: str = "") -> Mapping[str, RowMetric]:
    """Return the metadata of a field that is shown as a counter."""
    return {"metric": RowMetric(Metric(name, MetricType.COUNTER, labels, meaning), since)}


def gauge(name: str, labels: tuple[str, ...], meaning: str, *, divisor: int = 1) -> Mapping[str, RowMetric]:
    """Return the metadata of a field that is shown as a gauge: its value divided by `divisor`."""
    return {"metric": RowMetric(Metric(name, MetricType.GAUGE, labels, meaning), divisor=divisor)}


def counted(since: str) -> Mapping[str, RowMetric]:
    """Return the metadata of a field that counts from 0 after each beginning, and is only part of other metrics."""
    return {"metric": RowMetric(None, since)}


def row_metrics(row_class: type) -> dict[str, RowMetric]:
    """Return the metrics of a row class by field, in the order of the fields."""
    return {f.name: f.metadata["metric"] for f in fields(row_class) if "metric" in f.metadata}
