"""The metrics that the data plane's page has beside those of every service.

Slots have no pages. The fields of their rows in the state topic declare the metrics of slots and partitions.
"""

from lockstep_state.metric import Metric, MetricSet
from lockstep_state.rows.data_plane_rows import PARTITION, SLOT, PartitionProgress, SlotStatus

METRICS = MetricSet(PartitionProgress, SlotStatus)

# -- MirrorMaker 2's source connector, by the topic's name on the target -----------------------------------------------

REMOTE = ("source", "target", "topic", "partition")
PREFIX = "kafka_connect_mirror_mirrorsourceconnector"
LIKE = "kafka.connect.mirror:type=MirrorSourceConnector"

RECORD_COUNT = METRICS.gauge(
    f"{PREFIX}_record_count",
    REMOTE,
    "Records appended to the target since this process was assigned the partition",
    like=f"{LIKE} record-count",
)
RECORD_RATE = METRICS.gauge(
    f"{PREFIX}_record_rate", REMOTE, "Records a second over the last minute", like=f"{LIKE} record-rate"
)
BYTE_COUNT = METRICS.gauge(
    f"{PREFIX}_byte_count",
    REMOTE,
    "Bytes of the same batches as stored in the log: compressed, with headers and keys. MirrorMaker 2 counts the"
    " uncompressed values only",
    like=f"{LIKE} byte-count",
)
BYTE_RATE = METRICS.gauge(
    f"{PREFIX}_byte_rate", REMOTE, "The same bytes a second over the last minute", like=f"{LIKE} byte-rate"
)


def _four(name: str, meaning: str) -> tuple[Metric, ...]:
    """Declare the gauges of the last, the least, the largest and the mean value."""
    like = f"{LIKE} {name.replace('_', '-')}"
    return (
        METRICS.gauge(f"{PREFIX}_{name}", REMOTE, f"{meaning}, in milliseconds: of the last record", like=like),
        METRICS.gauge(
            f"{PREFIX}_{name}_min", REMOTE, "The least of the last minute; NaN: none came", like=f"{like}-min"
        ),
        METRICS.gauge(f"{PREFIX}_{name}_max", REMOTE, "The most of the last minute", like=f"{like}-max"),
        METRICS.gauge(f"{PREFIX}_{name}_avg", REMOTE, "The mean of the last minute", like=f"{like}-avg"),
    )


RECORD_AGE = _four("record_age_ms", "From a record's timestamp to when it was fetched")
REPLICATION_LATENCY = _four("replication_latency_ms", "From a record's timestamp to the target's acknowledgement")

# -- what Kafka's clients and Connect's tasks would say of a slot ------------------------------------------------------

CLIENT = ("clientid",)
TASK = ("connector", "task")

CONSUMER_LAG = METRICS.gauge(
    "kafka_consumer_fetch_manager_records_lag",
    ("clientid", "topic", "partition"),
    "As `lockstep_lag_records`",
    like="kafka.consumer:type=consumer-fetch-manager-metrics records-lag",
)
INCOMING = METRICS.counter(
    "kafka_consumer_incoming_byte",
    CLIENT,
    "Bytes of batches that a slot fetched, without protocol overhead",
    like="kafka.consumer:type=consumer-metrics incoming-byte-total",
)
OUTGOING = METRICS.counter(
    "kafka_producer_outgoing_byte",
    CLIENT,
    "Bytes of a slot's batches that the target acknowledged",
    like="kafka.producer:type=producer-metrics outgoing-byte-total",
)
BUFFER_AVAILABLE = METRICS.gauge(
    "kafka_producer_buffer_available_bytes",
    CLIENT,
    "Bytes that a slot may still hold: `lockstep.max.in.flight.bytes` minus `lockstep_held_bytes`",
    like="kafka.producer:type=producer-metrics buffer-available-bytes",
)
COMMIT_TIME = METRICS.gauge(
    "kafka_connect_connector_task_offset_commit_avg_time_ms",
    TASK,
    "Time that a slot needs to write its progress, mean of the last minute",
    like="kafka.connect:type=connector-task-metrics offset-commit-avg-time-ms",
)
ACTIVE_RECORDS = METRICS.gauge(
    "kafka_connect_source_task_source_record_active_count",
    TASK,
    "As `lockstep_held_records`",
    like="kafka.connect:type=source-task-metrics source-record-active-count",
)

# -- our own -----------------------------------------------------------------------------------------------------------


