"""The hazards of a plan, each with its code, its meaning, its fix and how it is found. Pure.

`docs/reference/plan-hazards.md` is made from here. A code is never used for something else.
"""

from lockstep_ops.plan.rules import cluster_hazards, codec_hazards, record_hazards
from lockstep_ops.plan.rules import hazard_checks as checks
from lockstep_ops.plan.rules.flow_facts import FlowFacts
from lockstep_ops.plan.rules.flow_plan import ERROR, NOTE, WARNING, CopyForecast, PlanHazard
from lockstep_ops.plan.rules.hazard_kind import HazardKind

HAZARDS = (
    HazardKind(
        "LS001",
        "A cycle of flows",
        "Topics keep their names, and another deployment already copies from the target to the source. A record would "
        "go round for ever, because neither deployment knows what the other one has copied. A cycle within one file "
        "is refused when the file is read.",
        "Put both directions into one file: then `lockstep.provenance` keeps records from coming back",
        ERROR,
        find=checks.find_cycle,
    ),
    HazardKind(
        "LS002",
        "One cluster under two aliases",
        "Source and target have the same cluster id. Topics that keep their name are left out, and so are those whose "
        "names begin with either alias. All others would be copied within the cluster.",
        "Name the bootstrap address of the other cluster",
        ERROR,
        find=checks.find_one_cluster,
    ),
    HazardKind(
        "LS003",
        "Foreign data in a target topic",
        "A remote topic exists and has records, but neither Lockstep nor MirrorMaker 2 has progress for it. Another "
        "program wrote them, or the progress was lost. The copy begins at its start and is appended behind these "
        "records, so consumers read both, perhaps the same records twice.",
        "Delete the topic on the target, or give the flow its progress (`lockstep takeover`, `lockstep offsets alter`)",
        ERROR,
        find=checks.find_foreign_data,
    ),
    HazardKind(
        "LS004",
        "Names that collide",
        "Two topics would have the same name on the target, or names that differ only in `.` and `_`. Kafka refuses "
        "to create the second of these, because their metrics would have one name.",
        "Select one of them, or change `replication.policy.separator`. If both are to meet, copy each by a flow of its "
        "own ([docs/guides/rename-topics.md](../guides/rename-topics.md))",
        ERROR,
        find=checks.find_collisions,
    ),
    HazardKind(
        "LS005",
        "A name that grows too long",
        "A topic's name has at most 249 characters. With the prefix of the replication policy it has more, so the "
        "remote topic cannot be created and the topic is not copied.",
        "Exclude the topic (`topics.exclude`), or give the source a shorter alias (`source.cluster.alias`)",
        ERROR,
        find=checks.find_long_names,
    ),
    HazardKind(
        "LS006",
        "Replication factor above the brokers",
        "A topic cannot have more replicas than the cluster has brokers. Lockstep lowers the number and says so, and "
        "the topic keeps the lower number when brokers join later.",
        "Set `replication.factor`, and the factors of the control topics, to what the cluster has; or add brokers "
        "first",
        WARNING,
        find=checks.find_few_brokers,
    ),
    HazardKind(
        "LS007",
        "The target takes smaller messages",
        "The limit of the remote topic (`max.message.bytes`, or `message.max.bytes` of the brokers) is below that of "
        "the source topic. Lockstep splits a batch that is too large. A single record that is too large is refused, "
        "and `lockstep.on.refused` decides what happens then.",
        "Raise `max.message.bytes` on the source topic, which topic-sync copies, or `message.max.bytes` of the "
        "target's brokers",
        WARNING,
        find=checks.find_smaller_messages,
    ),
    HazardKind(
        "LS008",
        "Retention is shorter than the catch-up",
        "The source's retention deletes records before the copy reaches them. The partition then halts with the case "
        "records-gone, unless `lockstep.on.gap` says otherwise. The time is an upper bound, because brokers delete "
        "whole segments.",
        "Raise `retention.ms` or `retention.bytes` on the source until the copy has caught up, or make the copy faster",
        WARNING,
        find=checks.find_losses,
    ),
    HazardKind(
        "LS009",
        "Topics that cycle detection leaves out",
        "The filters select these topics, but their names say that they are copies from the target. MirrorMaker 2 "
        "leaves them out too.",
        "Exclude them (`topics.exclude`); if they are no copies, `lockstep.cycles=exact` mirrors them",
        WARNING,
        find=checks.find_left_out,
    ),
    HazardKind(
        "LS010",
        "Groups with members on the target",
        "`sync.group.offsets.enabled` sets offsets of a group on the target, and Kafka permits that only while the "
        "group has no members there. These groups keep the offsets that they have.",
        "Stop their consumers on the target, or leave the groups out (`groups.exclude`)",
        WARNING,
        find=checks.groups_with("active"),
    ),
    HazardKind(
        "LS011",
        "Share and Streams groups",
        "The state of a share group (KIP-932) or of a Streams group (KIP-1071) is more than an offset for each "
        "partition. Checkpoints cannot express it, so these groups are not replicated.",
        "Plan their move by hand: a share group begins at `share.auto.offset.reset` on the target",
        NOTE,
        find=checks.groups_with("other-protocol"),
    ),
    HazardKind(
        "LS012",
        "Groups that the filter leaves out",
        "These groups read mirrored topics, but `groups` or `groups.exclude` leave them out. They get no checkpoints "
        "and no offsets on the target.",
        "Change `groups` or `groups.exclude` if they are to move",
        NOTE,
        find=checks.groups_with("excluded"),
    ),
    HazardKind(
        "LS013",
        "Topics that are rebuilt",
        "Batches of most topics pass unchanged. Batches with gaps (compacted topics) and batches with the broker's "
        "time (LogAppendTime) are decoded and built anew, which costs more processor time for each record.",
        "Nothing has to be done. Allow for a lower rate ([docs/guides/size-and-tune.md](../guides/size-and-tune.md))",
        NOTE,
        find=record_hazards.find_rebuilt,
    ),
    HazardKind(
        "LS014",
        "The next record is gone",
        "A position was reached before, and the source has deleted the records behind it. The partition halts with "
        "the case records-gone, unless `lockstep.on.gap` says otherwise.",
        "Choose `lockstep.on.gap` (halt, skip or restart) before the start",
        WARNING,
        find=checks.find_gone,
    ),
    HazardKind(
        "LS015",
        "A cluster refuses a topic",
        "A cluster was asked whether it would create the topic, without creating it, and refused. A policy of the "
        "cluster, a limit of a service or an invalid name are usual reasons. The topic is not copied. If it is one of "
        "Lockstep's own, the flow does not start.",
        "Change what the message names, on the target or in the file",
        ERROR,
        find=checks.find_refused_topics,
    ),
    HazardKind(
        "LS016",
        "The target refuses configs of a topic",
        "The target does not take a config that the source topic has. Its version does not know the key, or a policy "
        "or the brokers do not permit the value. The topic is created without that config.",
        "Exclude the key (`config.properties.exclude`), or upgrade the target",
        WARNING,
        find=checks.find_refused_configs,
    ),
    HazardKind(
        "LS017",
        "Topics that cannot be read",
        "The flow selects these topics, but a cluster does not let it describe them, or read their configs or logs. "
        "They are not copied until that is so.",
        "Grant the right that the message names",
        ERROR,
        find=checks.find_unreadable_topics,
    ),
    HazardKind(
        "LS018",
        "The copy never catches up",
        "On average over their logs, producers add more bytes a second to these topics than the flow can copy. The "
        "lag grows without end, until retention deletes records before they are copied.",
        "Measure the rate (`--measure`), raise `lockstep.max.bytes.per.second`, or select fewer topics",
        ERROR,
        find=checks.find_endless_copy,
    ),
    HazardKind(
        "LS019",
        "MirrorMaker 2 still runs",
        "The group of MirrorMaker 2's workers has members on the target. If Lockstep starts now, both copy the same "
        "records, and consumers read them twice.",
        "Stop MirrorMaker 2 and wait until its group is empty, then `lockstep takeover`",
        WARNING,
        find=checks.find_running_mirror_maker,
    ),
    HazardKind(
        "LS020",
        "Progress of MirrorMaker 2 in another place",
        "A MirrorMaker 2 of this source keeps its progress where the flow does not read it. Without a take-over the "
        "copy begins anew, and records come twice.",
        "Run `lockstep takeover FILE` before the start, with `--from strimzi` or `--from connect` if it ran there",
        WARNING,
        find=checks.find_progress_elsewhere,
    ),
    HazardKind(
        "LS021",
        "Groups that cannot be read",
        "The source does not let the flow read the offsets of these groups, so they get no checkpoints.",
        "Grant Describe on the groups",
        WARNING,
        find=checks.groups_with("unreadable"),
    ),
    HazardKind(
        "LS022",
        "A control topic that does not keep its records",
        "A topic of Lockstep or of MirrorMaker 2 exists with another cleanup policy, a shorter retention or too few "
        "partitions. Or it needs more in-sync replicas than it has. With `cleanup.policy=delete` the state topic "
        "loses its rows. Services set it right when they start if they may, and refuse to run otherwise.",
        "Run the command of the line, or grant AlterConfigs on the topic",
        ERROR,
        find=checks.find_unfit_control_topics,
    ),
    HazardKind(
        "LS023",
        "A topic that two flows feed",
        "Topics keep their names, and two flows of the file write to one topic of the target, in the order of "
        "arrival. If the counts of partitions or the configs of the sources differ, the later change is in "
        "effect. A group that is on both sources is moved only to a place that skips no record of either. "
        "Elsewhere it waits and is contested.",
        "Select the topic in one flow, or use DefaultReplicationPolicy. Leave a group that is on both sources out of "
        "one flow with `groups.exclude`",
        WARNING,
        find=checks.find_fan_in,
    ),
    HazardKind(
        "LS024",
        "A selection that matches nothing",
        "The source has topics, or groups that read mirrored topics, and the filters select none of them. The flow "
        "runs and copies nothing of that kind. Names are matched as a whole, and capital letters count.",
        "Compare `topics`, `topics.exclude`, `groups` and `groups.exclude` with the names on the source",
        WARNING,
        find=checks.find_empty_selections,
    ),
    HazardKind(
        "LS025",
        "More replicas in sync than replicas",
        "`min.insync.replicas` of the remote topic, or of the target's brokers, is above the number of its replicas. "
        "Brokers such as those of Kafka 2.8 then refuse every append with NOT_ENOUGH_REPLICAS, and nothing is copied.",
        "Raise `replication.factor`, or lower `min.insync.replicas` of the remote topic to the number of its replicas",
        WARNING,
        find=checks.find_few_replicas,
    ),
    HazardKind(
        "LS026",
        "Control topics without a config",
        "A cluster does not take a config with which Lockstep creates topics of its own, such as `segment.bytes`. "
        "They are created without it (ConfigRefused). A start may read more, or a first append may wait longer. "
        "Without `cleanup.policy` no topic is created.",
        "Nothing has to be done",
        NOTE,
        find=checks.find_refused_control_configs,
    ),
    HazardKind(
        "LS027",
        "Another replication factor than the wanted one",
        "The cluster refuses the replication factor, as services do that take three only. Lockstep asks for three, "
        "then for the brokers' default, then for two or one replica. The first that is taken counts.",
        "Set `replication.factor`, and the factors of the control topics, to what the cluster takes",
        WARNING,
        find=checks.find_demanded_factors,
    ),
    HazardKind(
        "LS028",
        "A cluster that does not know a needed request",
        "The brokers of a cluster do not know requests without which no record is copied. Or this release does not "
        "speak their versions of them. The flow waits until that is so.",
        "Upgrade the brokers, or Lockstep ([docs/reference/broker-versions.md](../reference/broker-versions.md))",
        ERROR,
        find=cluster_hazards.find_unfit_clusters,
    ),
    HazardKind(
        "LS029",
        "Requests that a cluster does not know",
        "Services and brokers that are not Apache Kafka lack some requests. Lockstep goes on without them. A part of "
        "the work is then not done, or done in another way, as the line says.",
        "Nothing has to be done if you can do without",
        WARNING,
        find=cluster_hazards.find_missing_requests,
    ),
    HazardKind(
        "LS030",
        "A cluster with few topics or partitions",
        "The service limits how many topics or partitions there are. The line has what the flow creates there, what "
        "all flows of the file create, and the limits of each tier. A flow needs each topic of its own.",
        "Compare with the limit of your tier of the service before the start",
        NOTE,
        find=cluster_hazards.find_few_topics,
    ),
    HazardKind(
        "LS031",
        "More than a tier of a service takes",
        "With what the file creates, the cluster would have more topics or partitions than a tier of the service "
        "takes. If yours is that tier, the cluster refuses some of them. Their topics are then not copied, or the "
        "flow does not start.",
        "Use a higher tier, raise the quota, select fewer topics, or lower `offset.storage.partitions`",
        WARNING,
        find=cluster_hazards.find_exceeded_limits,
    ),
    HazardKind(
        "LS032",
        "A topic that several transforms select",
        "More than one transform of the file selects a topic, or a transform and a rule of `lockstep.filter` or "
        "`lockstep.headers`, so nobody can say what its records are to become. The topic is not copied. If the "
        "patterns alone show it, `lockstep config check` refuses the file.",
        "Change `lockstep.transform.NAME.topics` so that each topic is selected by one at most, and limit the rules to "
        "other topics with `not topic PATTERN`",
        ERROR,
        find=record_hazards.find_disputed_topics,
    ),
    HazardKind(
        "LS033",
        "Records filtered from a compacted topic",
        "Records of a compacted topic are filtered. If the newest record of a key is dropped, an older one that passed "
        "stays on the target as its value. If tombstones are dropped, deleted keys stay for ever.",
        "Let the filter pass tombstones (`not tombstone` in `lockstep.filter`), and drop all records of a key or none. "
        "Or leave a tombstone in place of a filtered record (`lockstep.transform.NAME.filtered = tombstone`)",
        WARNING,
        find=record_hazards.find_filtered_compacted,
    ),
    HazardKind(
        "LS034",
        "A transform changes keys or timestamps",
        "A record stays in its partition when its key changes. So equal keys may be in several partitions, which "
        "consumers and the cleaner of a compacted topic may not expect. A changed timestamp moves retention, and "
        "what consumers find by time.",
        "Keep both as they are, unless nobody counts on them",
        WARNING,
        find=record_hazards.find_transformed_identity,
    ),
    HazardKind(
        "LS035",
        "Topics that get another name",
        "The flow has copied these topics to another name on the target, before a rename or the replication "
        "policy was changed. The new name is another log, so their partitions halt, as if the target's topic had "
        "been created again. The earlier copy stays as it is.",
        "Take the change back. Or set `lockstep.on.recreate` to restart, and delete the earlier copy at the end",
        WARNING,
        find=checks.find_former_names,
    ),
    HazardKind(
        "LS036",
        "Retention leaves a delayed copy little room",
        "`lockstep.delay` keeps records on the source until they are due. The line has the room that its "
        "retention leaves for an outage of the copy. After that, brokers delete records that were not copied, and "
        "the partition halts with the case records-gone. In a compacted topic they delete tombstones, which nobody "
        "can notice: their keys stay on the target for ever. Retention of the copy goes by the records' timestamps, so "
        "the delay shortens it too.",
        "Raise `retention.ms`, `retention.bytes` or `delete.retention.ms`, or shorten `lockstep.delay`",
        WARNING,
        find=record_hazards.find_short_retention,
    ),
    HazardKind(
        "LS037",
        "Topics that keep their names on a target without producer ids",
        "The target gives no producer ids, so its log is read back instead. Where topics keep their names, a copied "
        "record is known by its producer id alone. A flow back from this target, after a switch for example, would "
        "take all copies for the target's own records and double them. So nothing is copied.",
        "Use DefaultReplicationPolicy, so that names show what is a copy, or a target that gives producer ids",
        ERROR,
        find=cluster_hazards.find_unmarked_copies,
    ),
    HazardKind(
        "LS038",
        "Codecs that the target refuses",
        "The newest batches of a topic have a codec that the target does not take. They are decoded and compressed "
        "anew with another one, which costs processor time for each record, and bytes on the way to the target. With "
        "`lockstep.recompress = never` their partitions halt. The line has the bytes, measured on a sample.",
        "Let the producers use a codec that both clusters take, or accept the cost",
        WARNING,
        find=codec_hazards.find_refused_codecs,
    ),
    HazardKind(
        "LS039",
        "Batches that brokers of the target compress anew",
        "`compression.type` of a copy is not `producer`, and the newest batches of its source have another codec. "
        "The target's brokers compress each batch anew when it is appended. That costs their processor time, and the "
        "copy has another size than its source. The link carries the batches as they are.",
        "Exclude `compression.type` (`config.properties.exclude`), or let producers use that codec",
        NOTE,
        find=codec_hazards.find_broker_codecs,
    ),
)


def find_hazards(facts: FlowFacts, copy: CopyForecast) -> tuple[PlanHazard, ...]:
    """Return the hazards of a flow, at most one of each kind, in the order of `HAZARDS`."""
    return tuple(hazard for kind in HAZARDS if (hazard := kind.judge(facts, copy)) is not None)
