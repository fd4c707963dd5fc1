"""Checks that several lines of a flow agree. They are pure, and report to `Diagnostics`."""

from collections.abc import Iterator, Sequence

from lockstep_config.flow.identity_topology import may_share
from lockstep_config.flow.model import DataPlaneSettings, FlowSettings
from lockstep_config.flow.reader import Reader
from lockstep_config.flow.record_transforms import find_suggested_topic
from lockstep_config.flow.transform_chain import TRANSFORMS
from lockstep_config.keys.key_types import ALIAS_KEYS
from lockstep_config.keys.record_rules import FILTER_KEY, HEADERS_KEY
from lockstep_config.keys.spark_settings import MASTER, check_together
from lockstep_config.keys.transform_keys import PREFIX
from lockstep_config.resolve import precedence
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_config.text.properties import Entry
from lockstep_config.text.values import BadValue
from lockstep_rules.policy import ReplicationPolicy, is_cycle
from lockstep_state.names import TOPIC_CHARACTERS

SYNCS = "offset syncs"


def check_agreements(
    layers: Layers, reader: Reader, plane: DataPlaneSettings, policy: ReplicationPolicy, findings: Diagnostics
) -> None:
    """Check all lines of one flow against each other."""
    if plane.enabled:
        _check_offset_syncs(reader, findings)
        _check_checkpoints(reader, findings)
    _check_separator(reader, findings)
    _check_aliases(layers, reader, plane, policy, findings)
    _check_recompress(reader, plane, findings)
    _check_exactly_once(reader, plane, findings)
    _check_spark(layers, plane, findings)


def _check_recompress(reader: Reader, plane: DataPlaneSettings, findings: Diagnostics) -> None:
    entry = reader.entry("lockstep.recompress")
    if entry and plane.compression.recompress == "true" and plane.compression_type is None:
        findings.note(
            entry,
            f"is true, but no compression.type of the producer on {reader.flow.target} says into what: batches pass as "
            "they are",
        )


def _check_exactly_once(reader: Reader, plane: DataPlaneSettings, findings: Diagnostics) -> None:
    entry = reader.entry("exactly.once.support")
    if not (entry and plane.enabled and reader.value("exactly.once.support") == "required"):
        return
    missing_lines = []
    if not plane.exactly_once:
        missing_lines.append(f"{reader.flow.target}.exactly.once.source.support=enabled")
    if not plane.reads_committed:
        missing_lines.append(f"{reader.flow.source}.consumer.isolation.level=read_committed")
    if missing_lines:
        findings.problem(entry, f"is required, so {reader.flow} needs {' and '.join(missing_lines)}")


def _check_spark(layers: Layers, plane: DataPlaneSettings, findings: Diagnostics) -> None:
    try:
        check_together(plane.spark.master, plane.spark.conf)
    except BadValue as exc:
        findings.problem(layers.top[MASTER].entry, str(exc))


def _check_offset_syncs(reader: Reader, findings: Diagnostics) -> None:
    """Refuse a place for offset syncs if the flow writes none, by KIP-1031 (`mm2-behaviour.md` §5.2)."""
    if reader.value("emit.offset-syncs.enabled"):
        return
    for key in ("offset-syncs.topic.replication.factor", "offset-syncs.topic.location"):
        entry = reader.entry(key)
        if entry:
            findings.problem(
                entry, f"is set, but {reader.flow} writes no offset syncs (emit.offset-syncs.enabled=false)"
            )
    switch_line = reader.entry("emit.offset-syncs.enabled")
    if switch_line and reader.value("emit.checkpoints.enabled"):
        findings.note(
            switch_line, f"is false, so {reader.flow} has no checkpoints: set emit.checkpoints.enabled=false to say so"
        )


def _check_checkpoints(reader: Reader, findings: Diagnostics) -> None:
    """Note that a flow has no checkpoints.

    MM2 refuses a checkpoint connector that writes none (`mm2-behaviour.md` §7 no. 32). In Lockstep the rest of the
    flow goes on.
    """
    switch_line = reader.entry("emit.checkpoints.enabled")
    if switch_line is None or reader.value("emit.checkpoints.enabled"):
        return
    unmoved = " and moves no group, although sync.group.offsets.enabled is true"
    findings.note(
        switch_line,
        f"is false, so {reader.flow} has no checkpoints{unmoved if reader.value('sync.group.offsets.enabled') else ''}",
    )


