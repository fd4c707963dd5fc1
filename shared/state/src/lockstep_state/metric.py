"""Declarations of metrics: each is one `Metric` with its name, type, labels and text.

A service declares its metrics in a `MetricSet`, from which `docs/reference/metrics.md` is written. A slot of the data
plane has no page. What a slot counts comes through a field of its row, which has the metric in its metadata (`counter`,
`gauge`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum


class Type(Enum):
    COUNTER = "counter"
    """Only grows while the process lives; shown with `_total` behind its name."""
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Metric:
    """What a page may show under one name. `meaning` is a sentence for people, without its stop."""

    name: str
    """Without `_total`."""
    type: Type
    labels: tuple[str, ...]
    meaning: str
    like: str = field(default="", kw_only=True)
    """The metric of MirrorMaker 2, or of Kafka Connect, that has the same meaning, by its JMX name."""

    @property
    def shown_as(self) -> str:
        """The name of its samples."""
        return f"{self.name}_total" if self.type is Type.COUNTER else self.name


class MetricSet:
    """The metrics that one page may show: those of the fields of rows, and others in the order of their declaration."""

    def __init__(self, *row_classes: type) -> None:
        of_fields = (row_metric.metric for row_class in row_classes for row_metric in row_metrics(row_class).values())
        self._declared = [metric for metric in of_fields if metric is not None]

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._declared)

    def counter(self, name: str, labels: tuple[str, ...], meaning: str, *, like: str = "") -> Metric:
        """Declare a count that only grows."""
        return self._declare(Metric(name, Type.COUNTER, labels, meaning, like=like))

    def gauge(self, name: str, labels: tuple[str, ...], meaning: str, *, like: str = "") -> Metric:
        """Declare a value that may fall."""
        return self._declare(Metric(name, Type.GAUGE, labels, meaning, like=like))

    def _declare(self, metric: Metric) -> Metric:
        self._declared.append(metric)
        return metric


@dataclass(frozen=True, slots=True)
class RowMetric:
    """What a page shows of a field of a row."""

    metric: Metric | None
    """None: the field counts, and is only part of other metrics."""
    since: str = ""
    """The field that names the beginning after which this one counts from 0: a page shows the sum of all beginnings.
    "": a page shows the value as it is."""
    divisor: int = 1


def counter(name: str, labels: tuple[str, ...], meaning: str, *, since: str = "") -> Mapping[str, RowMetric]:
    """Metadata of a field that is shown as a counter."""
    return {"metric": RowMetric(Metric(name, Type.COUNTER, labels, meaning), since)}


def gauge(name: str, labels: tuple[str, ...], meaning: str, *, divisor: int = 1) -> Mapping[str, RowMetric]:
    """Metadata of a field that is shown as a gauge: the sample is its value divided by `divisor`."""
    return {"metric": RowMetric(Metric(name, Type.GAUGE, labels, meaning), divisor=divisor)}


def counted(since: str) -> Mapping[str, RowMetric]:
    """Metadata of a field that counts from 0 after each beginning, and is only part of other metrics."""
    return {"metric": RowMetric(None, since)}


def row_metrics(row_class: type) -> dict[str, RowMetric]:
    """By field, in the order of the fields."""
    return {f.name: f.metadata["metric"] for f in fields(row_class) if "metric" in f.metadata}
