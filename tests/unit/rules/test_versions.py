"""Rules that differ between MM2's versions (`mm2-versions.md`)."""

import pytest

from lockstep_rules.filters import DEFAULT_TOPICS, ConfigPropertyExclude, NameFilter, should_replicate_topic
from lockstep_rules.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from lockstep_rules.versions import DEFAULT_VERSION, RuleSet, UnknownVersion, find_rules
from lockstep_state.names import Flow

FLOW = Flow("A", "B")


def mirrored(topic: str, rules: RuleSet) -> bool:
    return should_replicate_topic(
        topic,
        topics=NameFilter(DEFAULT_TOPICS, tuple(rules.topics_exclude.split(", "))),
        policy=DefaultReplicationPolicy(narrow_internal=rules.narrow_internal),
        flow=FLOW,
        heartbeats_replicated=True,
        also_source=rules.cycle_by_source,
    )


@pytest.mark.parametrize(
    ("text", "version"), [("3.0", "3.0"), (" 3.9.1", "3.9"), ("4.0.0", "4.0"), ("4.4", "4.4"), (DEFAULT_VERSION, "4.3")]
)
def test_a_third_number_makes_no_difference(text: str, version: str) -> None:
    assert find_rules(text).version == version


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2.8", "known from 3.0 to 4.4"),
        ("4.5", "known from 3.0 to 4.4"),
        ("10.0", "known from"),
        ("4", "write it as 4.3"),
        ("v4.3", "write it as"),
        ("", "write it as"),
    ],
)
def test_a_version_whose_rules_are_not_known_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UnknownVersion, match=reason):
        find_rules(text)


@pytest.mark.parametrize(("version", "old"), [("3.0", True), ("3.9", True), ("4.0", False), ("4.4", False)])
@pytest.mark.parametrize("topic", ["foo.internal", "connect-configs-internal"])
def test_mm2_001_internal_suffixes_until_3_9_are_internal(version: str, old: bool, topic: str) -> None:
    rules = find_rules(version)
    for policy in (
        DefaultReplicationPolicy(narrow_internal=rules.narrow_internal),
        IdentityReplicationPolicy("A", narrow_internal=rules.narrow_internal),
    ):
        assert policy.is_internal_topic(topic) == old
    assert mirrored(topic, rules) != old


@pytest.mark.parametrize("version", ["3.0", "3.9", "4.0", "4.3", "4.4"])
def test_mm2_001_internal_topics_of_every_version(version: str) -> None:
    policy = DefaultReplicationPolicy(narrow_internal=find_rules(version).narrow_internal)
    for topic in ("mm2-offset-syncs.B.internal", "A.checkpoints.internal", "mm2-status.A.internal", "__x", ".x"):
        assert policy.is_internal_topic(topic)
    assert not policy.is_internal_topic("orders")


def test_mm2_002_old_rule_with_another_separator_matches_its_suffix() -> None:
    old, new = (DefaultReplicationPolicy("_", narrow_internal=narrow) for narrow in (False, True))
    assert old.is_mm2_internal_topic("foo_internal")
    assert not new.is_mm2_internal_topic("foo_internal")
    assert not old.is_mm2_internal_topic("foo.internal")
    assert old.is_internal_topic("foo.internal")


@pytest.mark.parametrize(("version", "goes"), [("4.3", True), ("4.4", False)])
def test_mm2_115_since_4_4_a_topic_that_was_on_the_source_is_a_cycle(version: str, goes: bool) -> None:
    rules = find_rules(version)
    assert mirrored("A.t", rules) == goes
    assert mirrored("C.A.t", rules) == goes
    assert not mirrored("B.t", rules)
    assert mirrored("C.t", rules)


@pytest.mark.parametrize(("version", "copied"), [("3.0", True), ("4.2", True), ("4.3", False), ("4.4", False)])
def test_mm2_103_config_excludes_have_two_more_since_4_3(version: str, copied: bool) -> None:
    configs = ConfigPropertyExclude(tuple(find_rules(version).config_properties_exclude.split(", ")))
    assert configs.should_replicate_config_property("log.message.timestamp.before.max.ms") == copied
    assert configs.should_replicate_config_property("log.message.timestamp.after.max.ms") == copied
    assert not configs.should_replicate_config_property("min.insync.replicas")
    assert configs.should_replicate_config_property("retention.ms")


def test_internal_topics_take_the_separator_since_3_1() -> None:
    assert not find_rules("3.0").separator_in_internal
    assert find_rules("3.1").separator_in_internal