def _check_separator(reader: Reader, findings: Diagnostics) -> None:
    entry = reader.entry("replication.policy.separator")
    if entry is not None:
        _check_part_of_name(entry, entry.value.strip(), findings)


def _check_part_of_name(entry: Entry, value: str, findings: Diagnostics) -> None:
    if TOPIC_CHARACTERS.issuperset(value):
        return
    quotes = "; quotes are part of a value here, and nothing behind = is empty" if value.strip("\"'") != value else ""
    findings.problem(
        entry, f"is {value!r}, which a topic's name cannot hold: use letters, digits, '.', '_', '-'{quotes}"
    )


def _check_aliases(
    layers: Layers, reader: Reader, plane: DataPlaneSettings, policy: ReplicationPolicy, findings: Diagnostics
) -> None:
    stated = [entry for key in ALIAS_KEYS if (entry := reader.entry(key)) is not None]
    for entry in stated:
        _check_part_of_name(entry, entry.value.strip(), findings)
    aliases = precedence.aliases(layers, reader.flow)
    if stated and plane.enabled and aliases.source == aliases.target and is_cycle(policy, "t", aliases):
        findings.problem(
            stated[-1],
            f"makes both aliases of {reader.flow} {aliases.target!r}. With a policy that keeps names each topic then "
            f"counts as one of the target's own, and MirrorMaker mirrors none. Remove {' and '.join(ALIAS_KEYS)}: "
            "the policy alone keeps the names",
        )


def check_shared_topics(layers: Layers, flows: Sequence[FlowSettings], findings: Diagnostics) -> None:
    """Refuse flows that keep offset syncs or checkpoints in one topic and may select the same topics.

    Two flows with an alias in common may share such a topic. Each would move groups by the other's positions, as in
    MM2.
    """
    writers: dict[tuple[str, str, str], FlowSettings] = {}
    for settings in flows:
        for content, cluster, topic, instead in _kept_in(settings):
            earlier = writers.setdefault((content, cluster, topic), settings)
            if earlier is settings or not _may_meet(earlier, settings, content):
                continue
            entry = Reader(layers, settings.flow).entry(ALIAS_KEYS[content == SYNCS])
            message = (
                f"lets {earlier.flow} and {settings.flow} both write their {content} to {topic} on {cluster}. Groups "
                f"of one would be moved by positions of the other: {instead}"
            )
            findings.problem(entry or ALIAS_KEYS[content == SYNCS], message)


def _kept_in(settings: FlowSettings) -> Iterator[tuple[str, str, str, str]]:
    """Yield each content that a flow keeps, its cluster, its topic, and how to move it to another topic."""
    if not settings.checkpoint.enabled:
        return
    flow, switch_off = settings.flow, f"or set {settings.flow}.emit.checkpoints.enabled=false"
    other_topics = "let the flows select different topics"
    other_alias = (
        f"give {flow} a {ALIAS_KEYS[1]} of its own" if settings.offset_syncs_cluster == flow.source else other_topics
    )
    yield SYNCS, settings.offset_syncs_cluster, settings.offset_syncs_topic, f"{other_alias}, {switch_off}"
    yield "checkpoints", flow.target, settings.checkpoints_topic, f"{other_topics} or groups, {switch_off}"


def _may_meet(earlier: FlowSettings, later: FlowSettings, content: str) -> bool:
    if earlier.aliases == earlier.flow and later.aliases == later.flow:
        return False
    return may_share(earlier.topics, later.topics) and (content == SYNCS or may_share(earlier.groups, later.groups))


def check_rules_beside_transforms(settings: FlowSettings, reader: Reader, findings: Diagnostics) -> None:
    """Report each transform that selects a topic for which rules of `lockstep.filter` or `lockstep.headers` hold."""
    entry = reader.entry(FILTER_KEY) or reader.entry(HEADERS_KEY) or reader.entry(TRANSFORMS)
    for transform in settings.data_plane.transforms:
        if topic := find_suggested_topic(transform.topics, lambda name: settings.record_rules(name) is not None):
            findings.problem(
                entry or FILTER_KEY,
                f"holds for {topic}, which {PREFIX}{transform.name}.topics selects: a topic has a transform or rules. "
                f"Limit the rules to other topics: `and not topic PATTERN` in {FILTER_KEY}, `if not topic PATTERN` in "
                f"{HEADERS_KEY}. The pattern is compared with the name on the target",
            )
