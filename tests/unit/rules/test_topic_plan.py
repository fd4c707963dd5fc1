"""The plan of topic-sync: topics to create and partitions to add (`mm2-behaviour.md` §2.2, §2.3, §4.2, §4.3, §4.5)."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_rules.filters import NameFilter
from lockstep_rules.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from lockstep_rules.renames import Rename
from lockstep_rules.topic_plan import (
    Create,
    Grow,
    TopicRules,
    TopicSyncPlan,
    copy_owners,
    heartbeats_note,
    name_owners,
    partition_plan,
    possible_factor,
    select_topics,
)
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import MirroredTopic
from tests.support.topic_settings import NAMES, PREFIXED

IDENTITY = replace(PREFIXED, policy=IdentityReplicationPolicy("A"))
NONE: frozenset[str] = frozenset()


RENAMED = replace(
    PREFIXED,
    policy=IdentityReplicationPolicy(
        "A", renames=(Rename("orders-(.*)", "eu.orders"), Rename("x(.*)", "$1"), Rename("pulse", "heartbeats"))
    ),
)


class TestRenames:
    def test_topic_has_its_new_name(self) -> None:
        assert select_topics(RENAMED, ["orders-1", "t"]).topics == {"orders-1": "eu.orders", "t": "t"}

    def test_topics_that_meet_in_one_name_are_left_out(self) -> None:
        selection = select_topics(RENAMED, ["orders-1", "orders-2", "eu.orders", "t"])
        assert selection.topics == {"t": "t"}
        assert selection.collisions == {"eu.orders": ("eu.orders", "orders-1", "orders-2")}
        assert (
            selection.left_out["orders-2"].rule
            == "lockstep.rename makes it eu.orders, and eu.orders and orders-1 as well"
        )
        assert selection.left_out["eu.orders"].rule == "lockstep.rename gives orders-1 and orders-2 its name"

    def test_topic_that_is_mirrored_already_goes_on(self) -> None:
        selection = select_topics(RENAMED, ["orders-1", "orders-2"], owners={"eu.orders": "orders-2"})
        assert selection.topics == {"orders-2": "eu.orders"}
        assert selection.left_out.keys() == {"orders-1"}

    @pytest.mark.parametrize("phase", ["deleted", "excluded", "left-out"])
    def test_copy_keeps_the_records_of_one_topic_when_that_is_gone(self, phase: str) -> None:
        owners = copy_owners([MirroredTopic(source_topic="orders-1", target_topic="eu.orders", phase=phase)])
        selection = select_topics(RENAMED, ["orders-2"], target={"eu.orders"}, owners=owners)
        assert not selection.topics
        assert selection.left_out["orders-2"].rule.endswith("makes it eu.orders, which has the records of orders-1")
        assert select_topics(RENAMED, ["orders-2"], target=NONE, owners=owners).topics == {"orders-2": "eu.orders"}

    def test_owner_of_a_copy_is_the_topic_that_is_mirrored(self) -> None:
        rows = [
            MirroredTopic(source_topic="orders-2", target_topic="eu.orders", phase="mirrored"),
            MirroredTopic(source_topic="orders-1", target_topic="eu.orders", phase="deleted"),
            MirroredTopic(source_topic="orders-3", target_topic="eu.orders", phase="failed"),
            MirroredTopic(source_topic="orders-4", target_topic="", phase="left-out"),
        ]
        assert copy_owners(rows) == {"eu.orders": "orders-2"}
        assert name_owners(rows) == {"eu.orders": "orders-2"}

    @pytest.mark.parametrize("phase", ["creating", "failed"])
    def test_name_belongs_to_the_topic_whose_copy_may_have_been_created(self, phase: str) -> None:
        """topic-sync was killed before it wrote that it had, and the opposite flow brought the copy back."""
        rows = [MirroredTopic(source_topic="orders-1", target_topic="eu.orders", phase=phase)]
        selection = select_topics(RENAMED, ["eu.orders", "orders-1"], target={"eu.orders"}, owners=name_owners(rows))
        assert selection.topics == {"orders-1": "eu.orders"}
        assert copy_owners(rows) == {}

    def test_earlier_copy_gets_no_records_of_another_topic(self) -> None:
        """The rename of orders-1 was changed."""
        row = MirroredTopic(source_topic="orders-1", target_topic="us.orders", earlier_names=("eu.orders",))
        selection = select_topics(RENAMED, ["orders-2"], target={"eu.orders", "us.orders"}, owners=name_owners([row]))
        assert selection.left_out["orders-2"].rule.endswith("makes it eu.orders, which has the records of orders-1")
        own = replace(row, source_topic="orders-2", target_topic="eu.orders", earlier_names=())
        assert name_owners([own, row])["eu.orders"] == "orders-2", "the topic that is copied there now"

    @pytest.mark.parametrize("name", ["x", "x.", "x.."])
    def test_name_that_no_topic_may_have_is_refused(self, name: str) -> None:
        selection = select_topics(replace(RENAMED, topics=NameFilter((".*",))), [name])
        assert not selection.topics
        assert selection.left_out[name].rule.endswith("which no topic may be called")

    def test_copies_on_the_same_cluster_are_not_renamed_again(self) -> None:
        """The pattern has a part besides groups, so that a copy's name does not show that it is one."""
        policy = IdentityReplicationPolicy("A", renames=(Rename("(.+?)(-[0-9])?", "eu.$1"),))
        rules = replace(RENAMED, policy=policy, topics=NameFilter((".*",)), same_cluster=True)
        assert select_topics(rules, ["t-1", "eu.t"]).topics == {"t-1": "eu.t"}
        assert not select_topics(rules, ["eu.t"], owners={"eu.t": "t-1"}).topics

    @pytest.mark.parametrize("name", ["x__consumer_offsets", "xmm2-lockstep-state.B.internal", "pulse"])
    def test_name_that_is_no_copys_is_refused(self, name: str) -> None:
        selection = select_topics(replace(RENAMED, topics=NameFilter((".*",))), [name])
        assert not selection.topics
        assert selection.left_out[name].rule.endswith("which is no name for a copy")


