"""The Prometheus page of a process, without global state, so that tests and several flows are independent.

A page shows declared metrics only (`lockstep_state.metric`).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from lockstep_state.metric import Metric, MetricType


class Sample(NamedTuple):
    """The value of a metric for label values, which come in the order of its labels."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


class Series:
    """One counter for one set of label values."""

    def __init__(self, values: dict[tuple[str, ...], float], labels: tuple[str, ...]) -> None:
        self._values = values
        self._labels = labels

    def increase(self, amount: float = 1.0) -> None:
        """Increase the counter by `amount`."""
        self._values[self._labels] = self._values.get(self._labels, 0.0) + amount


class Metrics(Collector):
    """The metrics of the page.

    Counters are kept in a `Series`. Gauges are read from their owner at each scrape, so what has gone, such as a
    partition or the lead, has no sample.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._values: dict[Metric, dict[tuple[str, ...], float]] = {}
        self._owners: list[Callable[[], Iterable[Sample]]] = []

    def series(self, metric: Metric, *labels: str) -> Series:
        """Return the counter with these label values. It is shown from now on, and begins at 0. For gauges see `ask`.

        Raises:
            ValueError: The metric is a gauge, or has another number of labels.
        """
        if metric.type is not MetricType.COUNTER:
            raise ValueError(f"{metric.name} is a gauge: its owner is asked for it")
        if len(labels) != len(metric.labels):
            raise ValueError(f"{metric.name} has the labels {metric.labels}, not {len(labels)} of them")
        values = self._values.setdefault(metric, {})
        values.setdefault(labels, 0.0)
        return Series(values, labels)

    def ask(self, owner: Callable[[], Iterable[Sample]]) -> None:
        """Call `owner` for samples at each scrape. Samples of several owners for one metric and labels are added up."""
        self._owners.append(owner)

    def exposition(self) -> bytes:
        """Return everything as Prometheus reads it (content type `CONTENT_TYPE_LATEST`)."""
        return generate_latest(self.registry)

    def describe(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Return nothing to the registry: no metric is known beforehand."""
        return iter(())

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield every metric that has a value now, for the registry."""
        metrics = {metric: dict(values) for metric, values in self._values.items()}
        for owner in self._owners:
            for metric, labels, value in owner():
                values = metrics.setdefault(metric, {})
                values[labels] = values.get(labels, 0.0) + value
        for metric, values in metrics.items():
            kind = CounterMetricFamily if metric.type is MetricType.COUNTER else GaugeMetricFamily
            family = kind(metric.name, metric.meaning, labels=metric.labels)
            for labels, value in values.items():
                family.add_metric(labels, value)
            yield family
