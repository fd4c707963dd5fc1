"""A flow's filters and its replication policy: MM2's own, or the Python classes that the file names.

This module is pure but for the import of those classes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from lockstep_config.flow.identity_topology import literal_prefix
from lockstep_config.flow.reader import Reader
from lockstep_config.flow.transform_chain import TRANSFORMS, read_chain
from lockstep_config.keys.key_types import KeyLevel
from lockstep_config.keys.lockstep_keys import HEARTBEATS_TOPICS
from lockstep_config.keys.mm2_keys import IDENTITY_POLICIES, KEYS
from lockstep_config.keys.python_classes import (
    JAVA_KEYS,
    ClassFailed,
    PythonClass,
    PythonConfigProperties,
    PythonGroups,
    PythonPolicy,
    PythonTopics,
    read_own_keys,
)
from lockstep_config.keys.refused_classes import refused_class
from lockstep_config.resolve import precedence
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_config.text.values import BadValue
from lockstep_rules.filters import ConfigPropertyExclude, ConfigPropertyFilter, NameFilter, Names
from lockstep_rules.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    keeps_names,
)
from lockstep_rules.record_rules import RuleSelection
from lockstep_rules.renames import Rename
from lockstep_rules.topic_plan import RENAME_KEY
from lockstep_rules.versions import RuleSet
from lockstep_state.names import Flow

C = TypeVar("C", bound=PythonClass)


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of topics, groups and configs of a flow, its replication policy, and the rules for its records."""

    policy: ReplicationPolicy
    topics: Names
    groups: Names
    config_properties: ConfigPropertyFilter
    rules: RuleSelection


def read_filters(layers: Layers, reader: Reader, rules: RuleSet, findings: Diagnostics) -> Filters:
    """Return the filters of one flow. A class that cannot be used is a problem, and MM2's own replaces it."""
    separator: str = reader.value("replication.policy.separator")
    alias = precedence.aliases(layers, reader.flow).source
    internal = reader.value("replication.policy.internal.topic.separator.enabled") and rules.separator_in_internal
    aliases = precedence.every_alias(layers, reader.flow) if reader.value(HEARTBEATS_TOPICS) == "exact" else None
    arguments = {
        "source_alias": alias,
        "separator": separator,
        "internal_separator": internal,
        "narrow_internal": rules.narrow_internal,
    }
    policy = _user_class(PythonPolicy, "replication.policy.class", layers, reader, findings, arguments)
    chain = read_chain(layers, reader, findings)
    renames = chain.renames
    if policy is not None:
        _remark(policy, reader, alias, findings)
        if renames:
            entry = reader.entry(RENAME_KEY) or reader.entry(TRANSFORMS)
            class_key = JAVA_KEYS["replication.policy.class"]
            findings.problem(entry or RENAME_KEY, f"has no effect beside {class_key}: let that class name the topics")
    elif reader.value("replication.policy.class") not in IDENTITY_POLICIES:
        _check_prefixes(renames, alias, separator, layers, reader, findings)
    return Filters(
        policy=policy
        or (
            IdentityReplicationPolicy(alias, separator, internal, rules.narrow_internal, aliases, renames)
            if reader.value("replication.policy.class") in IDENTITY_POLICIES
            else DefaultReplicationPolicy(separator, internal, rules.narrow_internal, aliases, renames)
        ),
        topics=_user_class(PythonTopics, "topic.filter.class", layers, reader, findings)
        or _selection("topics", reader),
        groups=_user_class(PythonGroups, "group.filter.class", layers, reader, findings)
        or _selection("groups", reader),
        config_properties=_user_class(PythonConfigProperties, "config.property.filter.class", layers, reader, findings)
        or ConfigPropertyExclude(reader.value("config.properties.exclude").include, reader.value("use.defaults.from")),
        rules=chain.rules,
    )


def _selection(names: Literal["topics", "groups"], reader: Reader) -> NameFilter:
    return NameFilter(reader.value(names).include, reader.value(f"{names}.exclude").include)


