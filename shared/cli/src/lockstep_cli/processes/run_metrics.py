"""The metrics that `lockstep run` adds to those of its services."""

from collections.abc import Mapping

from lockstep_runtime.telemetry.metrics import Metrics, Sample
from lockstep_state.metric import MetricSet

METRICS = MetricSet()

SERVICE_UP = METRICS.gauge(
    "lockstep_service_up",
    ("service",),
    "1 if the service answered `lockstep run`, and its metrics are on this page; else 0",
)


def page_of_run(answered: Mapping[str, bool]) -> str:
    """Return the run's own page, in Prometheus' text format. `answered` tells by name which services answered."""
    metrics = Metrics()
    metrics.ask(lambda: [Sample(SERVICE_UP, (service,), float(did)) for service, did in answered.items()])
    return metrics.exposition().decode()
