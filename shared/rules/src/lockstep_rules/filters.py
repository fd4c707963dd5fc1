"""The selection of mirrored topics, groups and config properties (`mm2-behaviour.md` §2.3).

A list of patterns is one Java regular expression, its elements joined with `|`. It matches a name if it matches all of
it. An empty list matches nothing. What is excluded stays out, also if it is included.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, Protocol

from lockstep_rules.patterns.java_matcher import build_java_matcher
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.patterns.matcher import Matcher
from lockstep_rules.policy import ReplicationPolicy, is_cycle
from lockstep_rules.versions import find_rules
from lockstep_state.names import LOCKSTEP_PREFIX, OUR_GROUPS, Flow

_RULES = find_rules()

DEFAULT_TOPICS = (".*",)
DEFAULT_TOPICS_EXCLUDE = tuple(_RULES.topics_exclude.split(", "))
DEFAULT_GROUPS = (".*",)
DEFAULT_GROUPS_EXCLUDE = ("console-consumer-.*", "connect-.*", "__.*")
DEFAULT_CONFIG_PROPERTIES_EXCLUDE = tuple(_RULES.config_properties_exclude.split(", "))


class Names(Protocol):
    """The interface of a selection of names: a list of patterns (`NameFilter`), or a custom filter."""

    def matches(self, name: str) -> bool:
        """Return whether `name` is selected."""
        ...


class TopicFilter(Protocol):
    """Java's `TopicFilter`, for a custom class (`lockstep.topic.filter.class`)."""

    def should_replicate_topic(self, topic: str) -> bool:
        """Return whether a topic of the source is mirrored, and groups that read it are followed.

        Internal topics and those that would go in a cycle are left out besides.
        """
        ...


class GroupFilter(Protocol):
    """Java's `GroupFilter`, for a custom class (`lockstep.group.filter.class`)."""

    def should_replicate_group(self, group: str) -> bool:
        """Return whether the offsets of a group of the source are translated."""
        ...


class ConfigPropertyFilter(Protocol):
    """Java's `ConfigPropertyFilter`, for a custom class (`lockstep.config.property.filter.class`)."""

    def should_replicate_config_property(self, name: str) -> bool:
        """Return whether the property is copied if the source's topic sets it."""
        ...

    def should_replicate_source_default(self, name: str) -> bool:
        """Return whether the source's default of `name` is set on the target.

        A class without this method never sets one.
        """
        return False


@dataclass(frozen=True, slots=True)
class NameFilter:
    """The names that some pattern of `include` matches and none of `exclude`.

    It can be pickled. Raises UntranslatablePattern, which names the element at fault, for a pattern that cannot be
    used.
    """

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    _included: Matcher | None = field(init=False, repr=False, compare=False)
    _excluded: Matcher | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_included", _compiled(self.include))
        object.__setattr__(self, "_excluded", _compiled(self.exclude))

    def matches(self, name: str) -> bool:
        return _matches(self._included, name) and not _matches(self._excluded, name)


@dataclass(frozen=True, slots=True)
class ConfigPropertyExclude:
    """The topic config properties that are copied: all but those that `exclude` matches.

    `use_defaults_from` says whose default holds for a property that the source's topic leaves at its default.
    """

    exclude: tuple[str, ...] = DEFAULT_CONFIG_PROPERTIES_EXCLUDE
    use_defaults_from: Literal["source", "target"] = "target"
    _excluded: Matcher | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_excluded", _compiled(self.exclude))

    def should_replicate_config_property(self, name: str) -> bool:
        return not _matches(self._excluded, name)

    def should_replicate_source_default(self, name: str) -> bool:
        """Return whether the source's default of `name` is set on the target.

        MM2 answers the same for every property.
        """
        return self.use_defaults_from == "source"


def should_replicate_topic(
    topic: str,
    *,
    topics: Names,
    policy: ReplicationPolicy,
    flow: Flow,
    heartbeats_replicated: bool,
    also_source: bool = False,
    one_cluster: bool = False,
) -> bool:
    """Return whether `topic` of the flow's source is mirrored, by its name.

    `topic_plan.select_topics` decides by the topics of both clusters too. With `lockstep.cycles=exact` it selects more.
    For `also_source` and `one_cluster` see `visited_clusters`.
    """
    return passes_selection(
        topic, topics, policy, flow, heartbeats_replicated=heartbeats_replicated, one_cluster=one_cluster
    ) and not is_cycle(policy, topic, flow, also_source=also_source, one_cluster=one_cluster)


def passes_selection(
    topic: str, topics: Names, policy: ReplicationPolicy, flow: Flow, *, heartbeats_replicated: bool, one_cluster: bool
) -> bool:
    """Return whether `topic` is mirrored unless it is a copy from the target.

    Lockstep's own topics never are. On one cluster under two aliases a topic that keeps its name would be mirrored into
    itself, and is not. `should_replicate_topic` and `topic_plan.select_topics` both ask this function.
    """
    if topic.startswith(LOCKSTEP_PREFIX) or policy.is_internal_topic(topic):
        return False
    if one_cluster and policy.format_remote_topic(flow.source, topic) == topic:
        return False
    return topics.matches(topic) or (heartbeats_replicated and policy.is_heartbeats_topic(topic))


def should_replicate_group(group: str, groups: Names) -> bool:
    """Return whether `group` of the flow's source is followed, by its name. Lockstep's own groups never are."""
    return not group.startswith(OUR_GROUPS) and groups.matches(group)


def _compiled(patterns: tuple[str, ...]) -> Matcher | None:
    if not patterns:
        return None
    # Joined first, as in Java: a flag set in one element holds in the later ones.
    try:
        return _matcher("|".join(patterns))
    except UntranslatablePattern:
        for number, pattern in enumerate(patterns):
            try:
                _matcher(pattern)
            except UntranslatablePattern as exc:
                raise _named_comma(exc, patterns, number) from exc
        raise


def _named_comma(error: UntranslatablePattern, patterns: tuple[str, ...], number: int) -> UntranslatablePattern:
    """Return the refusal of an element. It names the comma if that has cut a pattern in two."""
    pattern, *rest = patterns[number : number + 2]
    try:
        _matcher(",".join([pattern, *rest]))
    except UntranslatablePattern:
        return error
    cut = f"a comma ends an element of a list, so {pattern + ',' + rest[0]!r} is cut into {pattern!r} and {rest[0]!r}"
    return UntranslatablePattern(pattern, f"{error.reason}; {cut}: write it without a comma, such as (x{{2}}|x{{3}})")


_matcher = lru_cache(maxsize=64)(build_java_matcher)


def _matches(pattern: Matcher | None, name: str) -> bool:
    return pattern is not None and bool(pattern.fullmatch(name))