def _user_class(
    kind: type[C],
    java: str,
    layers: Layers,
    reader: Reader,
    findings: Diagnostics,
    arguments: Mapping[str, Any] | None = None,
) -> C | None:
    entry = reader.entry(JAVA_KEYS[java])
    if kind is not PythonPolicy and not reader.value("enabled"):
        return None  # the flow has heartbeats only, and no filter applies to them
    if entry is None:
        java_entry = reader.entry(java)
        if java_entry and (refusal := refused_class(java_entry.value, KEYS[java])):
            findings.problem(java_entry, refusal)  # another flow has a Python class in its place, this one has none
        return None
    place = findings.place_of(entry)
    try:
        python_class = kind(
            entry.value.strip(), _properties(layers, reader.flow, read_own_keys(entry.value)), place, arguments or {}
        )
        python_class.validate()
    except (BadValue, ClassFailed) as exc:
        findings.problem(entry, str(exc).removeprefix(f"{place}: "))
        return None
    return python_class


def _remark(policy: PythonPolicy, reader: Reader, alias: str, findings: Diagnostics) -> None:
    """Note a policy that does not know its own topics.

    Without a producer id, only the name of a topic shows that it comes back.
    """
    entry = reader.entry(JAVA_KEYS["replication.policy.class"])
    if entry is None or keeps_names(policy, alias):
        return
    remote = policy.format_remote_topic(alias, "t")
    if policy.topic_source(remote) != alias:
        findings.note(
            entry,
            f"calls t of {alias} {remote}, and does not know that {remote} came from {alias} "
            "(topic_source). A topic that comes back through other flows is not recognised",
        )


def _check_prefixes(
    renames: Iterable[Rename], alias: str, separator: str, layers: Layers, reader: Reader, findings: Diagnostics
) -> None:
    """Report each rename that matches no name, because the replication policy puts the source's alias before it.

    A line for all flows may be about the names of another one.
    """
    own = layers.flow_lines(reader.flow).keys()
    is_own = RENAME_KEY in own or TRANSFORMS in own
    prefixes = [f"{name}{separator}" for name in ([alias] if is_own else precedence.every_alias(layers, reader.flow))]
    for rename in renames:
        literal, is_open = literal_prefix(rename.pattern)
        if not any(literal.startswith(prefix) or (is_open and prefix.startswith(literal)) for prefix in prefixes):
            findings.problem(
                reader.entry(RENAME_KEY) or reader.entry(TRANSFORMS) or RENAME_KEY,
                f"has {rename.pattern!r}, which matches no topic: a rename applies to the name on the target, and the "
                f"replication policy begins that with {f'{alias}{separator}'!r}. Write that before the pattern, or set "
                f"{reader.flow}.replication.policy.class={IDENTITY_POLICIES[0]}",
            )


def _properties(layers: Layers, flow: Flow, own_keys: Iterable[str]) -> dict[str, str]:
    """Return all of the connector's properties, as Connect hands them to a class that it configures.

    See `mm2-behaviour.md` §5.5.
    """
    of_connectors = {name for name, key in KEYS.items() if {KeyLevel.TOP, KeyLevel.FLOW} <= key.levels} | set(own_keys)
    properties = {key: cell.entry.value for key, cell in layers.top.items() if key in of_connectors}
    named_flow = precedence.aliases(layers, flow)
    for side, alias, name in (("source", flow.source, named_flow.source), ("target", flow.target, named_flow.target)):
        properties[f"{side}.cluster.alias"] = name
        for key, cell in precedence.connection(layers, alias).items():
            properties[f"{side}.cluster.{key}"] = cell.entry.value
        for key, cell in layers.cluster_lines(alias).items():
            if key.startswith(("consumer.", "producer.", "admin.")):
                properties[f"{side}.{key}"] = cell.entry.value
    return properties | {key: cell.entry.value for key, cell in layers.flow_lines(flow).items()}