# -- which topics ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "remote"),
    [
        ("orders", "A.orders"),
        ("C.orders", "A.C.orders"),  # two hops are no cycle
        ("orders.eu", "A.orders.eu"),  # a dot alone makes no remote topic of B
        ("heartbeats", "A.heartbeats"),
        ("C.heartbeats", "A.C.heartbeats"),
        ("B.orders", None),  # came from the target
        ("C.B.orders", None),  # came from the target, by way of C
        ("B.heartbeats", None),
        ("__consumer_offsets", None),
        (".hidden", None),
        ("mm2-offset-syncs.B.internal", None),
        ("mm2-lockstep-state.B.internal", None),
        ("mm2-lockstep-anything", None),
        ("B.checkpoints.internal", None),
        ("orders.replica", None),
    ],
)
def test_mm2_115_selected_topics_and_their_names(topic: str, remote: str | None) -> None:
    assert select_topics(PREFIXED, [topic]).topics == ({} if remote is None else {topic: remote})


@pytest.mark.parametrize(
    ("topic", "remote"),
    [
        ("orders", "orders"),
        ("B.orders", "B.orders"),  # identity knows no cycles
        ("heartbeats", "A.heartbeats"),  # save of heartbeats
        ("B.heartbeats", None),
    ],
)
def test_mm2_116_identity_keeps_names(topic: str, remote: str | None) -> None:
    assert select_topics(IDENTITY, [topic]).topics == ({} if remote is None else {topic: remote})


def test_identity_within_one_cluster_never_mirrors_a_topic_into_itself() -> None:
    both_here = replace(IDENTITY, same_cluster=True)
    assert select_topics(both_here, ["orders", "heartbeats"]).topics == {"heartbeats": "A.heartbeats"}
    assert select_topics(replace(PREFIXED, same_cluster=True), ["orders"]).topics == {"orders": "A.orders"}


