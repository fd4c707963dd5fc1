"""Every code of a `Reason`, and the sentence that people read for it.

The wording of a sentence may change at any time, since nothing decides from it. A code keeps its meaning for ever.
Codes of commands that are refused before they change anything are in `refusal_catalogue`.
"""

from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_code import TO_GRANT, CatalogueCode, format_sentence, is_known
from lockstep_state.reasons.refusal_catalogue import RefusalCode

__all__ = ["TO_GRANT", "ReasonCode", "RefusalCode", "format_sentence", "is_known", "read_reason"]


class ReasonCode(CatalogueCode):
    """The codes that say why something is as it is, in rows, events and answers."""

    UNKNOWN = ("unknown", "{text}", "An earlier release wrote only a text. It is shown, and means: not known.")

    REPORTED = ("reported", "{text}", "A cluster, a library or a service said so, in words of its own.")

    CLUSTER_UNREACHABLE = (
        "cluster-unreachable",
        "cluster {cluster} at {bootstrap} cannot be reached: {text}",
        "No broker of the cluster answers.",
        "Run `lockstep doctor FILE` where the services run ([connect](login-and-rights.md#connect)).",
    )

    NOT_PERMITTED = (
        "not-permitted",
        "cluster {cluster} does not permit {operation} on {resource}: {text}",
        "The command in the detail `grant` grants it.",
        "Run the command at the end of the sentence as an administrator of that cluster ([a right is "
        "missing](login-and-rights.md#a-right-is-missing)).",
    )

    REQUEST_REFUSED = (
        "request-refused",
        "cluster {cluster} refused to {operation} {resource}: {text}",
        "It did so with Kafka's error `error`.",
        "Look at Kafka's error in the sentence. A topic that the target refuses: [failed](topic-not-copied.md#failed).",
    )

    REQUEST_UNSUPPORTED = (
        "request-unsupported",
        "cluster {cluster} does not know the request to {operation} {resource}",
        "Its brokers do not have it, or close the connection when it comes. It is no missing right and no trouble.",
        "Nothing has to be done if you can do without. Else upgrade the brokers ([broker "
        "versions](../reference/broker-versions.md)).",
    )

    REQUEST_UNFIT = (
        "request-unfit",
        "cluster {cluster} and Lockstep have no version of the request {request} in common: broker {broker} knows "
        "{theirs}, and Lockstep {ours}",
        "A broker answers, and the slots cannot speak with it. Its details `theirs` and `ours` are words.",
        "Upgrade the brokers, or Lockstep ([broker versions](../reference/broker-versions.md)).",
    )

    APPENDS_UNSAFE = (
        "appends-unsafe",
        "cluster {cluster} {text}. It has no transactions either. Topics keep their names, so nothing would say "
        "which records are copies, and nothing is copied: let the copies have other names, or take another target",
        "A trial before the first record showed what the target does with producer ids.",
    )

    NO_REPLICA = (
        "no-replica",
        "no replica of it runs",
        "A service's group has no member: it does not run, or joins its group again.",
        "Start the service. `lockstep status FILE --services` names each one.",
    )

    REPLICAS_UNKNOWN = (
        "replicas-unknown",
        "its replicas are not known",
        "The target did not describe the service's group.",
        "Look whether the target answers, and whether the user may describe the group ([a right is "
        "missing](login-and-rights.md#a-right-is-missing)).",
    )

    RESTARTS_SPENT = (
        "restarts-spent",
        "failed {count} times and waits for the command restart: {text}",
        "",
        "Remove the cause that the sentence names, then `lockstep restart`.",
    )

    ENDED_BY_ITSELF = (
        "ended-by-itself",
        "it ended by itself",
        "A slot's task, which has no end of its own.",
        "Look at the log of the data plane ([a slot does not work](lag.md#a-slot-does-not-work)).",
    )

    GROUP_OCCUPIED = (
        "group-occupied",
        "{group} has {count} member(s): {members}; nothing is copied until they have left: stop that MirrorMaker, or"
        " whatever else reads as this group",
    )

    NO_CAUSE = ("no-cause", "{phase} without a reason", "A row says that something fails, and not why.")

    TARGET_REFUSES_OFFSETS = (
        "target-refuses-offsets",
        "the target does not take its offsets",
        "",
        "[Refused](group-not-synced.md#refused).",
    )

    # Why a slot fails, as `lockstep status` sees it.

    SLOT_SILENT = (
        "slot-silent",
        "it has said nothing for {silent}, by the clock of this machine: nothing of it is copied",
        "",
        "[A slot does not work](lag.md#a-slot-does-not-work).",
    )
    PART_FAILS = (
        "part-fails",
        "{what}: {text}",
        "",
        "Follow the message. A right is missing: [login and rights](login-and-rights.md).",
    )
    PARTS_FAIL = (
        "parts-fail",
        "{what}: {text}, and {more} more",
        "",
        "Follow the message. `lockstep status FILE --only trouble` has each.",
    )

    # Why a partition does not move although the source has more.

    NOT_ENOUGH_REPLICAS = (
        "not-enough-replicas",
        "NOT_ENOUGH_REPLICAS: {partition} has {in_sync} of {replicas} replicas in sync, min.insync.replicas is {least}",
        "The target acknowledges nothing until more replicas are in sync.",
        "Bring the brokers back that have the other replicas ([one partition does not "
        "move](lag.md#one-partition-does-not-move)).",
    )

    # Why a partition is halted. Each has the detail `case`, as `PartitionProgress`.

    COPY_CUT = (
        "copy-cut",
        "{text}; nothing is copied until somebody decides: see {key}",
        "The copy cannot go on where it was. What the clusters said is in `wanted`, `source_start` and so on.",
        "[Decide](halted-partition.md#decide).",
    )
    COPY_END_UNKNOWN = (
        "copy-end-unknown",
        "{text}; where the copy ends is not known until somebody decides",
        "The same of a partition that is to rest.",
        "[Decide](halted-partition.md#decide).",
    )
    COPY_END_LOST = (
        "copy-end-lost",
        "nothing says where the copy of {partition} ends: alter its offset",
        "",
        "[Set the offset](halted-partition.md#decide) with `lockstep offsets alter`.",
    )
    EPOCHS_SPENT = (
        "epochs-spent",
        "our producer id has no epoch left in {partition}",
        "",
        "See the case `in-doubt` of [a halted partition](halted-partition.md#the-cases).",
    )
    RECORDS_REFUSED = (
        "records-refused",
        "{text}",
        "They cannot be copied as they are, or a cluster refuses them. `first` and `last` are their source offsets.",
        "[The case `refused`](halted-partition.md#the-case-refused).",
    )

    RECORD_NOT_TRANSFORMED = (
        "record-not-transformed",
        "the transform {transform} cannot be evaluated for the record at offset {first}: {condition}{fragment}",
        "Nothing of the record is shown, because it may have what the transform removes.",
        "[A record cannot be transformed](halted-partition.md#a-record-cannot-be-transformed).",
    )
    TRANSFORM_UNAVAILABLE = (
        "transform-unavailable",
        "nothing evaluates the transform {transform}: {text}. No record is copied as it is",
        "The JVM of the slot does not evaluate transforms, has another version, or took too long.",
        "[The case `transform`](halted-partition.md#the-case-transform).",
    )

    # Why a partition is not compared.

    COPIED_BY_KEYS = (
        "copied-by-keys",
        "keys choose the partition of each record (lockstep.legacy.partitioning=key), so logs are no copies",
    )
    TOPIC_RECREATED = "topic-recreated", "topic {topic} was created anew on cluster {cluster}, and is not copied yet"

    # Why a command is not carried out. A cluster or a class that prevents it has its own code.

    COMMAND_REFUSED = ("command-refused", "{text}", "The command cannot be understood, or what it says does not fit.")
    NOT_FOR_SERVICE = "not-for-service", "{verb} {scope} is not for {service}, but for {services}"
    VERB_NOT_SERVED = "verb-not-served", "{service} cannot {verb} yet"
    NOT_STOPPED = "not-stopped", "the offsets of a {connector} are changed only while it is stopped: stop it first"
    NOT_RUNNING = ("not-running", "the {connector} is {wanted}", "", "Run `lockstep resume`, and ask again.")
    NOT_RESUMED = "not-resumed", "the {connector} is {wanted}: resume it"
    WORK_ENDED = "work-ended", "the work of the {connector} ended before the refresh was done: refresh again"
    STATED_IN_FILE = (
        "stated-in-file",
        "the {connector} is {wanted} by {key}: the file says so, which no command changes; remove the line, or write"
        " running, and start again",
    )
    TOPIC_NOT_MIRRORED = (
        "topic-not-mirrored",
        "no topic '{topic}' of the source is mirrored by this flow (topics go by their name on the source)",
        "",
        "Name the topic as on the source, or select it ([the topic is not "
        "listed](topic-not-copied.md#the-topic-is-not-listed)).",
    )
    PARTITION_BEYOND = (
        "partition-beyond",
        "topic '{topic}' has {partitions} partitions, from 0",
        "",
        "Name a partition that the topic has.",
    )
    SLOT_ABSENT = (
        "slot-absent",
        "the flow has no slot {slot}: there are {slots}",
        "",
        "Name a slot that `lockstep status FILE --slots` lists.",
    )
    NO_SLOT_YET = (
        "no-slot-yet",
        "the flow has no slot {slot}: it has none yet",
        "",
        "Wait until the data plane has started its slots: `lockstep status FILE --slots`.",
    )

    # Why a topic, or a part of it, is not mirrored.

    PARTITIONS_MISSING = (
        "partitions-missing",
        "{partitions}",
        "The target lacks the partitions from `first` to `last`.",
        "[Partitions are missing](topic-not-copied.md#partitions-are-missing).",
    )
    TARGET_LACKS_PARTITIONS = (
        "target-lacks-partitions",
        "the target has no such partitions",
        "",
        "[Partitions are missing](topic-not-copied.md#partitions-are-missing).",
    )

    TOPIC_CONFIGS = ("topic-configs", "its configs: {text}", "", "[Failed](topic-not-copied.md#failed).")

    # Why ACLs are not copied, and why a binding on the target is not ours.

    ACLS_NOT_READ = (
        "acls-not-read",
        "not looked yet",
        "",
        "Wait for the first round of acl-sync, or look whether a replica of it runs.",
    )
    NO_AUTHORIZER = (
        "no-authorizer",
        "cluster {cluster} has no authorizer, so there are no ACLs to keep in step (authorizer.class.name)",
    )
    ACLS_UNSUPPORTED = (
        "acls-unsupported",
        "cluster {cluster} does not know requests about ACLs, so there are no ACLs to keep in step",
    )
    ACLS_FROM_TOKENS = (
        "acls-from-tokens",
        "cluster {cluster} has no ACLs: it decides by OAuth tokens ({authorizer}), which cannot be copied. Let the"
        " issuer of the tokens grant the remote topics",
    )
    ACLS_REFUSED = ("acls-refused", "{text}", "The target refused some of them, for several reasons.")
    ACL_REFUSED = "acl-refused", "the target refused it"
    ACL_ABSENT = "acl-absent", "not on the target any more"
    ACL_REVOKED = "acl-revoked", "revoked on the source"

    CLASS_FAILED = (
        "class-failed",
        "{text}",
        "A class that the file names raised an error, or answered what makes no sense.",
        "Correct the class ([filters and names of your own](../guides/plug-in-classes.md)).",
    )

    CHECKPOINT_TOO_LONG = ("checkpoint-too-long", "{text}", "A name in it does not fit into MM2's format.")

    GROUPS_NOT_READ = (
        "groups-not-read",
        "the checkpoint service has not read them yet",
        "",
        "Wait for its first round. If it stays, look whether a replica of checkpoint runs.",
    )

    GROUP_GONE = (
        "group-gone",
        "it has no offsets in mirrored topics on the source any more",
        "",
        "Nothing has to be done. The group is shown for seven days.",
    )

    # Why the place of a group in a partition of the target is not known.

    NOTHING_COPIED = (
        "nothing-copied",
        "nothing is copied yet",
        "",
        "Wait. If the partition is halted, see [a halted partition](halted-partition.md).",
    )
    TARGET_RECREATED = (
        "target-recreated",
        "the topic was created anew on the target, and nothing is copied to it yet",
        "Earlier places are places in another log.",
        "Decide how the copy continues ([the cases](halted-partition.md#the-cases)).",
    )
    SOURCE_RECREATED = (
        "source-recreated",
        "the topic was created anew on the source, and nothing of it is copied yet",
        "",
        "Decide how the copy continues ([the cases](halted-partition.md#the-cases)).",
    )
    TOPIC_UNKNOWN = (
        "topic-unknown",
        "whether the topic is still the one that was copied is not known: topic-sync has no row of it",
        "",
        "Look whether a replica of topic-sync runs: `lockstep status FILE --services`.",
    )
    TARGET_NOT_FOUND = (
        "target-not-found",
        "whether the topic is still the one that was copied is not known: topic-sync did not find the target",
        "",
        "Look whether the target answers topic-sync: `lockstep status FILE --topics`.",
    )
    BEYOND_TARGET_END = (
        "beyond-target-end",
        "offset {offset} is beyond the end of the target's log, which is {end}",
        "",
        "Wait: the target lost records, or its log was created again ([waiting](group-not-synced.md#waiting)).",
    )
    BEYOND_SOURCE_END = (
        "beyond-source-end",
        "offset {offset} is beyond the end of the source's log, which is {end}",
        "Somebody has set it so, or the log was truncated. A place that follows from it would skip records to come.",
        "Set the group to an offset within the log of the source.",
    )
    SOURCE_END_UNKNOWN = (
        "source-end-unknown",
        "offset {offset} is beyond what is known of the source's log, and the source does not say where that ends",
        "",
        "Look whether the source answers ([login and rights](login-and-rights.md)).",
    )
    TARGET_END_UNKNOWN = (
        "target-end-unknown",
        "the end of the target's log is not known",
        "",
        "Look whether the topic is on the target, and whether that answers ([a topic that is not "
        "copied](topic-not-copied.md)).",
    )
    BEYOND_EXACT_OFFSET = (
        "beyond-exact-offset",
        "its checkpoint is {checkpoint}, beyond the exact offset {exact}; it goes back only when the group does",
        "It was right before the target was truncated or created anew.",
        "Wait until the group has passed the checkpoint.",
    )
    NO_OFFSET_SYNC = (
        "no-offset-sync",
        "no offset sync yet",
        "",
        "The data plane has not begun with the partition ([lag](lag.md)).",
    )
    OLDER_THAN_SYNCS = (
        "older-than-syncs",
        "offset {offset} is older than the oldest usable offset sync",
        "",
        "The group is far behind. Wait until it has read on.",
    )
    SYNCS_UNREADABLE = "syncs-unreadable", "{text}"
    FORWARD_UNKNOWN = (
        "forward-unknown",
        "its position is before the first one that the flow itself knows",
        "",
        "Wait until the group has read on ([waiting](group-not-synced.md#waiting)).",
    )
    WAITING_NOT_LISTED = (
        "waiting-not-listed",
        "{count} more partitions wait than its row lists, and this may be one of them",
        "The source was not asked by this process: it has the row of an earlier one.",
        "Bring the source back, so that checkpoint reads the group again.",
    )
    GROUP_NOT_PLACED = (
        "group-not-placed",
        "its row does not say that its checkpoints are right",
        "The same of a whole group.",
        "Look whether a replica of checkpoint runs and reaches the source.",
    )

    CONTESTED = (
        "contested",
        "the topic has records of another flow too ({flow}), and offset {offset} may skip some of them",
        "It is not moved there: the group would skip records that came from the other source.",
        "[Contested](group-not-synced.md#contested).",
    )
    CONTEST_UNKNOWN = (
        "contest-unknown",
        "whether another flow feeds the topic too is not known",
        "",
        "[Contested](group-not-synced.md#contested).",
    )
    TOPIC_ABSENT = (
        "topic-absent",
        "topic {topic} does not exist on cluster {cluster}",
        "",
        "Create the topic again, or see [a topic that is not copied](topic-not-copied.md).",
    )
    PARTITION_ABSENT = (
        "partition-absent",
        "topic {topic} has no such partition on cluster {cluster}",
        "",
        "[Partitions are missing](topic-not-copied.md#partitions-are-missing).",
    )
    TOPIC_WAS_ABSENT = (
        "topic-was-absent",
        "topic {topic} was not there on cluster {cluster} a moment ago",
        "",
        "Wait for the next round.",
    )

    # The same, if records of the source came from the target: the flow in the opposite direction knows.

    OPPOSITE_UNREADABLE = "opposite-unreadable", "{text}"
    OPPOSITE_MISSING = (
        "opposite-missing",
        "its records come from the target, and no flow from there to here knows their offsets",
        "",
        "Set `lockstep.checkpoint.opposite` ([groups that come "
        "back](../guides/consumer-groups.md#groups-that-come-back)).",
    )
    OPPOSITE_NOT_BEGUN = (
        "opposite-not-begun",
        "the flow in the opposite direction has not begun with it",
        "",
        "Look at the flow in the opposite direction: `lockstep status` with its file.",
    )
    OPPOSITE_COPIED_NOTHING = (
        "opposite-copied-nothing",
        "the flow in the opposite direction has copied nothing yet",
        "",
        "Look at the flow in the opposite direction: `lockstep status` with its file.",
    )
    OPPOSITE_UNKNOWN = (
        "opposite-unknown",
        "its position is before the first one that the flow in the opposite direction knows",
        "",
        "Wait until the group has read on ([groups that come "
        "back](../guides/consumer-groups.md#groups-that-come-back)).",
    )
    OPPOSITE_TARGET_RECREATED = (
        "opposite-target-recreated",
        "the topic was created anew on the target, and the flow in the opposite direction has copied nothing of it yet",
        "",
        "Decide how the copy of that flow continues ([the cases](halted-partition.md#the-cases)).",
    )
    OPPOSITE_SOURCE_RECREATED = (
        "opposite-source-recreated",
        "the topic was created anew on the source, and the flow in the opposite direction has copied nothing to it yet",
        "",
        "Decide how the copy of that flow continues ([the cases](halted-partition.md#the-cases)).",
    )

    # Why consumers of the group that move to the target would skip records.

    AHEAD = (
        "ahead",
        "its offset on the target is beyond the translated one",
        "",
        "[Ahead on the target, rewound on the source](group-not-synced.md#ahead-on-the-target-rewound-on-the-source).",
    )
    REWOUND = (
        "rewound",
        "it went back on the source, and its offset on the target is still the earlier one",
        "",
        "[Ahead on the target, rewound on the source](group-not-synced.md#ahead-on-the-target-rewound-on-the-source).",
    )

    # Why the group of the target is left as it is.

    TARGET_GROUP_FIRST_READ = (
        "target-group-first-read",
        "read for the first time",
        "",
        "Wait for the next round: a group is committed for after two checks.",
    )
    TARGET_GROUP_ACTIVE = (
        "target-group-active",
        "it has members on the target",
        "",
        "[In use on the target](group-not-synced.md#in-use-on-the-target).",
    )
    TARGET_GROUP_WAS_ACTIVE = (
        "target-group-was-active",
        "it had members on the target a moment ago",
        "",
        "Wait. If it stays, see [in use on the target](group-not-synced.md#in-use-on-the-target).",
    )
    TARGET_GROUP_MOVED = (
        "target-group-moved",
        "its offsets on the target changed a moment ago",
        "",
        "Wait. If it stays, something else commits for this group: find it.",
    )


def read_reason(cause: Reason, text: str) -> Reason:
    """Return the reason of a row that has both fields, `cause` and the text.

    An earlier release wrote a text without a cause. That is `unknown` with the text, and decides nothing.
    """
    return cause if cause or not text else ReasonCode.UNKNOWN.to_reason(text=text)
