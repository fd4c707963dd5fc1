"""This process's own Prometheus registry: nothing global, so that tests and several flows do not meet."""

from __future__ import annotations

from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

__all__ = ["CONTENT_TYPE_LATEST", "Metrics"]


M = TypeVar("M", Counter, Gauge, Histogram)


class Metrics:
    """Creates each metric once, by name. All ours start with `lockstep_`; every one has the label `flow` (text
    `A->B`) first.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self._known: dict[str, Counter | Gauge | Histogram] = {}

    def counter(self, name: str, what: str, *labels: str) -> Counter:
        """A counter; `name` without `_total`."""
        return self._once(name, Counter, what, labels)

    def gauge(self, name: str, what: str, *labels: str) -> Gauge:
        return self._once(name, Gauge, what, labels)

    def histogram(self, name: str, what: str, *labels: str) -> Histogram:
        return self._once(name, Histogram, what, labels)

    def exposition(self) -> bytes:
        """Everything as Prometheus reads it (content type `CONTENT_TYPE_LATEST`)."""
        return generate_latest(self.registry)

    def _once(self, name: str, kind: type[M], what: str, labels: tuple[str, ...]) -> M:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = kind(name, what, ("flow", *labels), registry=self.registry)
        if not isinstance(known, kind):
            raise TypeError(f"metric {name} is a {type(known).__name__}, not a {kind.__name__}")
        return known