def test_copies_on_one_cluster_under_two_aliases_come_to_an_end() -> None:
    """Both directions, round after round: as many topics as there are after the first."""
    here = {"orders", "pay.eu"}
    flows = [replace(PREFIXED, same_cluster=True), replace(PREFIXED, same_cluster=True, flow=Flow("B", "A"))]
    for _ in range(4):
        for rules in flows:
            here |= set(select_topics(rules, here, target=here).topics.values())
    assert here == {"orders", "pay.eu", "A.orders", "A.pay.eu", "B.orders", "B.pay.eu"}


class TestCycles:
    NAMES = ("orders", "B.orders", "payments.B.v1", "C.B.orders", "B.gone", "B.heartbeats")
    EXACT = replace(PREFIXED, cycles_exact=True)

    def test_left_out_topic_has_its_rule(self) -> None:
        selection = select_topics(PREFIXED, self.NAMES, target={"orders", "A.orders"})
        assert list(selection.topics) == ["orders"]
        assert list(selection.left_out) == ["B.gone", "B.orders", "C.B.orders", "payments.B.v1"]
        assert selection.left_out["B.orders"].rule == (
            "its name says that it is a copy of orders of B (cycle detection, as in MirrorMaker)"
        )
        assert selection.left_out["payments.B.v1"].rule.endswith(
            "but B has no such topic: lockstep.cycles=exact mirrors it"
        )
        assert selection.left_out["B.orders"].original == "orders"
        assert dict(selection.no_copies) == {
            "payments.B.v1": frozenset({"v1"}),
            "B.gone": frozenset({"gone"}),
            "B.heartbeats": frozenset({"heartbeats"}),
        }

    def test_topic_known_as_original_stays_selected(self) -> None:
        copies, own = {"B.gone": "gone"}, ("payments.B.v1",)
        was = select_topics(self.EXACT, self.NAMES, target={"orders"}, copies=copies, own=own)
        assert "B.gone" in was.left_out
        assert was.left_out["B.gone"].original == "gone"
        now = select_topics(self.EXACT, self.NAMES, target={"orders", "v1"}, own=("payments.B.v1",))
        assert "payments.B.v1" in now.topics

    def test_exact_counts_for_nothing_on_one_cluster(self) -> None:
        here = replace(self.EXACT, same_cluster=True)
        assert list(select_topics(here, ["A.none", "B.none", "x"], target=()).topics) == ["x"]

    def test_alias_twice_in_a_name_does_not_hide_the_original(self) -> None:
        flow = Flow("A", "us-1")
        rules = replace(self.EXACT, flow=flow, policy=DefaultReplicationPolicy("-"))
        selection = select_topics(rules, ["us-1-x-us-1-orders"], target={"orders"})
        assert selection.left_out["us-1-x-us-1-orders"].original == "orders"

    def test_exact_mirrors_what_the_targets_topics_show_to_be_no_copy(self) -> None:
        selection = select_topics(self.EXACT, self.NAMES, target={"orders", "A.orders", "heartbeats"})
        assert selection.topics == {"orders": "A.orders", "payments.B.v1": "A.payments.B.v1", "B.gone": "A.B.gone"}
        assert list(selection.left_out) == ["B.orders", "C.B.orders"]

    def test_exact_leaves_out_what_it_knows_nothing_of(self) -> None:
        assert list(select_topics(self.EXACT, self.NAMES).topics) == ["orders"]
        assert list(select_topics(self.EXACT, self.NAMES, target={"orders"}, own=()).topics) == ["orders"]

    @given(
        st.sets(st.sampled_from(["x", "y", "B.x", "C.x", "B.C.x", "C.B.x", "A.x"]), min_size=1),
        st.sets(st.sampled_from(["x", "y", "A.x", "A.B.x", "C.x"])),
    )
    def test_exact_never_makes_a_topic_go_round(self, source: set[str], target: set[str]) -> None:
        """Both directions, each with the topics that the other created: it comes to an end."""
        topics_of = {"A": set(source), "B": set(target)}
        back = replace(self.EXACT, flow=Flow("B", "A"))
        for _ in range(4):
            topics_of["B"] |= set(select_topics(self.EXACT, topics_of["A"], target=topics_of["B"]).topics.values())
            topics_of["A"] |= set(select_topics(back, topics_of["B"], target=topics_of["A"]).topics.values())
        before = {side: set(names) for side, names in topics_of.items()}
        topics_of["B"] |= set(select_topics(self.EXACT, topics_of["A"], target=topics_of["B"]).topics.values())
        topics_of["A"] |= set(select_topics(back, topics_of["B"], target=topics_of["A"]).topics.values())
        assert topics_of == before


