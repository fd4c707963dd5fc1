"""What a page shows is declared, adds up, and goes with its owner."""

import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lockstep_config.credentials.certificate_expiry import KEYSTORE, CertificateEnds
from lockstep_runtime.flow.common_metrics import certificate_samples, lead_samples, memory_samples
from lockstep_runtime.telemetry.metrics import Metrics, Sample
from lockstep_runtime.util.memory import resident
from lockstep_state.metric import Metric, MetricType
from lockstep_state.names import Flow

DONE = Metric("done", MetricType.COUNTER, ("flow",), "Done")
LEVEL = Metric("level", MetricType.GAUGE, ("flow",), "Level")


def shown(metrics: Metrics) -> dict[tuple[str, ...], float]:
    text = metrics.exposition().decode()
    families = list(text_string_to_metric_families(text))
    # A page names labels in the order of the alphabet.
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def test_counter_begins_at_zero_and_has_its_suffix() -> None:
    metrics = Metrics()
    done = metrics.series(DONE, "A->B")
    assert shown(metrics) == {("done_total", "A->B"): 0}
    done.increase()
    metrics.series(DONE, "A->B").increase(2)
    assert shown(metrics) == {("done_total", "A->B"): 3}


def test_gauge_has_no_series() -> None:
    """A replica that stands down would show its last value until it ends."""
    with pytest.raises(ValueError, match="level is a gauge"):
        Metrics().series(LEVEL, "A->B")


def test_series_needs_as_many_values_as_labels() -> None:
    with pytest.raises(ValueError, match="done has the labels"):
        Metrics().series(DONE)


def test_sample_that_its_owner_no_longer_returns_is_removed() -> None:
    metrics = Metrics()
    owned = [Sample(LEVEL, ("A->B",), 1), Sample(LEVEL, ("B->A",), 2)]
    metrics.ask(lambda: owned)
    assert len(shown(metrics)) == 2
    del owned[0]
    assert shown(metrics) == {("level", "B->A"): 2}


def test_the_same_series_of_two_owners_adds_up() -> None:
    metrics = Metrics()
    for value in (1, 2):
        metrics.ask(lambda value=value: [Sample(LEVEL, ("A->B",), value)])  # type: ignore[misc]  # its own value
    assert shown(metrics) == {("level", "A->B"): 3}


class Standing:
    """A service in a flow, as far as its page asks."""

    def __init__(self, source: str, *, acting: bool, degraded: bool = False) -> None:
        self.flow = Flow(source, "T")
        self.is_acting, self.degraded = acting, degraded
        self.ready, self.rebalancing = True, not acting


def test_connectors_are_counted_where_they_act() -> None:
    metrics = Metrics()
    flows = [Standing("A", acting=True), Standing("B", acting=True, degraded=True), Standing("C", acting=False)]
    metrics.ask(lambda: lead_samples("heartbeat", flows))
    page = shown(metrics)
    assert page["kafka_connect_worker_connector_count",] == 2
    assert page["kafka_connect_worker_task_count",] == 2
    assert page["kafka_connect_worker_rebalance_rebalancing",] == 1
    status = {key[1:]: value for key, value in page.items() if key[0] == "kafka_connect_connector_status"}
    assert status == {
        ('"A->T.MirrorHeartbeatConnector"', "running", "0"): 1,
        ('"B->T.MirrorHeartbeatConnector"', "failed", "0"): 1,
    }
    assert page["kafka_connect_worker_connector_failed_task_count", '"B->T.MirrorHeartbeatConnector"'] == 1


@pytest.mark.parametrize("service", ["topic-sync", "acl-sync"])
def test_parts_of_the_source_connector_count_as_none(service: str) -> None:
    metrics = Metrics()
    metrics.ask(lambda: lead_samples(service, [Standing("A", acting=True)]))
    page = shown(metrics)
    assert page["kafka_connect_worker_connector_count",] == 0
    assert not [key for key in page if "task" in key[0]]
    assert page["lockstep_acting", "A->T", service] == 1


def test_memory_metrics_cover_this_process_and_its_children() -> None:
    metrics = Metrics()
    metrics.ask(lambda: memory_samples("data-plane", resident()))
    child = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        page = shown(metrics)
    finally:
        child.communicate(b"\n")
    assert page[("lockstep_memory_bytes", "service", "data-plane")] > 1_000_000
    assert page[("lockstep_memory_bytes", "spark", "data-plane")] > 1_000_000


def test_memory_metrics_without_proc_are_empty(tmp_path: Path) -> None:
    assert resident(tmp_path) == {}


def test_certificate_metrics_have_their_ends() -> None:
    metrics = Metrics()
    ends = [CertificateEnds("A", KEYSTORE, (5.0, 7.0))]
    metrics.ask(lambda: certificate_samples(Flow("A", "B"), ends, 6.0))
    assert shown(metrics) == {("lockstep_certificate_expires_timestamp_seconds", "A", "A->B", "keystore"): 5.0}
