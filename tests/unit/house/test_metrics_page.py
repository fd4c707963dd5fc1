"""`metrics.md` is what the declarations make of it; these are fit for Prometheus and for Strimzi's dashboard."""

import re

import pytest

from lockstep_rules.offsets.gap_policy import GapCase
from lockstep_runtime.flow.common_metrics import TLS_METRICS
from lockstep_state.metric import Metric, MetricType
from tests.support.source_modules import REPOSITORY
from tools.docs.metrics import CONSOLE, DECLARED, RUN, SERVICES, declared_by
from tools.docs.pages import DOCS

ALL: list[Metric] = [metric for metrics in DECLARED.values() for metric in metrics]

STRIMZI = {
    "kafka_connect_worker_connector_count": set[str](),
    "kafka_connect_worker_task_count": set[str](),
    "kafka_connect_coordinator_assigned_connectors": set[str](),
    "kafka_connect_coordinator_assigned_tasks": set[str](),
    "kafka_connect_worker_rebalance_rebalancing": set[str](),
    "kafka_connect_worker_connector_failed_task_count": set[str](),
    "kafka_connect_connector_status": {"status"},
    "kafka_connect_mirror_mirrorsourceconnector_record_rate": {"topic", "partition"},
    "kafka_connect_mirror_mirrorsourceconnector_byte_rate": {"topic", "partition"},
    "kafka_connect_mirror_mirrorsourceconnector_record_age_ms": {"topic", "partition"},
    "kafka_connect_mirror_mirrorsourceconnector_record_age_ms_avg": {"topic", "partition"},
    "kafka_connect_mirror_mirrorsourceconnector_record_age_ms_min": {"topic", "partition"},
    "kafka_connect_mirror_mirrorsourceconnector_record_age_ms_max": {"topic", "partition"},
    "kafka_connect_mirror_mirrorsourceconnector_replication_latency_ms": {"topic", "partition"},
    "kafka_connect_mirror_mirrorsourceconnector_replication_latency_ms_avg": {"topic", "partition"},
    "kafka_connect_mirror_mirrorsourceconnector_replication_latency_ms_min": {"topic", "partition"},
    "kafka_connect_mirror_mirrorsourceconnector_replication_latency_ms_max": {"topic", "partition"},
    "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms": {
        "source",
        "target",
        "topic",
        "partition",
        "group",
    },
    "kafka_consumer_fetch_manager_records_lag": {"clientid", "topic", "partition"},
    "kafka_consumer_incoming_byte_total": set[str](),
    "kafka_producer_outgoing_byte_total": set[str](),
    "kafka_producer_buffer_available_bytes": {"clientid"},
    "kafka_connect_connector_task_offset_commit_avg_time_ms": {"connector", "task"},
    "kafka_connect_source_task_source_record_active_count": {"connector"},
}
"""What the panels of Strimzi's dashboard for MirrorMaker 2 and the alerts for any Connect ask for, with the labels that
they select or group by; its panels about the JVM and the container's CPU aside."""

OF_PROCESSES = {"lockstep_memory_bytes", "lockstep_build_info", "lockstep_service_up"}
"""A process serves several flows."""


def test_alerts_page_names_existing_metrics_only() -> None:
    named = set(re.findall(r"\blockstep_\w+", (DOCS / "troubleshoot" / "alerts.md").read_text()))
    assert len(named) > 10
    assert named <= {metric.shown_as for metric in ALL}


def test_pages_and_rules_name_existing_metrics_only() -> None:
    """An expression with a name that no service exports finds nothing, and says so nowhere."""
    packages = {folder.name for folder in REPOSITORY.glob("s[eh]*/*/src/*")}
    suffixes = ("", "_bucket", "_sum", "_count")
    metrics = {f"{metric.shown_as}{suffix}" for metric in ALL for suffix in suffixes} | packages
    archive = re.compile(r"lockstep_kafka(?=[-_](?:VERSION|MEMBER|data_plane-))\w*")
    files = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("deploy/helm/**/*.md")]
    files += [*REPOSITORY.glob("deploy/helm/*/rules/*.yaml"), *REPOSITORY.glob("deploy/helm/*/dashboards/*.json")]
    # The bench has values of its own.
    texts = {file: file.read_text("utf-8") for file in files if file.name != "bench.md"}
    recorded = re.compile(
        r"flow:lockstep_\w+:\w+"
    )  # names that rules give, which tests/unit/house/test_plain_machines.py judges
    named = {
        file: set(re.findall(r"(?<![\w/.-])lockstep_[a-z0-9_]+", recorded.sub("", archive.sub("", text))))
        for file, text in texts.items()
    }
    assert sum(map(len, named.values())) > 150
    assert {str(file): names - metrics for file, names in named.items() if names - metrics} == {}


def test_no_name_is_declared_twice() -> None:
    names = [metric.name for metric in ALL]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.name)
def test_a_declaration_is_fit_for_prometheus(metric: Metric) -> None:
    assert re.fullmatch(r"(lockstep|kafka)_[a-z0-9_]+", metric.name)
    assert not metric.name.endswith("_total")
    assert metric.meaning[0].isupper() or metric.meaning[0] in "1`"
    assert not metric.meaning.endswith(".")
    assert metric.name.startswith("lockstep_") == (not metric.like)
    if metric.name.startswith("lockstep_"):
        assert metric.labels[0] == "flow" or metric.shown_as in OF_PROCESSES
        assert metric.type is MetricType.COUNTER or not metric.name.endswith("_count")


def test_strimzi_dashboard_has_all_its_metrics() -> None:
    declared = {metric.shown_as: set(metric.labels) for metric in ALL}
    assert STRIMZI.keys() <= declared.keys()
    assert {name: labels - declared[name] for name, labels in STRIMZI.items() if labels - declared[name]} == {}


def test_service_page_has_its_own_and_the_common_metrics() -> None:
    shown = {metric.shown_as for metric in (*TLS_METRICS, *RUN, *CONSOLE)}.union(
        *(declared_by(service) for service in SERVICES)
    )
    assert shown == {metric.shown_as for metric in ALL}
    assert "lockstep_topics" not in declared_by("data-plane")


def test_each_case_is_explained() -> None:
    page_text = (DOCS / "reference" / "no-silent-loss.md").read_text()
    assert [case.value for case in GapCase if f"`{case.value}`" not in page_text] == []
