"""Filters of topics, groups and config properties (`mm2-behaviour.md` §2.3)."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules import filters
from lockstep_rules.filters import ConfigPropertyExclude, NameFilter, should_replicate_topic
from lockstep_rules.patterns.java_regex.tokens import UntranslatablePattern
from lockstep_rules.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy
from lockstep_state.names import Flow

FLOW = Flow("source", "target")
EVERYTHING = NameFilter((".*",))
NOTHING = NameFilter(())


def replicated(
    topic: str,
    topics: NameFilter = EVERYTHING,
    policy: ReplicationPolicy | None = None,
    *,
    heartbeats: bool = True,
    also_source: bool = False,
) -> bool:
    return should_replicate_topic(
        topic,
        topics=topics,
        policy=policy or DefaultReplicationPolicy(),
        flow=FLOW,
        heartbeats_replicated=heartbeats,
        also_source=also_source,
    )


def test_mm2_028_102_a_name_matches_as_a_whole() -> None:
    name_filter = NameFilter(("topic1",))
    assert name_filter.matches("topic1")
    assert not any(name_filter.matches(name) for name in ("topic2", "topic11", "atopic1", "topic1\n", ""))


@given(st.text())
def test_mm2_104_an_empty_list_matches_nothing(name: str) -> None:
    """Nor does it exclude anything."""
    assert not NOTHING.matches(name)
    assert NameFilter(("(?s).*",), ()).matches(name)


@given(st.text("abcXYZ019._-"))
def test_mm2_105_dot_star_matches_every_topic(name: str) -> None:
    assert EVERYTHING.matches(name)


def test_mm2_106_each_element_of_a_list_is_an_alternative() -> None:
    several = NameFilter(("topic1", "topic2.*", "x|y"))
    assert all(several.matches(name) for name in ("topic1", "topic2", "topic22", "x", "y"))
    assert not any(several.matches(name) for name in ("topic3", "topic12", "topic1x", "xy"))


def test_excluded_name_that_is_included_too_does_not_match() -> None:
    name_filter = NameFilter(("topic.*",), ("topic2", ".*3"))
    assert [n for n in ("topic1", "topic2", "topic3", "topic4") if name_filter.matches(n)] == ["topic1", "topic4"]


def test_a_flag_set_in_one_element_holds_in_the_later_ones_as_in_java() -> None:
    flagged = NameFilter(("a", "(?i)b", "c"))
    assert [n for n in "aAbBcC" if flagged.matches(n)] == ["a", "b", "B", "c", "C"]


def test_a_bad_element_is_named_alone() -> None:
    with pytest.raises(UntranslatablePattern) as caught:
        NameFilter(("good.*", "(bad"))
    assert str(caught.value) == "regular expression '(bad': a ( without its ), at character 4"
    with pytest.raises(UntranslatablePattern, match="has nothing to repeat"):
        NameFilter(("good",), ("*.replica",))


def test_the_same_filter_comes_out_of_a_pickle() -> None:
    name_filter = NameFilter(("topic.*",), ("topic2",))
    copy = pickle.loads(pickle.dumps(name_filter))  # noqa: S301 - the bytes are ours
    assert copy == name_filter
    assert hash(copy) == hash(name_filter)
    assert copy.matches("topic1")
    assert not copy.matches("topic2")
    properties = ConfigPropertyExclude(("a.*",), "source")
    assert pickle.loads(pickle.dumps(properties)) == properties  # noqa: S301 - the bytes are ours


def test_the_defaults_are_mm2s_verbatim() -> None:
    assert ", ".join(filters.DEFAULT_TOPICS) == ", ".join(filters.DEFAULT_GROUPS) == ".*"
    assert ", ".join(filters.DEFAULT_TOPICS_EXCLUDE) == r"mm2.*\.internal, .*\.replica, __.*"
    assert ", ".join(filters.DEFAULT_GROUPS_EXCLUDE) == "console-consumer-.*, connect-.*, __.*"
    assert ", ".join(filters.DEFAULT_CONFIG_PROPERTIES_EXCLUDE) == (
        "follower.replication.throttled.replicas, leader.replication.throttled.replicas, "
        "message.timestamp.difference.max.ms, log.message.timestamp.before.max.ms, "
        "log.message.timestamp.after.max.ms, message.timestamp.type, unclean.leader.election.enable, "
        "min.insync.replicas"
    )


def test_mm2_103_excluded_properties_stay_behind() -> None:
    by_default = ConfigPropertyExclude()
    assert not by_default.should_replicate_config_property("min.insync.replicas")
    assert by_default.should_replicate_config_property("cleanup.policy")
    chosen = ConfigPropertyExclude(("property2", r"pre\..*"))
    assert chosen.should_replicate_config_property("property1")
    assert chosen.should_replicate_config_property("min.insync.replicas")
    assert not chosen.should_replicate_config_property("property2")
    assert not chosen.should_replicate_config_property("pre.fix")
    assert ConfigPropertyExclude(()).should_replicate_config_property("anything")


def test_defaults_come_from_the_side_that_is_chosen() -> None:
    assert not ConfigPropertyExclude().should_replicate_source_default("retention.ms")
    assert ConfigPropertyExclude(use_defaults_from="source").should_replicate_source_default("retention.ms")


UNDERSCORE = DefaultReplicationPolicy("_")
NAMES_HEARTBEATS = NameFilter(("heartbeats", r"us-west\.heartbeats"))


@pytest.mark.parametrize(
    ("topics", "policy", "heartbeats", "topic", "expected"),
    [
        *((EVERYTHING, None, True, topic, True) for topic in ("heartbeats", "us-west.heartbeats")),
        *((NOTHING, None, True, topic, True) for topic in ("heartbeats", "us-west.heartbeats")),
        *((NOTHING, UNDERSCORE, True, topic, True) for topic in ("heartbeats", "us-west_heartbeats")),
        (NOTHING, UNDERSCORE, True, "us-west.heartbeats", False),
        *((NOTHING, None, False, topic, False) for topic in ("heartbeats", "us-west.heartbeats")),
        *((NAMES_HEARTBEATS, None, False, topic, True) for topic in ("heartbeats", "us-west.heartbeats")),
    ],
)
def test_mm2_111_112_113_114_heartbeats_pass_by_setting_or_filter(
    topics: NameFilter, policy: ReplicationPolicy | None, heartbeats: bool, topic: str, expected: bool
) -> None:
    assert replicated(topic, topics, policy, heartbeats=heartbeats) is expected


def test_mm2_115_cycles_are_not_replicated() -> None:
    for topic in ("target.topic1", "target.source.topic1", "source.topic1"):
        assert not replicated(topic, also_source=True), topic
        assert replicated(topic, policy=IdentityReplicationPolicy("source"), also_source=True), topic
    assert replicated("source.topic1")
    assert replicated("other.topic1", also_source=True)


def test_mm2_116_identity_brings_only_heartbeats_home() -> None:
    policy = IdentityReplicationPolicy("source")
    for topic in ("target.topic1", "topic1", "source.topic1", "heartbeats", "other.heartbeats"):
        assert replicated(topic, policy=policy), topic
    for topic in ("target.heartbeats", "other.target.heartbeats"):
        assert not replicated(topic, policy=policy), topic


def test_internal_topics_are_never_replicated() -> None:
    for topic in ("__consumer_offsets", ".hidden", "mm2-offsets.A.internal", "A.checkpoints.internal"):
        assert not replicated(topic), topic


def test_control_topics_are_never_replicated_with_any_separator() -> None:
    underscore = DefaultReplicationPolicy("_")
    assert not underscore.is_internal_topic("mm2-lockstep-state.A.internal")
    assert not replicated("mm2-lockstep-state.A.internal", policy=underscore)
    assert not replicated("mm2-lockstep-west-state.A.internal", policy=IdentityReplicationPolicy("A", "_"))


@pytest.mark.parametrize(
    ("patterns", "whole"),
    [(("orders-[0-9]{2", "4}"), "orders-[0-9]{2,4}"), (("payments", "(ab){1", "}c"), "(ab){1,}c")],
)
def test_pattern_that_a_comma_cuts_is_refused_with_the_comma(patterns: tuple[str, ...], whole: str) -> None:
    with pytest.raises(UntranslatablePattern, match="a comma ends an element of a list") as refusal:
        NameFilter(patterns)
    assert repr(whole) in str(refusal.value)


def test_pattern_that_is_wrong_by_itself_is_refused_without_a_comma() -> None:
    for patterns in (("a[b",), ("a[b", "c"), ("x", "(a")):
        with pytest.raises(UntranslatablePattern) as refusal:
            NameFilter(patterns)
        assert "comma" not in str(refusal.value)