LAG = METRICS.gauge(
    "lockstep_lag_records",
    PARTITION,
    "Source offsets that a reader of the target cannot read yet, also for partitions whose copy has not begun;"
    " absent if unknown",
)
LAG_SECONDS = METRICS.gauge(
    "lockstep_lag_seconds",
    PARTITION,
    "How long the oldest record that is not on the target has been in the source's log, as far as it was observed:"
    " since its slot or the driver first saw an end beyond it. Timestamps of records have no part in it. 0 without lag,"
    " absent if the lag is unknown. Keeps growing while the slot does not report",
)
DELAY_SECONDS = METRICS.gauge(
    "lockstep_delay_seconds",
    PARTITION,
    "How long records of the partition stay on the source before they are copied (`lockstep.delay`). So much of"
    " `lockstep_lag_seconds` is wanted. 0: they are copied at once",
)
HALTED = METRICS.gauge(
    "lockstep_partition_halted", PARTITION, "1 while the partition is halted and waits for a decision"
)
STUCK = METRICS.gauge(
    "lockstep_partition_stuck",
    PARTITION,
    "1 if the source has records that are not copied, and the copy has not moved for a minute",
)
PAUSED = METRICS.gauge(
    "lockstep_partition_paused", PARTITION, "1 while an operator pauses the partition (`pause`, `stop`)"
)

LAG_UNKNOWN = METRICS.gauge(
    "lockstep_lag_unknown_partitions",
    ("flow",),
    "Partitions whose lag is unknown: a cluster does not answer, or a log was truncated or re-created",
)
PARTITION_STATES = METRICS.gauge(
    "lockstep_partition_states",
    ("flow", "state"),
    "Partitions that the target should have, by state: `copying`, `not-begun` (nothing is copied yet, or the"
    " target lacks them), `halted`, `paused` (or stopped), `stuck`, `silent` (no slot has reported on them lately)",
)
SWITCH_READY = METRICS.gauge(
    "lockstep_switch_ready",
    ("flow",),
    "1 if clients can move to the target now: each partition is within `lockstep.switch.max.lag.seconds`, each group"
    " has its translated offset there, and all of that is known",
)
SWITCH_BLOCKERS = METRICS.gauge(
    "lockstep_switch_blockers",
    ("flow", "reason"),
    "What prevents that clients move to the target, by reason; 0 for each other reason",
)
PARTITIONS = METRICS.gauge("lockstep_partitions", ("flow",), "Partitions that the flow mirrors")
HALTED_PARTITIONS = METRICS.gauge(
    "lockstep_halted_partitions", ("flow", "case"), "Partitions that are halted and wait for a decision, by case"
)
GAPS = METRICS.counter(
    "lockstep_gaps",
    ("flow", "case"),
    "Times that a policy let a partition continue instead of halting it, by case",
)
SLOTS = METRICS.gauge(
    "lockstep_slots",
    ("flow", "state"),
    "Slots, by state: `assigned` ones have partitions, `running` ones have reported in their current run,"
    " `paused` ones have reported too and copy nothing because an operator paused them",
)
SLOT_PARTITIONS = METRICS.gauge("lockstep_slot_partitions", SLOT, "Partitions assigned to the slot")
SLOT_RESTARTS = METRICS.counter("lockstep_slot_restarts", SLOT, "Times that the slot ended without a request to end")
SYNC_LATENCY = METRICS.gauge(
    "lockstep_offset_sync_latency_seconds",
    SLOT,
    "Time until an offset sync was acknowledged, mean of the last minute; NaN: there was none",
)

LINK_BYTES = METRICS.counter(
    "lockstep_link_bytes",
    ("flow", "cluster", "direction", "rack"),
    "Bytes of Kafka's protocol that slots `sent` to a cluster's brokers and `received` from them, by the brokers' rack"
    " (empty: none, or not known yet). TLS, logins and control topics are not included",
)

TRANSFORM = ("flow", "transform")

TRANSFORM_RECORDS_IN = METRICS.counter(
    "lockstep_transform_records_in",
    TRANSFORM,
    "Records that a transform was evaluated for, also to find out where copies end",
)
TRANSFORM_RECORDS_OUT = METRICS.counter("lockstep_transform_records_out", TRANSFORM, "Records that were left of them")
TRANSFORM_FAILED = METRICS.counter(
    "lockstep_transform_failed", TRANSFORM, "Records for which a transform could not be evaluated"
)
TRANSFORM_SECONDS = METRICS.counter(
    "lockstep_transform_seconds",
    TRANSFORM,
    "Seconds for which requests of a transform were with the JVM, or with the process of its function",
)
TRANSFORM_HELD = METRICS.gauge(
    "lockstep_transform_held_bytes", TRANSFORM, "Bytes of batches that wait until their records are evaluated"
)
TRANSFORM_VERSION = METRICS.gauge(
    "lockstep_transform_version", ("flow", "transform", "version"), "1 for the version that slots evaluate now"
)

TOPIC = ("flow", "topic")

VERIFIED_LAG = METRICS.gauge(
    "lockstep_verified_lag_seconds",
    TOPIC,
    "How long ago everything that was copied of the topic by then was verified; 0 if all of it is, absent without"
    " lockstep.verify.enabled",
)
VERIFY_DIFFERENCES = METRICS.gauge(
    "lockstep_verify_differences",
    TOPIC,
    "Differences between the topic and its copy that verification has found, records beyond the copy included",
)
NOT_VERIFIED = METRICS.gauge(
    "lockstep_not_verified_records",
    TOPIC,
    "Records that verification could not compare, because one log has them no more or a policy passed them over",
)
