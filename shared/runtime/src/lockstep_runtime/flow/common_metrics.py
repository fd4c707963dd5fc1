"""Metrics that every service has: readiness, leadership, rounds, and those of Kafka Connect's workers."""

import platform
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from lockstep_config.credentials.certificate_expiry import CertificateEnds, first_end
from lockstep_runtime.telemetry.metrics import Sample
from lockstep_state.metric import Metric, MetricSet
from lockstep_state.names import Flow

SOURCE, CHECKPOINT, HEARTBEAT = "MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector"
"""MM2's connectors. The data plane counts as the first; topic-sync and acl-sync are part of it and count as none."""

CONNECTORS = {"data-plane": SOURCE, "checkpoint": CHECKPOINT, "heartbeat": HEARTBEAT}

SERVICE_METRICS, TLS_METRICS, ROUND_METRICS, TASK_METRICS = MetricSet(), MetricSet(), MetricSet(), MetricSet()

FLOW_LABELS = ("flow", "service")

READY = SERVICE_METRICS.gauge(
    "lockstep_ready", FLOW_LABELS, "1 when the flow's control topics have been read to their end"
)
ACTING = SERVICE_METRICS.gauge(
    "lockstep_acting", FLOW_LABELS, "1 while this replica is the leader of the flow and acts"
)
DEGRADED = SERVICE_METRICS.gauge("lockstep_degraded", FLOW_LABELS, "1 while something in the flow fails and is retried")

UNREADABLE = SERVICE_METRICS.counter(
    "lockstep_unreadable_records",
    (*FLOW_LABELS, "topic"),
    "Records that are not what their topic should hold, and were passed over. The log names each with its offset",
)

ROUNDS = ROUND_METRICS.counter(
    "lockstep_rounds",
    (*FLOW_LABELS, "round"),
    "Rounds of periodic work, including failed ones",
)
ROUND_FAILURES = ROUND_METRICS.counter(
    "lockstep_round_failures",
    (*FLOW_LABELS, "round"),
    "Rounds that failed because a cluster refused or did not answer; each is retried with backoff",
)

BUILD_INFO = SERVICE_METRICS.gauge(
    "lockstep_build_info",
    ("service", "version", "python"),
    "1, with the versions of Lockstep and of Python that the service runs",
)

MEMORY = SERVICE_METRICS.gauge(
    "lockstep_memory_bytes",
    ("service", "part"),
    "Resident memory: `service` is the process of the service, which control services share under `lockstep run`,"
    " `spark` the processes that it started (the JVM and the slots of the data plane; shared memory counts for each)",
)
CERTIFICATE_EXPIRES = TLS_METRICS.gauge(
    "lockstep_certificate_expires_timestamp_seconds",
    ("flow", "cluster", "use"),
    "When the first certificate in use expires, Unix seconds, by use: `keystore` is our own, `truststore`"
    " verifies the brokers, `token-truststore` a token endpoint; absent without TLS, and for the certificates of"
    " the system",
)

CONNECTOR_COUNT = SERVICE_METRICS.gauge(
    "kafka_connect_worker_connector_count",
    (),
    "Flows for which this process acts as one of MirrorMaker 2's connectors",
    like="kafka.connect:type=connect-worker-metrics connector-count",
)
ASSIGNED_CONNECTORS = SERVICE_METRICS.gauge(
    "kafka_connect_coordinator_assigned_connectors",
    (),
    "Same as `kafka_connect_worker_connector_count`",
    like="kafka.connect:type=connect-coordinator-metrics assigned-connectors",
)
TASKS = TASK_METRICS.gauge(
    "kafka_connect_worker_task_count",
    (),
    "Running slots; for checkpoint and heartbeat, one for each flow",
    like="kafka.connect:type=connect-worker-metrics task-count",
)
ASSIGNED_TASKS = TASK_METRICS.gauge(
    "kafka_connect_coordinator_assigned_tasks",
    (),
    "Slots that have partitions, running or not; for checkpoint and heartbeat, one for each flow",
    like="kafka.connect:type=connect-coordinator-metrics assigned-tasks",
)
REBALANCING = SERVICE_METRICS.gauge(
    "kafka_connect_worker_rebalance_rebalancing",
    (),
    "Flows whose replicas are in a rebalance",
    like="kafka.connect:type=connect-worker-rebalance-metrics rebalancing",
)
CONNECTOR_STATUS = TASK_METRICS.gauge(
    "kafka_connect_connector_status",
    ("connector", "task", "status"),
    "1, with the state of a slot, or of checkpoint or heartbeat in a flow, as label: `running`, `failed` while it"
    " is retried, `unassigned` before it has begun; slots also have `paused` and `stopped`",
    like="kafka.connect:type=connector-task-metrics status",
)
FAILED_TASKS = TASK_METRICS.gauge(
    "kafka_connect_worker_connector_failed_task_count",
    ("connector",),
    "Tasks of the connector that are `failed`",
    like="kafka.connect:type=connect-worker-metrics connector-failed-task-count",
)

