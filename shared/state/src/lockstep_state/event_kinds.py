"""The kinds of events, with subject, meaning, service and log level (`events.md`)."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lockstep_state.commands.command_vocabulary import (
    OFFSETS_ALTER,
    OFFSETS_LIST,
    OFFSETS_RESET,
    REFRESH,
    SYNC_GROUPS,
    VERBS,
    VERIFY,
)


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind of event.

    `detail` has the fields that its events may have, divided by spaces; `level` is that of its log line.
    """

    name: str
    subject: str
    meaning: str
    detail: str = ""
    level: int = logging.INFO


def _warning(name: str, subject: str, meaning: str, detail: str = "") -> EventKind:
    return EventKind(name, subject, meaning, detail, logging.WARNING)


_CREATED = "target partitions replication_factor configs"
_ACL = "principal host operation permission resource pattern topic"
_GAP = "case wanted source_start source_end target_wanted target_end gone"
_DECIDED = "case begin lost again gone"
_DETAIL = {
    REFRESH: "",
    OFFSETS_LIST: "offsets left_out",
    OFFSETS_ALTER: "entries",
    OFFSETS_RESET: "entries",
    SYNC_GROUPS: "groups",
    VERIFY: "depth topics partitions",
}
_ANSWERS = {verb: (declared.answer, _DETAIL.get(verb, "scope wanted")) for verb, declared in VERBS.items()}

