"""The metrics of the checkpoint service."""

from lockstep_state.metric import MetricSet

METRICS = MetricSet()

EMITTED = METRICS.counter("lockstep_checkpoints_emitted", ("flow",), "Checkpoints acknowledged by the target")
GROUPS = METRICS.gauge(
    "lockstep_checkpoint_groups",
    ("flow", "phase"),
    "Consumer groups, by the state of their translation: `translated`, `waiting`, `failing`",
)
HISTORIES = METRICS.gauge("lockstep_offset_sync_partitions", ("flow",), "Source partitions that have an offset sync")
PLACES = METRICS.gauge(
    "lockstep_group_partitions",
    ("flow", "place"),
    "Partitions of consumer groups, by how well their offset on the target is known: `exact` (nothing is read"
    " again), `behind`, `waiting`, `ahead-on-target` and `rewound-on-source` (records are skipped)",
)
SYNCED = METRICS.counter("lockstep_group_offsets_synced", ("flow",), "Offsets committed for groups of the target")
SYNCED_GROUPS = METRICS.gauge(
    "lockstep_groups_synced",
    ("flow",),
    "Groups whose offsets on the target were set to their checkpoints (`sync.group.offsets.enabled`)",
)
LEFT_ALONE = METRICS.gauge(
    "lockstep_groups_left_alone",
    ("flow",),
    "Groups whose offsets on the target are not changed: they have members there, Lockstep may not commit, or"
    " they are beyond their checkpoints; `/status` says which and why",
)

HELD = METRICS.gauge(
    "lockstep_groups_held",
    ("flow", "why"),
    "Groups whose offsets on the target are not changed, by reason: `in-use` (members there), `refused` (by the"
    " target), `ahead-on-target` and `rewound-on-source` (consumers that move there skip records), `contested` (they"
    " would skip records of another flow to the same topic). A group counts once for each reason",
)

PARTITION = ("source", "target", "group", "topic", "partition")
PREFIX = "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms"
LIKE = "kafka.connect.mirror:type=MirrorCheckpointConnector checkpoint-latency-ms"

LATENCY = tuple(
    METRICS.gauge(PREFIX + suffix, PARTITION, meaning, like=LIKE + suffix.replace("_", "-"))
    for suffix, meaning in (
        ("", "Milliseconds from the planning of a checkpoint to its acknowledgement, the last time"),
        ("_min", "The shortest of the last minute; NaN when there was none"),
        ("_max", "The longest of the last minute"),
        ("_avg", "The mean of the last minute"),
    )
)
"""Last, least, most and mean. The label `topic` has the remote topic."""
