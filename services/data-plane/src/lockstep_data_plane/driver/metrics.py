"""What the data plane's page shows beside what every service shows. Its slots have no pages: what they know comes
through their rows in the state topic."""

from lockstep_runtime.telemetry.metrics import Metric, Type

__all__ = ["METRICS"]

COUNTER, GAUGE = Type.COUNTER, Type.GAUGE

# -- MirrorMaker 2's source connector, by the topic's name on the target -----------------------------------------------

REMOTE = ("source", "target", "topic", "partition")
PREFIX = "kafka_connect_mirror_mirrorsourceconnector"
LIKE = "kafka.connect.mirror:type=MirrorSourceConnector"

RECORD_COUNT = Metric(
    f"{PREFIX}_record_count",
    GAUGE,
    REMOTE,
    "Records appended to the target since this process was assigned the partition",
    like=f"{LIKE} record-count",
)
RECORD_RATE = Metric(
    f"{PREFIX}_record_rate", GAUGE, REMOTE, "Records a second over the last minute", like=f"{LIKE} record-rate"
)
BYTE_COUNT = Metric(
    f"{PREFIX}_byte_count",
    GAUGE,
    REMOTE,
    "Bytes of the same batches as stored in the log: compressed, with headers and keys. MirrorMaker 2 counts the"
    " uncompressed values only",
    like=f"{LIKE} byte-count",
)
BYTE_RATE = Metric(
    f"{PREFIX}_byte_rate", GAUGE, REMOTE, "The same bytes a second over the last minute", like=f"{LIKE} byte-rate"
)


def _four(name: str, what: str) -> tuple[Metric, ...]:
    """Last, least, most, mean."""
    like = f"{LIKE} {name.replace('_', '-')}"
    return (
        Metric(f"{PREFIX}_{name}", GAUGE, REMOTE, f"{what}, in milliseconds: of the last record", like=like),
        Metric(
            f"{PREFIX}_{name}_min", GAUGE, REMOTE, "The least of the last minute; NaN: none came", like=f"{like}-min"
        ),
        Metric(f"{PREFIX}_{name}_max", GAUGE, REMOTE, "The most of the last minute", like=f"{like}-max"),
        Metric(f"{PREFIX}_{name}_avg", GAUGE, REMOTE, "The mean of the last minute", like=f"{like}-avg"),
    )


RECORD_AGE = _four("record_age_ms", "From a record's timestamp to when it was fetched")
REPLICATION_LATENCY = _four("replication_latency_ms", "From a record's timestamp to the target's acknowledgement")

# -- what Kafka's clients and Connect's tasks would say of a slot ------------------------------------------------------

CLIENT = ("clientid",)
TASK = ("connector", "task")

CONSUMER_LAG = Metric(
    "kafka_consumer_fetch_manager_records_lag",
    GAUGE,
    ("clientid", "topic", "partition"),
    "As `lockstep_lag_records`",
    like="kafka.consumer:type=consumer-fetch-manager-metrics records-lag",
)
INCOMING = Metric(
    "kafka_consumer_incoming_byte",
    COUNTER,
    CLIENT,
    "Bytes of batches that a slot fetched, without protocol overhead",
    like="kafka.consumer:type=consumer-metrics incoming-byte-total",
)
OUTGOING = Metric(
    "kafka_producer_outgoing_byte",
    COUNTER,
    CLIENT,
    "Bytes of a slot's batches that the target acknowledged",
    like="kafka.producer:type=producer-metrics outgoing-byte-total",
)
BUFFER_AVAILABLE = Metric(
    "kafka_producer_buffer_available_bytes",
    GAUGE,
    CLIENT,
    "Bytes that a slot may still hold: `lockstep.max.in.flight.bytes` minus `lockstep_held_bytes`",
    like="kafka.producer:type=producer-metrics buffer-available-bytes",
)
COMMIT_TIME = Metric(
    "kafka_connect_connector_task_offset_commit_avg_time_ms",
    GAUGE,
    TASK,
    "Time that a slot needs to write its progress, mean of the last minute",
    like="kafka.connect:type=connector-task-metrics offset-commit-avg-time-ms",
)
ACTIVE_RECORDS = Metric(
    "kafka_connect_source_task_source_record_active_count",
    GAUGE,
    TASK,
    "As `lockstep_held_records`",
    like="kafka.connect:type=source-task-metrics source-record-active-count",
)

# -- our own -----------------------------------------------------------------------------------------------------------

PARTITION = ("flow", "topic", "partition")
SLOT = ("flow", "slot")