EVENTS_BY_SERVICE: Mapping[str, tuple[EventKind, ...]] = MappingProxyType(
    {
        "topic-sync": (
            EventKind("TopicCreated", "topic", "The topic is created on the target.", _CREATED),
            EventKind("PartitionsAdded", "topic", "The target's topic has more partitions now.", "target before total"),
            EventKind("ConfigAltered", "topic", "Configs of the target's topic are altered.", "target changes"),
            _warning("ConfigRefused", "topic", "The target refuses these configs. The others are set.", "keys"),
            _warning("ReplicationFactorRefused", "-", "The target takes no topic with that number.", "wanted accepted"),
            _warning("ReplicationFactorLowered", "-", "The target has too few brokers for it.", "wanted brokers"),
            _warning(
                "TopicFailed", "topic", "Some or all of its partitions are not copied.", "reason cause partitions"
            ),
            EventKind("TopicNoted", "topic", "The topic is copied, with a remark.", "note"),
            EventKind(
                "TopicLeftOut",
                "topic",
                "The topic is selected and not copied, because its name says that it is a copy. "
                "This is a warning if the target has no topic that it is a copy of.",
                "rule",
            ),
            _warning("NoTopicSelected", "-", "The source has topics, and none of them is selected.", "total included"),
            EventKind("TopicExcluded", "topic", "The topic is no longer selected. Its copy stays."),
            EventKind("TopicIncluded", "topic", "The topic is selected again. The copy goes on where it was."),
            EventKind("TopicDeleted", "topic", "The source has deleted the topic. Its copy stays."),
            _warning("TopicRecreated", "topic", "The topic has another id on this side.", "side before after"),
        ),
        "acl-sync": (
            EventKind("AclAdded", "resource", "The ACL is added on the target.", _ACL),
            EventKind("AclDeleted", "resource", "The source has revoked the ACL, so the target has too.", _ACL),
        ),
        "data-plane": (
            EventKind("SlotStarted", "slot", "The slot copies its partitions.", "slot partitions"),
            EventKind(
                "OriginRecorded",
                "producer id",
                "The producer id stands for the flow and this origin. Repeated at each start and every day.",
                "producer_id origin_cluster_id target_cluster_id counts",
                logging.DEBUG,
            ),
            _warning("SlotNotStarted", "slot", "The slot is late: Spark has no free core, or is slow.", "slot"),
            _warning("SlotFrozen", "slot", "The slot is silent. Its task ends, and another one starts.", "slot run"),
            _warning("SlotFailed", "slot", "The slot has ended with an error.", "slot run reason cause restarts waits"),
            _warning(
                "PartitionStuck",
                "partition",
                "The source has more, and nothing comes.",
                "upstream source_end reason cause",
            ),
            EventKind("PartitionMoves", "partition", "The partition is not stuck any more."),
            _warning("GapFound", "partition", "The copy cannot continue where it was.", _GAP),
            _warning(
                "PartitionHalted", "partition", "Nothing is copied until an operator decides.", "reason cause upstream"
            ),
            _warning("GapSkipped", "partition", "The policy continues behind the gap.", _DECIDED),
            _warning("CopyRestarted", "partition", "The policy copies the partition again.", _DECIDED),
            _warning("ResumedWithDoubt", "partition", "The policy continues at the progress written.", _DECIDED),
            EventKind(
                "TransformChanged",
                "partition",
                "Records from this source offset on are copied by another version of the partition's transform.",
                "old new first",
            ),
            EventKind("ProgressRecovered", "partition", "The target has more than its progress.", "records upstream"),
            _warning(
                "HangingTransactionEnded",
                "partition",
                "The target has ended a transaction without its markers, so it is committed or aborted again.",
                "outcome partitions",
            ),
            _warning("BatchQuarantined", "partition", "Refused records are in the quarantine topic.", "ranges reason"),
            _warning("ForeignWrite", "target partition", "Another client writes to the copy.", "records before"),
            _warning(
                "RecordsDoubled",
                "partition",
                "A writer that was frozen has appended records that were copied already. The target has them twice.",
                "records first last",
            ),
            _warning("TimestampsRewritten", "target partition", "The target sets its own timestamps.", "downstream"),
            EventKind(
                "AppendTried",
                "cluster",
                "A record of the trial of what the target does with producer ids, before the first record is copied.",
                level=logging.DEBUG,
            ),
            _warning(
                "AppendModeChosen",
                "cluster",
                "The target does not do with producer ids what Kafka does. The flow copies in transactions, or reads"
                " the log back.",
                "mode faults",
            ),
            _warning(
                "CodecRefused",
                "cluster",
                "The target refuses batches of a codec. The slot compresses them anew with another one.",
                "codec instead",
            ),
            _warning(
                "RequestsLimited",
                "cluster",
                "The target closes the connection on large requests, so the slot sends smaller ones.",
                "bytes",
            ),
            _warning("Throttled", "cluster", "The brokers throttle the slot, for a quota.", "seconds"),
            EventKind(
                "RequestUnsupported",
                "cluster",
                "The cluster does not support a request, or answers it wrongly. The slot reads the log instead.",
                "api case",
            ),
            EventKind("GroupPositionsTaken", "MM1's group", "Partitions begin at the group's offsets.", "partitions"),
            _warning("GroupPositionObeyed", "partition", "It begins where the group was reset to.", "begins copied"),
            _warning("GroupPositionOverwritten", "partition", "Another client's commit is replaced.", "theirs ours"),
            _warning("GroupOccupied", "MM1's group", "The group has members, so nothing is copied.", "members"),
            EventKind("GroupFreed", "MM1's group", "The group has no members any more."),
        ),
        "checkpoint": (
            EventKind("GroupFound", "group", "The group is replicated."),
            EventKind("GroupGone", "group", "The source has the group no more."),
            _warning("GroupNotReplicated", "group", "The group's protocol has no offsets to translate."),
            _warning("GroupFailing", "group", "The group's offsets are not translated or not synced.", "reason cause"),
            _warning("NoGroupSelected", "-", "The source has groups, and none of them is selected.", "total included"),
            EventKind("GroupRecovered", "group", "The group's offsets are translated again."),
            EventKind("GroupSynced", "group", "The group's offsets on the target moved.", "offsets"),
            _warning("GroupAhead", "group", "The group is further on the target, so consumers skip records.", "states"),
        ),
        "heartbeat": (EventKind("TopicCreated", "heartbeats topic", "The heartbeats topic is created.", "partitions"),),
        "every service": (
            _warning("InstanceRenamed", "instance", "Another process has the same instance name.", "taken"),
            _warning(
                "ClusterReplaced", "cluster", "Another cluster answers at the same address.", "cluster before now"
            ),
            _warning(
                "ControlTopicLost", "topic", "A control topic was deleted. It is created again.", "cluster topic_id"
            ),
            _warning(
                "ControlTopicCorrected",
                "topic",
                "A setting of a control topic was not as it has to be, and was changed.",
                "cluster setting before now",
            ),
            _warning(
                "ConfigRefused",
                "topic",
                "A cluster refuses configs of a control topic. It is created without them.",
                "cluster keys",
            ),
            EventKind(
                "TroublesReported",
                "instance",
                "What fails in this replica now, and how many records it passed over. "
                "It is written again while that lasts, and without troubles when it is over.",
                "troubles unreadable valid_ms",
            ),
            _warning("LeadChangesOften", "leader", "The lead changes often.", "times instances"),
            _warning(
                "ServiceFailed", "connector", "The service waits for the command `restart`.", "reason cause failures"
            ),
            _warning("CommandRefused", "the command's", "A command is not carried out.", "verb by reason cause"),
            *(
                EventKind(
                    answer, "the command's", "A command of this name is carried out.", f"verb by {detail}".strip()
                )
                for answer, detail in _ANSWERS.values()
            ),
        ),
    }
)

EVENT_KINDS: Mapping[str, EventKind] = MappingProxyType(
    {kind.name: kind for kinds in EVENTS_BY_SERVICE.values() for kind in kinds}
)
