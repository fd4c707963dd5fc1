"""The checks of `lockstep doctor` about limits of both clusters of a flow, for the registry."""

from lockstep_ops.doctor.checks.check import Category, DoctorCheck

MESSAGE_SIZE = DoctorCheck(
    "LD801",
    "largest message",
    "The target accepts batches as large as the source does. If it does not, a larger batch halts its partition.",
    "Raise `message.max.bytes` of the target's brokers, or `max.message.bytes` of the topic there.",
    category=Category.LIMITS,
)
REQUEST_SIZE = DoctorCheck(
    "LD802",
    "max.request.size",
    "`max.request.size` of the file is not above the target's limit. It has no effect on records: the target's limit "
    "counts.",
    "Raise `message.max.bytes` of the target's brokers, or remove the line.",
    category=Category.LIMITS,
)
REPLICATION_FACTOR = DoctorCheck(
    "LD803",
    "replication factor",
    "Each cluster has as many brokers as the topics to be created have replicas. If not, topics get fewer.",
    "Start more brokers, or lower the replication factors of the file.",
    category=Category.LIMITS,
)
QUOTAS = DoctorCheck(
    "LD804",
    "client quotas",
    "A quota for our user or client id lets at least one batch of the largest size pass each second.",
    "Raise the quota with `kafka-configs`, or limit the flow with `lockstep.max.bytes.per.second`.",
    category=Category.LIMITS,
)
TIMESTAMPS = DoctorCheck(
    "LD805",
    "timestamps",
    "Copies keep the timestamps of records, unless the target dates records itself (`LogAppendTime`).",
    "Set `log.message.timestamp.type=CreateTime` on the target's brokers, or `message.timestamp.type` on the topic.",
    category=Category.LIMITS,
)
UNCLEAN_ELECTION = DoctorCheck(
    "LD806",
    "unclean leader election",
    "With `unclean.leader.election.enable=true` a cluster may lose acknowledged records.",
    "Set it to `false`, unless availability is worth more than records. "
    "[No silent loss](no-silent-loss.md) says what follows.",
    category=Category.LIMITS,
)
CONTROL_TOPICS = DoctorCheck(
    "LD807",
    "control topics",
    "Topics of Lockstep and of MirrorMaker 2 that exist keep what is written to them, and take it: cleanup policy, "
    "partitions, retention, timestamps, in-sync replicas.",
    "Run the command of the line. Services do it themselves if they may: AlterConfigs on the topic.",
    category=Category.LIMITS,
)

NEW_CONTROL_TOPICS = DoctorCheck(
    "LD808",
    "control topics to create",
    "Each cluster is asked whether it would create the topics of Lockstep and of MirrorMaker 2 that it lacks. Nothing "
    "is created. A config that it refuses is left out, and another replication factor than the wanted one may be taken "
    "([control topics](control-topics.md#what-a-cluster-refuses)).",
    "Change what the line names, on the cluster or in the file. Or create the topic by hand.",
    category=Category.LIMITS,
)

LIMITS = (
    *(MESSAGE_SIZE, REQUEST_SIZE, REPLICATION_FACTOR, QUOTAS, TIMESTAMPS, UNCLEAN_ELECTION),
    *(CONTROL_TOPICS, NEW_CONTROL_TOPICS),
)
"""The checks of limits, in the order of the page. `registry.CHECKS` includes them."""
