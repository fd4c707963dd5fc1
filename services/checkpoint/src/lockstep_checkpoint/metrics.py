"""What checkpoint's page shows beside what every service shows."""

from lockstep_runtime.telemetry.metrics import Metric, Type

__all__ = [
    "EMITTED",
    "GROUPS",
    "HELD",
    "HISTORIES",
    "LATENCY",
    "LEFT_ALONE",
    "METRICS",
    "PLACES",
    "SYNCED",
    "SYNCED_GROUPS",
]

EMITTED = Metric("lockstep_checkpoints_emitted", Type.COUNTER, ("flow",), "Checkpoints acknowledged by the target")
GROUPS = Metric(
    "lockstep_checkpoint_groups",
    Type.GAUGE,
    ("flow", "phase"),
    "Consumer groups, by the state of their translation: `translated`, `waiting`, `failing`",
)
HISTORIES = Metric(
    "lockstep_offset_sync_partitions", Type.GAUGE, ("flow",), "Source partitions that have an offset sync"
)
PLACES = Metric(
    "lockstep_group_partitions",
    Type.GAUGE,
    ("flow", "place"),
    "Partitions of consumer groups, by how well their offset on the target is known: `exact` (nothing is read"
    " again), `behind`, `waiting`, `ahead-on-target` and `rewound-on-source` (records are skipped)",
)
SYNCED = Metric("lockstep_group_offsets_synced", Type.COUNTER, ("flow",), "Offsets committed for groups of the target")
SYNCED_GROUPS = Metric(
    "lockstep_groups_synced",
    Type.GAUGE,
    ("flow",),
    "Groups whose offsets on the target were set to their checkpoints (`sync.group.offsets.enabled`)",
)
LEFT_ALONE = Metric(
    "lockstep_groups_left_alone",
    Type.GAUGE,
    ("flow",),
    "Groups whose offsets on the target are not changed: they have members there, Lockstep may not commit, or"
    " they are beyond their checkpoints; `/status` says which and why",
)

HELD = Metric(
    "lockstep_groups_held",
    Type.GAUGE,
    ("flow", "why"),
    "Groups whose offsets on the target are not changed, by reason: `in-use` (members there), `refused` (by the"
    " target), `ahead-on-target` and `rewound-on-source` (consumers that move there skip records). A group counts"
    " once for each reason",
)

PARTITION = ("source", "target", "group", "topic", "partition")
PREFIX = "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms"
LIKE = "kafka.connect.mirror:type=MirrorCheckpointConnector checkpoint-latency-ms"

LATENCY = tuple(
    Metric(PREFIX + suffix, Type.GAUGE, PARTITION, meaning, like=LIKE + suffix.replace("_", "-"))
    for suffix, meaning in (
        ("", "Milliseconds from the planning of a checkpoint to its acknowledgement, the last time"),
        ("_min", "The shortest of the last minute; NaN when there was none"),
        ("_max", "The longest of the last minute"),
        ("_avg", "The mean of the last minute"),
    )
)
"""Last, least, most, mean; `topic` is the remote topic."""

METRICS = (EMITTED, GROUPS, PLACES, HISTORIES, SYNCED, SYNCED_GROUPS, LEFT_ALONE, HELD, *LATENCY)