@pytest.mark.parametrize(
    ("rules", "name", "note"),
    [
        (IDENTITY, "device-heartbeats", "renamed although names are kept"),
        (replace(PREFIXED, topics=NameFilter(("orders",))), "x.heartbeats", "mirrored although not selected"),
        (PREFIXED, "device-heartbeats", ""),
        (replace(IDENTITY, aliases=frozenset("ABC")), "C.heartbeats", ""),
        (IDENTITY, "heartbeats", ""),
        (IDENTITY, "orders", ""),
        (RENAMED, "orders-1", ""),
        (RENAMED, "device-heartbeats", "renamed although names are kept"),
        (replace(PREFIXED, policy=DefaultReplicationPolicy(renames=(Rename("x", "y"),))), "device-heartbeats", ""),
        (replace(IDENTITY, policy=IdentityReplicationPolicy("A", known_aliases=frozenset("AB"))), "x.heartbeats", ""),
    ],
)
def test_user_topic_with_a_heartbeats_name_is_noted(rules: TopicRules, name: str, note: str) -> None:
    remote = rules.policy.format_remote_topic("A", name)
    assert heartbeats_note(rules, name, remote).startswith(note) if note else not heartbeats_note(rules, name, remote)


@pytest.mark.parametrize(
    ("name", "kept", "prefixed"),
    [
        ("heartbeats", "A.heartbeats", "A.heartbeats"),
        ("B.heartbeats", None, None),
        ("C.heartbeats", "A.C.heartbeats", "A.C.heartbeats"),
        ("device-heartbeats", "device-heartbeats", None),
        ("x.heartbeats", "x.heartbeats", None),
        ("x.C.heartbeats", "x.C.heartbeats", None),
    ],
)
def test_exact_heartbeats_are_those_that_came_by_known_aliases(
    name: str, kept: str | None, prefixed: str | None
) -> None:
    """Under the identity policy with all topics, and under the default one with none."""
    aliases = frozenset("ABC")
    identity = replace(IDENTITY, policy=IdentityReplicationPolicy("A", known_aliases=aliases))
    default = replace(PREFIXED, policy=DefaultReplicationPolicy(known_aliases=aliases), topics=NameFilter(("orders",)))
    assert select_topics(identity, [name]).topics.get(name) == kept
    assert select_topics(default, [name]).topics.get(name) == prefixed


@pytest.mark.parametrize(
    ("topics", "replicated", "names"),
    [
        (("orders",), True, ["heartbeats", "orders"]),
        ((), True, ["heartbeats"]),
        (("orders",), False, ["orders"]),
        (("heartbeats",), False, ["heartbeats"]),
    ],
)
def test_mm2_104_111_112_113_114_heartbeats_are_selected_apart(
    topics: tuple[str, ...], replicated: bool, names: list[str]
) -> None:
    rules = replace(PREFIXED, topics=NameFilter(topics), heartbeats_replicated=replicated)
    assert list(select_topics(rules, ["heartbeats", "orders", "pay"]).topics) == names


# -- partitions --------------------------------------------------------------------------------------------------------


def test_missing_topics_are_created_and_short_ones_grow() -> None:
    topics = {"new": "A.new", "short": "A.short", "same": "A.same", "longer": "A.longer"}
    source = {"new": 3, "short": 8, "same": 2, "longer": 1}
    target = {"A.short": 2, "A.same": 2, "A.longer": 4, "A.other": 1}
    plan = partition_plan(topics, source, target, not_now=NONE)
    assert plan.create == (Create("new", "A.new", 3),)
    assert plan.grow == (Grow("short", "A.short", 2, 8),)