LAG = Metric(
    "lockstep_lag_records",
    GAUGE,
    PARTITION,
    "Source offsets that a reader of the target cannot read yet, also for partitions whose copy has not begun;"
    " absent if unknown",
)
LAG_SECONDS = Metric(
    "lockstep_lag_seconds",
    GAUGE,
    PARTITION,
    "Age of the oldest fetched record that the target has not acknowledged; for records that no slot has fetched,"
    " seconds since the driver first saw them. 0 without lag, absent if the lag is unknown. Keeps growing while"
    " the slot does not report",
)
LATENCY = Metric(
    "lockstep_latency_seconds",
    GAUGE,
    PARTITION,
    "From the record timestamp to the target's acknowledgement, last batch",
)
UPSTREAM = Metric(
    "lockstep_upstream_offset", GAUGE, PARTITION, "Last source offset that the target has acknowledged; -1: none"
)
RECORDS = Metric("lockstep_records", COUNTER, PARTITION, "Records appended to the target")
BYTES = Metric("lockstep_bytes", COUNTER, PARTITION, "Bytes of the batches appended to the target")
GIVEN_UP = Metric(
    "lockstep_given_up_offsets",
    COUNTER,
    PARTITION,
    "Source offsets that a policy skipped, since the first copy of the partition",
)
TARGET_LOST = Metric(
    "lockstep_target_lost_offsets",
    COUNTER,
    PARTITION,
    "Target offsets that the target lost and that a policy did not copy again, since the first copy of the partition",
)
QUARANTINED = Metric(
    "lockstep_quarantined",
    COUNTER,
    PARTITION,
    "Records, or unreadable batches, written to the quarantine topic, since the first copy of the partition",
)
HALTED = Metric(
    "lockstep_partition_halted", GAUGE, PARTITION, "1 while the partition is halted and waits for a decision"
)
STUCK = Metric(
    "lockstep_partition_stuck",
    GAUGE,
    PARTITION,
    "1 if the source has records that are not copied, and the copy has not moved for a minute",
)
PAUSED = Metric(
    "lockstep_partition_paused", GAUGE, PARTITION, "1 while an operator pauses the partition (`pause`, `stop`)"
)

LAG_UNKNOWN = Metric(
    "lockstep_lag_unknown_partitions",
    GAUGE,
    ("flow",),
    "Partitions whose lag is unknown: a cluster does not answer, or a log was truncated or re-created",
)
PARTITION_STATES = Metric(
    "lockstep_partition_states",
    GAUGE,
    ("flow", "state"),
    "Partitions that the target should have, by state: `copying`, `not-begun` (nothing is copied yet, or the"
    " target lacks them), `halted`, `paused` (or stopped), `stuck`, `silent` (no slot has reported on them lately)",
)
PARTITIONS = Metric("lockstep_partitions", GAUGE, ("flow",), "Partitions that the flow mirrors")
HALTED_PARTITIONS = Metric(
    "lockstep_halted_partitions", GAUGE, ("flow", "case"), "Partitions that are halted and wait for a decision, by case"
)
GAPS = Metric(
    "lockstep_gaps",
    COUNTER,
    ("flow", "case"),
    "Times that a policy let a partition continue instead of halting it, by case",
)
SLOTS = Metric(
    "lockstep_slots",
    GAUGE,
    ("flow", "state"),
    "Slots, by state: `assigned` ones have partitions, `running` ones have reported in their current run,"
    " `paused` ones have reported too and copy nothing because an operator paused them",
)
SLOT_PARTITIONS = Metric("lockstep_slot_partitions", GAUGE, SLOT, "Partitions assigned to the slot")
SLOT_RESTARTS = Metric("lockstep_slot_restarts", COUNTER, SLOT, "Times that the slot ended without a request to end")
HELD_BYTES = Metric("lockstep_held_bytes", GAUGE, SLOT, "Bytes of batches fetched and not yet acknowledged")
HELD_RECORDS = Metric("lockstep_held_records", GAUGE, SLOT, "Records fetched and not yet acknowledged")
SYNCS = Metric("lockstep_offset_syncs", COUNTER, SLOT, "Offset syncs acknowledged")
SYNC_LATENCY = Metric(
    "lockstep_offset_sync_latency_seconds",
    GAUGE,
    SLOT,
    "Time until an offset sync was acknowledged, mean of the last minute; NaN: there was none",
)

METRICS = (
    RECORD_COUNT,
    RECORD_RATE,
    BYTE_COUNT,
    BYTE_RATE,
    *RECORD_AGE,
    *REPLICATION_LATENCY,
    CONSUMER_LAG,
    INCOMING,
    OUTGOING,
    BUFFER_AVAILABLE,
    COMMIT_TIME,
    ACTIVE_RECORDS,
    LAG,
    LAG_SECONDS,
    LATENCY,
    UPSTREAM,
    RECORDS,
    BYTES,
    GIVEN_UP,
    TARGET_LOST,
    QUARANTINED,
    HALTED,
    STUCK,
    PAUSED,
    LAG_UNKNOWN,
    PARTITION_STATES,
    PARTITIONS,
    HALTED_PARTITIONS,
    GAPS,
    SLOTS,
    SLOT_PARTITIONS,
    SLOT_RESTARTS,
    HELD_BYTES,
    HELD_RECORDS,
    SYNCS,
    SYNC_LATENCY,
)
