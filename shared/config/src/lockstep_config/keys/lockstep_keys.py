"""Lockstep's own properties, `lockstep.*`: type, default, meaning, where each is allowed."""

from lockstep_config.keys.key_types import TOP_ONLY, Key, ValueKind, flag, interval, replication
from lockstep_config.keys.key_values import field_keys
from lockstep_config.keys.lockstep_settings import CopySettings, SwitchSettings, VerifySettings
from lockstep_config.keys.log_levels import CLIENTS, LEVEL_KEY, LEVELS, LOGGING_FILE_KEY
from lockstep_config.keys.python_classes import PYTHON_KEYS
from lockstep_config.keys.record_rules import FILTER_KEY, HEADERS_KEY, parse_filter, parse_headers
from lockstep_config.keys.spark_settings import MASTER, parse_master
from lockstep_config.keys.topic_renames import parse_renames
from lockstep_config.keys.transform_keys import THREADS
from lockstep_config.text.values import BadValue, choice, version
from lockstep_rules.topic_plan import RENAME_KEY
from lockstep_rules.versions import DEFAULT_VERSION
from lockstep_state.commands.command_vocabulary import SERVICES

MM2_VERSION = "lockstep.mm2.version"
STATE = "lockstep.state"
CYCLES = "lockstep.cycles"
HEARTBEATS_TOPICS = "lockstep.heartbeats.topics"
TRACING = "lockstep.tracing"
UNKNOWN_KEYS = "lockstep.unknown.keys"
LEGACY_GROUP = "lockstep.legacy.group"
LEGACY_PARTITIONING = "lockstep.legacy.partitioning"
LEGACY_ABORT = "lockstep.legacy.abort.on.send.failure"
LEGACY_COMMIT_EVERY = "lockstep.legacy.offset.commit.interval.ms"


def _group(text: str) -> str:
    if not text.strip():
        raise BadValue("is missing: name the consumer group whose positions on the source count, MirrorMaker 1's")
    return text.strip()


def _fence(text: str) -> str:
    if text.strip().lower() == "marker":
        raise BadValue(
            f"is {text.strip()!r}, which was removed: transactions cost 4 to 9 % and close the window that the marker "
            "only narrows. Set exactly.once.source.support=enabled instead (docs/guides/transactions.md), or remove "
            "this line"
        )
    return choice(text, ("chain",))


_INSTEAD = {
    "replication.policy.class": "how remote topics are named",
    "topic.filter.class": "which topics are mirrored",
    "group.filter.class": "which groups are followed",
    "config.property.filter.class": "which configs of a topic are copied",
}

