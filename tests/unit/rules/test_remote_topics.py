"""Clusters upstream by topic names. Numbers are those of MM2's own tests (`mm2-behaviour.md` §7)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy
from lockstep_rules.remote_topics import (
    checkpoints_among,
    count_hops,
    find_upstream_clusters,
    heartbeats_among,
    hops_of_topic,
    remote_among,
    upstream_sources,
)

DEFAULT = DefaultReplicationPolicy()
IDENTITY = IdentityReplicationPolicy("primary")


def test_mm2_005_008_heartbeats_topics_are_listed_local_and_remote() -> None:
    heartbeats = {"heartbeats", "source1.heartbeats", "source2.source1.heartbeats", "source3.heartbeats"}
    others = {"topic1", "heartbeats!", "!heartbeats", "source1heartbeats", "source1-heartbeats"}
    assert heartbeats_among(DEFAULT, heartbeats | others) == heartbeats


def test_mm2_006_009_checkpoints_topics_have_an_alias_in_front() -> None:
    checkpoints = {"source1.checkpoints.internal", "source2.checkpoints.internal"}
    others = {"topic1", "checkpoints.internal", "checkpoints-internal", "checkpoints.internal!"}
    others |= {"!checkpoints.internal", "source1checkpointsinternal"}
    assert checkpoints_among(DEFAULT, checkpoints | others) == checkpoints


@pytest.mark.parametrize(
    ("topic", "source", "count"),
    [
        ("topic", "source", None),
        ("source", "source", None),
        ("sourcetopic", "source", None),
        ("source1.topic", "source2", None),
        ("source1.topic", "source1", 1),
        ("source2.source1.topic", "source2", 1),
        ("source2.source1.topic", "source1", 2),
        ("source3.source2.source1.topic", "source1", 3),
        ("source3.source2.source1.topic", "source4", None),
    ],
)
def test_mm2_007_hops_are_counted_along_the_prefixes(topic: str, source: str, count: int | None) -> None:
    assert hops_of_topic(DEFAULT, topic, source) == count


def test_mm2_010_the_shortest_way_of_heartbeats_counts() -> None:
    topics = [
        *("topic1", "topic2", "heartbeats", "source1.heartbeats", "source1.source2.heartbeats", "source3.heartbeats"),
        *("source4.source3.heartbeats", "source4.source3.source5.heartbeats", "source6.topic1"),
    ]
    sources = ("source1", "source2", "source3", "source5", "source6", "source7")
    counts = [count_hops(DEFAULT, topics, source) for source in sources]
    assert counts == [1, 2, 1, 3, None, None], "source6.topic1 is no heartbeats topic and shows no mirror"


UPSTREAM_TOPICS = [
    *("topic1", "topic2", "heartbeats", "source1.heartbeats", "source1.source2.heartbeats"),
    *("source3.source4.source5.heartbeats", "source6.topic"),
]


@pytest.mark.parametrize("policy", [DEFAULT, IDENTITY], ids=["default", "identity"])
def test_mm2_011_012_every_alias_along_heartbeats_is_upstream(policy: ReplicationPolicy) -> None:
    """Also under the identity policy, which prefixes heartbeats all the same."""
    assert find_upstream_clusters(policy, UPSTREAM_TOPICS) == {"source1", "source2", "source3", "source4", "source5"}


def test_mm2_011_a_cluster_without_mirrored_heartbeats_has_no_upstream() -> None:
    assert find_upstream_clusters(DEFAULT, ["heartbeats", "topic1", "source6.topic"]) == frozenset()


def test_mm2_013_prefixed_topics_are_remote_plain_and_internal_are_not() -> None:
    remote = {"source1.topic4", "source1.source2.topic5", "source3.source4.source5.topic6"}
    others = {"topic1", "topic2", "topic3", "source1.checkpoints.internal", "__consumer_offsets", ".hidden.topic"}
    assert remote_among(DEFAULT, remote | others) == remote


def test_mm2_013_remote_topics_of_one_source_came_from_it_at_the_last_hop() -> None:
    topics = ["source1.topic4", "source1.source2.topic5", "source2.source1.topic6", "topic"]
    assert remote_among(DEFAULT, topics, "source1") == set(topics[:2])
    assert remote_among(DEFAULT, topics, "source9") == frozenset()


def test_mm2_014_identity_has_every_topic_remote_but_local_heartbeats() -> None:
    topics = {"topic1", "topic2", "heartbeats", "backup.heartbeats", "primary.checkpoints.internal"}
    assert remote_among(IDENTITY, topics) == {"topic1", "topic2", "backup.heartbeats"}
    assert remote_among(IdentityReplicationPolicy(), topics) == {"backup.heartbeats"}, (
        "without an alias, the source is unknown"
    )


def test_mm2_015_separator_decides_which_topics_are_remote() -> None:
    topics = {"topic1", "source1.topic2", "source1__topic4", "source1__source2__topic5"}
    assert remote_among(DefaultReplicationPolicy("__"), topics) == {"source1__topic4", "source1__source2__topic5"}


def test_a_policy_that_keeps_names_leads_to_an_end() -> None:
    """The source of such a topic is always the same one: it counts once."""
    assert list(upstream_sources(IDENTITY, "topic")) == ["primary"]
    assert hops_of_topic(IDENTITY, "topic", "elsewhere") is None


@given(st.lists(st.from_regex(r"[a-z0-9]{1,5}", fullmatch=True), min_size=1, max_size=6), st.sampled_from([".", "__"]))
def test_each_hop_of_a_chain_is_found_at_its_distance(aliases: list[str], separator: str) -> None:
    policy = DefaultReplicationPolicy(separator)
    topic = separator.join([*aliases, "heartbeats"])
    until_one_repeats = aliases[: next((n for n, alias in enumerate(aliases) if alias in aliases[:n]), len(aliases))]
    assert list(upstream_sources(policy, topic)) == until_one_repeats
    assert [count_hops(policy, [topic], alias) for alias in until_one_repeats] == list(
        range(1, len(until_one_repeats) + 1)
    )
    assert find_upstream_clusters(policy, [topic]) == set(until_one_repeats)
