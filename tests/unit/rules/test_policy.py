"""Replication policies: names of remote and internal topics, and cycles (`mm2-behaviour.md` §2.1, §2.2)."""

import pickle
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    LegacyReplicationPolicy,
    ReplicationPolicy,
    hides_origin,
    is_cycle,
    without_renames,
)
from lockstep_rules.renames import Rename
from lockstep_state.names import Flow

DEFAULT = DefaultReplicationPolicy()
FLOW = Flow("source", "target")
names = st.text("abA._-", max_size=12)


@pytest.mark.parametrize("policy", [DefaultReplicationPolicy, lambda s, i: IdentityReplicationPolicy("A", s, i)])
def test_mm2_002_003_004_internal_topics_have_the_separator_by_default(policy: type[DefaultReplicationPolicy]) -> None:
    dotted, custom = policy("__", False), policy("__", True)
    assert dotted.offset_syncs_topic("CLUSTER") == "mm2-offset-syncs.CLUSTER.internal"
    assert custom.offset_syncs_topic("CLUSTER") == "mm2-offset-syncs__CLUSTER__internal"
    assert dotted.checkpoints_topic("CLUSTER") == "CLUSTER.checkpoints.internal"
    assert custom.checkpoints_topic("CLUSTER") == "CLUSTER__checkpoints__internal"
    assert dotted.heartbeats_topic() == custom.heartbeats_topic() == "heartbeats"
    assert dotted.is_mm2_internal_topic("mm2-offsets.A.internal")
    assert custom.is_mm2_internal_topic("mm2-offsets__A__internal")
    assert not custom.is_mm2_internal_topic("mm2-offsets.A.internal")


@pytest.mark.parametrize(
    ("is_of_kind", "topics", "others"),
    [
        pytest.param(
            DEFAULT.is_internal_topic,
            ("__consumer_offsets", ".hiddentopic", "mm2-offsets.CLUSTER.internal", "A.checkpoints.internal"),
            ("mm2-offsets_CLUSTER_internal", "foo.internal", "foo-internal", "_t", "mm2", "heartbeats"),
            id="mm2-001",
        ),
        pytest.param(
            DEFAULT.is_heartbeats_topic,
            ("heartbeats", "source1.heartbeats", "source2.source1.heartbeats"),
            ("heartbeats!", "!heartbeats", "source1heartbeats", "source1-heartbeats"),
            id="mm2-005",
        ),
        pytest.param(
            DEFAULT.is_checkpoints_topic,
            ("source1.checkpoints.internal", "source2.source1.checkpoints.internal"),
            ("checkpoints.internal", "checkpoints-internal", "checkpoints.internal!", "!checkpoints.internal"),
            id="mm2-006",
        ),
    ],
)
def test_mm2_001_005_006_topic_of_a_kind_is_known_by_its_name(
    is_of_kind: Callable[[str], bool], topics: tuple[str, ...], others: tuple[str, ...]
) -> None:
    assert tuple(filter(is_of_kind, (*topics, *others))) == topics


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


@pytest.mark.parametrize(
    ("policy", "flow", "also_source", "cycles", "others"),
    [
        pytest.param(
            DEFAULT,
            FLOW,
            True,
            ("target.topic1", "target.source.topic1", "other.target.topic1", "source.topic1", "other.source.t"),
            ("topic1", "other.topic1", "other.another.topic1", "source-topic", "target"),
            id="rule of MM2 4.4",
        ),
        pytest.param(DEFAULT, FLOW, False, ("source.target.topic1",), ("source.topic1",), id="before 4.4"),
        # MM2 takes cluster-1-t for a topic of cluster, and mirrors it back.
        pytest.param(
            DefaultReplicationPolicy("-"),
            Flow("cluster-2", "cluster-1"),
            False,
            ("cluster-1-t", "cluster-2-cluster-1-t", "x-cluster-1-t"),
            ("t", "cluster-1", "cluster-10-t", "cluster-2-t", "mycluster-1-t", "t-cluster-1"),
            id="separator within the alias",
        ),
        pytest.param(
            DefaultReplicationPolicy("-"), Flow("cluster-2", "cluster-1"), True, ("cluster-2-t",), (), id="the source's"
        ),
        *(
            pytest.param(
                IdentityReplicationPolicy("source"),
                FLOW,
                also_source,
                ("target.heartbeats", "other.target.heartbeats"),
                ("topic1", "target.topic1", "source.topic1", "heartbeats", "other.heartbeats", "source.heartbeats"),
            )
            for also_source in (False, True)
        ),
        pytest.param(
            IdentityReplicationPolicy("cluster-2", "-"),
            Flow("cluster-2", "cluster-1"),
            False,
            ("cluster-1-heartbeats",),
            ("x-cluster-1-orders",),
            id="identity, separator within the alias",
        ),
        pytest.param(
            IdentityReplicationPolicy("us", ""),
            Flow("us", "eu"),
            False,
            ("euheartbeats", "useuheartbeats"),
            ("orders", "eu", "neutral", "heartbeats", "usheartbeats"),
            id="identity, empty separator",
        ),
    ],
)
def test_mm2_115_116_cycle_is_closed_by_topics_that_came_from_the_target(
    policy: ReplicationPolicy, flow: Flow, also_source: bool, cycles: tuple[str, ...], others: tuple[str, ...]
) -> None:
    topics = (*cycles, *others)
    assert tuple(topic for topic in topics if is_cycle(policy, topic, flow, also_source=also_source)) == cycles


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