def test_missing_topic_is_created_and_none_grows_where_counts_are_kept() -> None:
    topics = {"new": "new", "short": "short"}
    plan = partition_plan(topics, {"new": 3, "short": 8}, {"short": 2}, not_now=NONE, keeps_counts=True)
    assert plan == TopicSyncPlan(create=(Create("new", "new", 3),))


def test_topic_that_waits_or_is_deleted_is_not_created_and_blocks_no_other() -> None:
    topics = {"bad": "A.bad", "gone": "A.gone", "good": "A.good"}
    plan = partition_plan(topics, {"bad": 1, "good": 1}, {}, not_now=frozenset({"bad"}))
    assert plan.create == (Create("good", "A.good", 1),)


def test_mm2_126_topic_is_created_until_it_exists() -> None:
    topics, source = {"new": "A.new"}, {"new": 3}
    for _ in range(2):
        assert partition_plan(topics, source, {}, not_now=NONE).create == (Create("new", "A.new", 3),)
    assert partition_plan(topics, source, {"A.new": 3}, not_now=NONE) == TopicSyncPlan()


def test_mm2_127_topic_of_the_target_only_is_left_alone() -> None:
    assert partition_plan({}, {}, {"A.orders": 3, "orders": 1}, not_now=NONE) == TopicSyncPlan()


COUNTS = st.dictionaries(NAMES, st.integers(1, 20), max_size=8)


@given(source=COUNTS, target=COUNTS)
def test_plan_after_its_execution_is_empty_and_removes_nothing(source: dict[str, int], target: dict[str, int]) -> None:
    topics = select_topics(PREFIXED, source).topics
    counts = {f"A.{name}": count for name, count in target.items()}
    plan = partition_plan(topics, source, counts, not_now=NONE)
    after = {**counts, **{c.target: c.partitions for c in plan.create}, **{g.target: g.total for g in plan.grow}}
    assert partition_plan(topics, source, after, not_now=NONE) == partition_plan({}, {}, {}, not_now=NONE)
    assert all(after[name] >= count for name, count in counts.items())
    assert all(after[topics[name]] >= source[name] for name in topics)


def test_mm2_115_cycle_since_4_4_includes_earlier_source_topics() -> None:
    names = ["A.orders", "C.A.orders", "C.orders", "orders"]
    assert list(select_topics(PREFIXED, names).topics) == names
    assert list(select_topics(replace(PREFIXED, cycle_by_source=True), names).topics) == ["C.orders", "orders"]
    assert list(select_topics(replace(IDENTITY, cycle_by_source=True), names).topics) == names


@pytest.mark.parametrize(
    "flows",
    [
        ["A->B"],
        ["A->B", "B->A"],
        ["A->B", "C->D"],
        ["A->B", "B->C", "C->A"],
        ["A->B", "A->C", "C->B"],
        ["A-1->B", "B->A-1"],
    ],
)
@pytest.mark.parametrize("policy", [DefaultReplicationPolicy, lambda: DefaultReplicationPolicy("-"), None])
@pytest.mark.parametrize("exact", [False, True])
def test_copies_within_one_cluster_are_not_copied_again(
    flows: list[str], policy: Callable[[], DefaultReplicationPolicy] | None, exact: bool
) -> None:
    names = {"orders", "heartbeats"}
    for _ in range(12):
        before = set(names)
        for source, target in (flow.split("->") for flow in flows):
            named = IdentityReplicationPolicy(source) if policy is None else policy()
            rules = replace(PREFIXED, flow=Flow(source, target), policy=named, same_cluster=True, cycles_exact=exact)
            names |= set(select_topics(rules, names, target=names).topics.values())
        if names == before:
            return
    raise AssertionError(f"{len(names)} topics, and still more")


@pytest.mark.parametrize(("wanted", "brokers", "factor"), [(3, 5, 3), (3, 3, 3), (3, 1, 1), (-1, 3, -1)])
def test_possible_factor_is_never_above_the_brokers(wanted: int, brokers: int, factor: int) -> None:
    assert possible_factor(wanted, brokers) == factor