METRICS = (*SERVICE_METRICS, *TLS_METRICS, *ROUND_METRICS, *TASK_METRICS)


def page_metrics(service: str) -> tuple[Metric, ...]:
    """Return the common metrics that the page of a service shows.

    The data plane has no rounds, topic-sync and acl-sync have no tasks. Metrics of certificates come only with TLS.
    """
    return (
        *SERVICE_METRICS,
        *(ROUND_METRICS if service != "data-plane" else ()),
        *(TASK_METRICS if service in CONNECTORS else ()),
    )


class FlowHealth(Protocol):
    """The health of a service in one flow, as its metrics show it."""

    @property
    def flow(self) -> Flow: ...
    @property
    def ready(self) -> bool: ...
    @property
    def is_acting(self) -> bool: ...
    @property
    def degraded(self) -> bool: ...
    @property
    def rebalancing(self) -> bool: ...


def quote_label(value: str) -> str:
    """Put a label value into double quotes, as JMX does with special characters and as dashboards for JMX expect."""
    return f'"{value}"'


def connector(flow: Flow, kind: str) -> str:
    """Return the label value that names a connector, as Strimzi names it."""
    return quote_label(f"{flow}.{kind}")


def lead_samples(service: str, flows: Iterable[FlowHealth]) -> Iterator[Sample]:
    """Yield the samples of a service's state in each of its flows."""
    kind = CONNECTORS.get(service)
    for sample in flows:
        labels = (str(sample.flow), service)
        yield Sample(READY, labels, sample.ready)
        yield Sample(ACTING, labels, sample.is_acting)
        yield Sample(DEGRADED, labels, sample.degraded)
        yield Sample(REBALANCING, (), sample.rebalancing)
        acts = kind is not None and sample.is_acting
        yield Sample(CONNECTOR_COUNT, (), acts)
        yield Sample(ASSIGNED_CONNECTORS, (), acts)
        if kind in (CHECKPOINT, HEARTBEAT):
            yield Sample(TASKS, (), acts)
            yield Sample(ASSIGNED_TASKS, (), acts)
            yield Sample(FAILED_TASKS, (connector(sample.flow, kind),), acts and sample.degraded)
            if acts:
                status = "failed" if sample.degraded else "running"
                yield Sample(CONNECTOR_STATUS, (connector(sample.flow, kind), "0", status), 1)


def build_samples(service: str) -> Iterator[Sample]:
    """Yield the versions of Lockstep and of Python."""
    from importlib.metadata import version

    yield Sample(BUILD_INFO, (service, version("lockstep-kafka-runtime"), platform.python_version()), 1.0)


def memory_samples(service: str, bytes_by_part: Mapping[str, int]) -> Iterator[Sample]:
    """Yield the memory of a service's processes, from `memory.resident`."""
    for part, resident_bytes in bytes_by_part.items():
        yield Sample(MEMORY, (service, part), resident_bytes)


def certificate_samples(flow: Flow, certificates: Iterable[CertificateEnds], now: float) -> Iterator[Sample]:
    """Yield when certificates of a flow's clients expire. `now` is in Unix seconds."""
    for certificate in certificates:
        yield Sample(
            CERTIFICATE_EXPIRES, (str(flow), certificate.cluster, certificate.use), first_end(certificate, now)
        )