@pytest.mark.parametrize("policy", [DefaultReplicationPolicy("_"), IdentityReplicationPolicy("A", "_", False)])
def test_policies_are_values_that_travel(policy: ReplicationPolicy) -> None:
    assert pickle.loads(pickle.dumps(policy)) == policy  # noqa: S301 - the bytes are ours


class TestRenames:
    KEPT = IdentityReplicationPolicy("A", renames=(Rename("orders-(.*)", "eu.orders.$1"),))
    PREFIXED = DefaultReplicationPolicy(renames=(Rename(r"A\.orders-(.*)", "eu.orders.$1"),))

    @pytest.mark.parametrize("policy", [KEPT, PREFIXED], ids=["kept", "prefixed"])
    def test_renamed_topic_is_known_again(self, policy: DefaultReplicationPolicy) -> None:
        assert policy.format_remote_topic("A", "orders-x") == "eu.orders.x"
        assert (policy.topic_source("eu.orders.x"), policy.upstream_topic("eu.orders.x")) == ("A", "orders-x")
        assert policy.original_topic("eu.orders.x") == "orders-x"
        assert hides_origin(policy, "A", "orders-x")

    @pytest.mark.parametrize(("policy", "hides"), [(KEPT, True), (PREFIXED, False)], ids=["kept", "prefixed"])
    def test_other_topic_is_named_as_without_renames(self, policy: DefaultReplicationPolicy, hides: bool) -> None:
        plain = without_renames(policy)
        for topic in ("payments", "heartbeats", "C.heartbeats", "A.checkpoints.internal"):
            remote = policy.format_remote_topic("A", topic)
            assert remote == plain.format_remote_topic("A", topic)
            assert policy.topic_source(remote) == plain.topic_source(remote)
            assert policy.upstream_topic(remote) == plain.upstream_topic(remote)
        assert hides_origin(policy, "A", "payments") is hides
        assert not hides_origin(policy, "A", "heartbeats")

    @pytest.mark.parametrize("pattern", [".*", r"A\.(.*)", "(.*)"])
    @pytest.mark.parametrize("topic", ["heartbeats", "B.heartbeats", "mm2-offsets.A.internal", "__consumer_offsets"])
    def test_internal_topics_and_heartbeats_keep_their_names(self, pattern: str, topic: str) -> None:
        for kind in (IdentityReplicationPolicy, DefaultReplicationPolicy):
            policy = kind(renames=(Rename(pattern, "x"),))
            assert policy.format_remote_topic("A", topic) == kind().format_remote_topic("A", topic)
            assert policy.is_heartbeats_topic(topic) is kind().is_heartbeats_topic(topic)

    def test_topic_whose_name_ends_like_heartbeats_is_renamed_where_that_makes_no_heartbeats(self) -> None:
        policy = DefaultReplicationPolicy(renames=(Rename(r"A\.(.*)", "eu.$1"),))
        assert policy.format_remote_topic("A", "device-heartbeats") == "eu.device-heartbeats"
        assert policy.upstream_topic("eu.device-heartbeats") == "device-heartbeats"
        assert policy.format_remote_topic("A", "C.heartbeats") == "A.C.heartbeats"

    def test_names_of_the_source_are_read_without_renames(self) -> None:
        """A rename that takes the alias away says nothing about `B.t` on A, a copy that another flow named."""
        policy = DefaultReplicationPolicy(renames=(Rename(r"A\.(.*)", "$1"),))
        assert is_cycle(policy, "B.t", Flow("A", "B"))
        assert not is_cycle(policy, "t", Flow("A", "B"))

    def test_copies_on_one_cluster_are_not_renamed_again(self) -> None:
        policy = IdentityReplicationPolicy("A", renames=(Rename("(.*)", "eu.$1"),))
        assert [is_cycle(policy, topic, Flow("A", "B"), one_cluster=True) for topic in ("t", "eu.t")] == [False, True]

    def test_mm1_renames_too(self) -> None:
        policy = LegacyReplicationPolicy("A", renames=(Rename("orders-(.*)", "eu.$1"),))
        assert [policy.format_remote_topic("A", topic) for topic in ("orders-x", "t")] == ["eu.x", "t"]
        assert [policy.upstream_topic(topic) for topic in ("eu.x", "t")] == ["orders-x", "t"]