LOCKSTEP_KEYS = (
    *(
        Key(name=name, kind=ValueKind.PYTHON_CLASS, meaning=f"a Python class that says {_INSTEAD[java]}")
        for name, java in PYTHON_KEYS.items()
    ),
    Key(
        name=MM2_VERSION,
        parse=version,
        default=DEFAULT_VERSION,
        meaning="the version of MirrorMaker 2 whose [rules](mm2-versions.md) hold",
    ),
    flag("lockstep.acls.prefixed", "false", "copy ACLs of prefixed patterns too, where every topic they can match is"),
    flag("lockstep.acls.groups", "false", "copy READ and DESCRIBE of the consumer groups that are mirrored too"),
    flag("lockstep.acls.delete", "false", "delete ACLs that Lockstep added and that the source revoked"),
    Key(
        name="lockstep.acls.delete.max",
        kind=ValueKind.INTEGER,
        default="10",
        minimum=1,
        meaning="ACLs deleted in one round at most; if more would be, none is",
    ),
    Key(
        name="lockstep.checkpoint.opposite",
        meaning="the state topic, on the source, of the flow in the opposite direction, by which groups fail back. "
        "Unset: of the file's own flow, if it has one",
    ),
    Key(
        name="lockstep.groups.on.rewind",
        default="keep",
        choices=("keep", "follow"),
        meaning="when a group goes back on the source (sync.group.offsets.enabled). keep: the target's group stays. "
        "follow: it is set back to the translated position once it has no members",
    ),
    Key(
        name="lockstep.progress.connector",
        default="MirrorSourceConnector",
        meaning="name of the source connector under which progress is kept in offset.storage.topic",
    ),
    Key(
        name=STATE,
        choices=("running", "paused", "stopped"),
        meaning="paused or stopped: it stays so as long as the file says it, and no command starts it. running is the "
        "same as not set: commands decide",
    ),
    flag("lockstep.auto.restart.enabled", "true", "start what failed again by itself; else it waits for a command"),
    Key(
        name="lockstep.auto.restart.max",
        kind=ValueKind.INTEGER,
        minimum=1,
        meaning="so many starts in a row that fail again; unset: no limit",
    ),
    replication(
        "lockstep.control.replication.factor", "offset.storage.replication.factor", "replicas of the control topics"
    ),
    *field_keys(CopySettings).values(),
    *field_keys(SwitchSettings).values(),
    *field_keys(VerifySettings).values(),
    Key(
        name="lockstep.recompress",
        default="auto",
        choices=("auto", "never", "true", "false"),
        meaning="which compressed batches are compressed anew. auto: those whose codec the target refuses. never, "
        "false: none. true: all get the producer's compression.type, which else only uncompressed ones get",
    ),
    Key(
        name="lockstep.provenance",
        choices=("local", "relay"),
        meaning="if topics keep their names. local: copy only what originated on the source. relay: everything but "
        "what originated on the target. Unset: local if the target feeds the source too, or another flow "
        "leads from the origin to the target directly. Else relay",
    ),
    Key(
        name=RENAME_KEY,
        parse=parse_renames,
        meaning="new names of topics on the target: PATTERN -> NAME, several between semicolons. The first Java "
        "regular expression that matches the whole name that the replication policy gives counts; $1 is its group 1",
    ),
    THREADS,
    Key(
        name=FILTER_KEY,
        parse=parse_filter,
        meaning="records that are not copied: CONDITION and CONDITION ..., several such rules between semicolons. A "
        "condition is header NAME, tombstone or topic PATTERN, or one of them behind not. NAME may end with *. PATTERN "
        "is a Java regular expression for the whole name that the replication policy gives a topic",
    ),
    Key(
        name=HEADERS_KEY,
        parse=parse_headers,
        meaning="changes of the headers of each record, in their order, between semicolons: drop NAME, or add "
        "NAME=VALUE. Behind one may be if, and conditions as in lockstep.filter. NAME behind drop may end with *",
    ),
    Key(
        name=UNKNOWN_KEYS,
        choices=("error", "warn"),
        levels=TOP_ONLY,
        meaning="a key that neither MirrorMaker nor Lockstep knows. error: it stops the start. warn: it is named and "
        "ignored. Unset: an error if it is a likely misspelling of a key that decides what is copied",
    ),
    Key(
        name=CYCLES,
        default="mm2",
        choices=("mm2", "exact"),
        meaning="which topics of the source are copies from the target. mm2: those whose names say so. exact: of these "
        "only those whose original is on the target",
    ),
    Key(
        name=HEARTBEATS_TOPICS,
        default="mm2",
        choices=("mm2", "exact"),
        meaning="which topics are heartbeats, which every policy renames. mm2: those whose names end so. exact: "
        "heartbeats itself and its copies by the aliases of the file",
    ),
    Key(
        name=TRACING,
        default="none",
        choices=("none", "opentelemetry"),
        levels=TOP_ONLY,
        meaning="opentelemetry: every service sends spans of its rounds, and slots of what they copy, to the collector "
        "that the OTEL_* environment variables name",
    ),
    Key(
        name=LEVEL_KEY,
        default="info",
        choices=tuple(LEVELS),
        levels=TOP_ONLY,
        meaning="how much services log, all or one, if they are started without --log-level",
    ),
    *(
        Key(
            name=f"{LEVEL_KEY}.{service}",
            choices=tuple(LEVELS),
            levels=TOP_ONLY,
            meaning=f"the same of {'the libraries that speak to brokers' if service == CLIENTS else service}",
        )
        for service in (*SERVICES, CLIENTS)
    ),
    Key(
        name=LOGGING_FILE_KEY,
        levels=TOP_ONLY,
        meaning="a log4j.properties or log4j2.properties, below --logging-dir, whose levels count where none is set "
        "here",
    ),
    Key(
        name=MASTER,
        parse=parse_master,
        levels=TOP_ONLY,
        meaning="where the slots of all flows run: local[CORES], spark://HOST:PORT or k8s://https://HOST:PORT; unset: "
        "on this machine, with a core for each slot",
    ),
    Key(
        name="lockstep.fence",
        parse=_fence,
        default="chain",
        choices=("chain",),
        meaning="how a slot that takes a partition over fences its previous slot: by the sequence numbers of appends; "
        "marker was removed, use exactly.once.source.support=enabled",
    ),
    Key(
        name=LEGACY_GROUP,
        parse=_group,
        meaning="makes the flow a legacy one, in the place of a MirrorMaker 1 of this group.id. Topics keep their "
        "names. Positions are kept as this group's on the source",
    ),
    Key(
        name=LEGACY_PARTITIONING,
        default="preserve",
        choices=("preserve", "key"),
        meaning="of a legacy flow. preserve: each record keeps its partition. key: it is chosen by the record's key "
        "among the target's partitions, as Java's producer does. The copy then uses transactions",
    ),
    flag(
        LEGACY_ABORT,
        "true",
        "of a legacy flow: end the process when the target refuses a record; false: quarantine it and go on",
    ),
    interval(
        LEGACY_COMMIT_EVERY,
        "60000",
        "of a legacy flow: how often the group's positions are committed on the source, milliseconds",
    ),
)
