"""Names of remote and internal topics, and cycles (`mm2-behaviour.md` §2.1, §2.2)."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    is_cycle,
)
from lockstep_state.names import Flow

DEFAULT = DefaultReplicationPolicy()
FLOW = Flow("source", "target")
names = st.text("abA._-", max_size=12)


def test_mm2_001_internal_topics_are_known_by_name() -> None:
    for topic in ("__consumer_offsets", ".hiddentopic", "mm2-offsets.CLUSTER.internal", "A.checkpoints.internal"):
        assert DEFAULT.is_internal_topic(topic), topic
    for topic in ("mm2-offsets_CLUSTER_internal", "foo.internal", "foo-internal", "_t", "mm2", "heartbeats"):
        assert not DEFAULT.is_internal_topic(topic), topic


@pytest.mark.parametrize("policy", [DefaultReplicationPolicy, lambda s, i: IdentityReplicationPolicy("A", s, i)])
def test_mm2_002_003_004_internal_topics_have_the_separator_by_default(
    policy: type[DefaultReplicationPolicy],
) -> None:
    dotted, custom = policy("__", False), policy("__", True)
    assert dotted.offset_syncs_topic("CLUSTER") == "mm2-offset-syncs.CLUSTER.internal"
    assert custom.offset_syncs_topic("CLUSTER") == "mm2-offset-syncs__CLUSTER__internal"
    assert dotted.checkpoints_topic("CLUSTER") == "CLUSTER.checkpoints.internal"
    assert custom.checkpoints_topic("CLUSTER") == "CLUSTER__checkpoints__internal"
    assert dotted.heartbeats_topic() == custom.heartbeats_topic() == "heartbeats"
    assert dotted.is_mm2_internal_topic("mm2-offsets.A.internal")
    assert custom.is_mm2_internal_topic("mm2-offsets__A__internal")
    assert not custom.is_mm2_internal_topic("mm2-offsets.A.internal")


def test_mm2_005_heartbeats_are_known_at_every_hop() -> None:
    for topic in ("heartbeats", "source1.heartbeats", "source2.source1.heartbeats"):
        assert DEFAULT.is_heartbeats_topic(topic), topic
    for topic in ("heartbeats!", "!heartbeats", "source1heartbeats", "source1-heartbeats"):
        assert not DEFAULT.is_heartbeats_topic(topic), topic


def test_mm2_006_checkpoints_topics_need_an_alias() -> None:
    for topic in ("source1.checkpoints.internal", "source2.source1.checkpoints.internal"):
        assert DEFAULT.is_checkpoints_topic(topic), topic
    for topic in ("checkpoints.internal", "checkpoints-internal", "checkpoints.internal!", "!checkpoints.internal"):
        assert not DEFAULT.is_checkpoints_topic(topic), topic


@pytest.mark.parametrize("separator", [".", "__"])
def test_mm2_013_015_prefixed_topics_are_remote_and_plain_ones_are_not(separator: str) -> None:
    policy = DefaultReplicationPolicy(separator)
    remote = policy.format_remote_topic("source1", policy.format_remote_topic("source2", "topic3"))
    assert remote == f"source1{separator}source2{separator}topic3"
    assert policy.topic_source(remote) == "source1"
    assert policy.upstream_topic(remote) == f"source2{separator}topic3"
    assert policy.original_topic(remote) == "topic3"
    assert policy.topic_source("topic1") is None
    assert policy.upstream_topic("topic1") is None
    assert policy.original_topic("topic1") == "topic1"


@pytest.mark.parametrize(
    ("topic", "source", "upstream"),
    [
        ("A.", None, None),
        ("A..", None, None),
        (".", None, None),
        ("", None, None),
        (".b", "", "b"),
        ("a..b", "a", ".b"),
        ("A.t.", "A", "t."),
        ("foo.bar", "foo", "bar"),
    ],
)
def test_names_are_split_as_java_splits_them(topic: str, source: str | None, upstream: str | None) -> None:
    assert DEFAULT.topic_source(topic) == source
    assert DEFAULT.upstream_topic(topic) == upstream


@given(st.text("abA_-", min_size=1), st.text("abA._-", min_size=1).filter(lambda t: t.strip(".")))
def test_a_remote_topic_leads_back_to_where_it_came_from(alias: str, topic: str) -> None:
    remote = DEFAULT.format_remote_topic(alias, topic)
    assert (DEFAULT.topic_source(remote), DEFAULT.upstream_topic(remote)) == (alias, topic)


@given(names)
def test_the_original_of_the_original_is_itself(topic: str) -> None:
    for policy in (DEFAULT, DefaultReplicationPolicy("__"), IdentityReplicationPolicy("A")):
        original = policy.original_topic(topic)
        assert policy.original_topic(original) == original


def test_mm2_014_identity_makes_every_topic_remote_but_local_heartbeats() -> None:
    policy = IdentityReplicationPolicy("primary")
    assert policy.topic_source("topic1") == "primary"
    assert policy.topic_source("heartbeats") is None
    assert policy.topic_source("backup.heartbeats") == "backup"
    assert policy.is_heartbeats_topic("backup.primary.heartbeats")


def test_mm2_016_identity_keeps_names_and_prefixes_heartbeats() -> None:
    policy = IdentityReplicationPolicy("primary")
    assert policy.format_remote_topic("primary", "some.topic") == "some.topic"
    assert policy.upstream_topic("some.topic") == policy.original_topic("some.topic") == "some.topic"
    assert policy.format_remote_topic("primary", "heartbeats") == "primary.heartbeats"
    assert policy.upstream_topic("primary.heartbeats") == "heartbeats"
    assert IdentityReplicationPolicy().topic_source("t") is None


def test_mm2_115_default_refuses_topics_that_have_been_on_either_cluster() -> None:
    """With the rule of MM2 4.4."""
    for topic in ("target.topic1", "target.source.topic1", "other.target.topic1", "source.topic1", "other.source.t"):
        assert is_cycle(DEFAULT, topic, FLOW, also_source=True), topic
    for topic in ("topic1", "other.topic1", "other.another.topic1", "source-topic", "target"):
        assert not is_cycle(DEFAULT, topic, FLOW, also_source=True), topic


def test_an_alias_that_holds_the_separator_closes_a_cycle_too() -> None:
    """MM2 takes `cluster-1-t` for a topic of `cluster`, and mirrors it back."""
    policy, flow = DefaultReplicationPolicy("-"), Flow("cluster-2", "cluster-1")
    for topic in ("cluster-1-t", "cluster-2-cluster-1-t", "x-cluster-1-t"):
        assert is_cycle(policy, topic, flow), topic
    for topic in ("t", "cluster-1", "cluster-10-t", "cluster-2-t", "mycluster-1-t", "t-cluster-1"):
        assert not is_cycle(policy, topic, flow), topic
    assert is_cycle(policy, "cluster-2-t", flow, also_source=True)


def test_mm2_115_cycle_before_4_4_is_closed_by_the_target_only() -> None:
    assert not is_cycle(DEFAULT, "source.topic1", FLOW)
    assert is_cycle(DEFAULT, "source.target.topic1", FLOW)


def test_mm2_115_116_identity_sees_cycles_of_heartbeats_only() -> None:
    policy = IdentityReplicationPolicy("source")
    for also_source in (False, True):
        for topic in (
            "topic1",
            "target.topic1",
            "source.topic1",
            "heartbeats",
            "other.heartbeats",
            "source.heartbeats",
        ):
            assert not is_cycle(policy, topic, FLOW, also_source=also_source), topic
        for topic in ("target.heartbeats", "other.target.heartbeats"):
            assert is_cycle(policy, topic, FLOW, also_source=also_source), topic


def test_mm2_128_policy_without_upstream_topic_makes_no_cycle() -> None:

    class Forgetful(DefaultReplicationPolicy):
        def upstream_topic(self, topic: str) -> str | None:
            return None

    assert not is_cycle(Forgetful(), "other.topic1", FLOW)


def test_empty_separator_splits_names_as_java_does() -> None:
    policy = IdentityReplicationPolicy("us", "")
    assert policy.format_remote_topic("us", "heartbeats") == "usheartbeats"
    assert (policy.topic_source("usheartbeats"), policy.upstream_topic("usheartbeats")) == ("u", "sheartbeats")
    assert policy.offset_syncs_topic("eu") == "mm2-offset-syncseuinternal"
    assert policy.checkpoints_topic("us") == "uscheckpointsinternal"
    assert (policy.topic_source("orders"), policy.upstream_topic("orders")) == ("us", "orders")


def test_an_empty_separator_closes_no_cycle_but_that_of_heartbeats() -> None:
    policy, flow = IdentityReplicationPolicy("us", ""), Flow("us", "eu")
    for topic in ("orders", "eu", "neutral", "heartbeats", "usheartbeats"):
        assert not is_cycle(policy, topic, flow), topic
    for topic in ("euheartbeats", "useuheartbeats"):
        assert is_cycle(policy, topic, flow), topic


def test_alias_in_a_name_means_nothing_under_identity() -> None:
    policy, flow = IdentityReplicationPolicy("cluster-2", "-"), Flow("cluster-2", "cluster-1")
    assert not is_cycle(policy, "x-cluster-1-orders", flow)
    assert is_cycle(policy, "cluster-1-heartbeats", flow)


@pytest.mark.parametrize("policy", [DefaultReplicationPolicy("_"), IdentityReplicationPolicy("A", "_", False)])
def test_policies_are_values_that_travel(policy: ReplicationPolicy) -> None:
    assert pickle.loads(pickle.dumps(policy)) == policy  # noqa: S301 - the bytes are ours
