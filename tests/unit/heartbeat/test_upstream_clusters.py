"""What arriving heartbeats say of the clusters upstream."""

from hypothesis import given
from hypothesis import strategies as st

from lockstep_heartbeat.upstream_clusters import Upstream, UpstreamHeartbeat, age_seconds, upstreams, with_heartbeat
from lockstep_protocol.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from lockstep_protocol.topics import hops

DEFAULT = DefaultReplicationPolicy()


class TestUpstreams:
    def test_each_cluster_behind_the_flow_is_one_nearest_first(self) -> None:
        topics = ["heartbeats", "B.heartbeats", "B.A.heartbeats", "B.A.D.heartbeats", "B.orders", "orders"]
        assert upstreams(DEFAULT, topics, "B") == (
            Upstream("B", 1, "B.heartbeats"),
            Upstream("A", 2, "B.A.heartbeats"),
            Upstream("D", 3, "B.A.D.heartbeats"),
        )

    def test_upstream_heartbeats_of_another_flow_are_ignored(self) -> None:
        assert upstreams(DEFAULT, ["C.heartbeats", "C.B.heartbeats", "heartbeats"], "B") == ()

    def test_upstream_is_known_by_the_shortest_path_of_its_heartbeats(self) -> None:
        found = upstreams(DEFAULT, ["B.heartbeats", "B.C.A.heartbeats", "B.A.heartbeats", "B.D.A.heartbeats"], "B")
        assert Upstream("A", 2, "B.A.heartbeats") in found
        assert [one.alias for one in found] == ["B", "A", "C", "D"]

    def test_upstream_without_own_heartbeats_is_known_by_those_through_it(self) -> None:
        assert upstreams(DEFAULT, ["B.A.heartbeats"], "B") == (
            Upstream("B", 1, "B.A.heartbeats"),
            Upstream("A", 2, "B.A.heartbeats"),
        )

    def test_upstream_with_own_heartbeats_is_known_by_them(self) -> None:
        found = upstreams(DEFAULT, ["B.A.D.heartbeats", "B.C.E.A.heartbeats"], "B")
        assert Upstream("A", 2, "B.C.E.A.heartbeats") in found

    def test_heartbeats_under_identity_have_their_path_in_the_name(self) -> None:
        policy = IdentityReplicationPolicy("B")
        found = upstreams(policy, ["orders", "heartbeats", "B.heartbeats", "B.A.heartbeats"], "B")
        assert [(one.alias, one.hops) for one in found] == [("B", 1), ("A", 2)]


ALIASES = st.sampled_from(["A", "B", "C"])
TOPICS = st.lists(ALIASES, min_size=1, max_size=4).map(lambda way: ".".join([*way, "heartbeats"]))


@given(st.sets(TOPICS))
def test_hops_are_those_that_mirrormakers_client_counts(topics: set[str]) -> None:
    through_b = {topic for topic in topics if topic.startswith("B.")}
    for one in upstreams(DEFAULT, topics, "B"):
        assert one.hops == hops(DEFAULT, through_b, one.alias)
        assert one.topic in through_b


class TestHeard:
    def test_the_newest_counts(self) -> None:
        first = with_heartbeat(None, 1_000, 1_040)
        assert first == UpstreamHeartbeat(1_000, 40)
        assert with_heartbeat(first, 2_000, 2_010) == UpstreamHeartbeat(2_000, 10)
        assert with_heartbeat(first, 900, 2_010) == first
        assert with_heartbeat(first, 1_000, 9_000) == first, "the same again, as after a restart of the copy"

    def test_upstream_heartbeat_read_at_the_start_has_no_latency(self) -> None:
        assert with_heartbeat(None, 1_000, None) == UpstreamHeartbeat(1_000)
        assert with_heartbeat(UpstreamHeartbeat(1_000, 40), 2_000, None) == UpstreamHeartbeat(2_000, 40)

    def test_a_clock_that_is_ahead_gives_a_negative_one(self) -> None:
        assert with_heartbeat(None, 1_000, 400) == UpstreamHeartbeat(1_000, -600)

    def test_the_age_grows_though_nothing_arrives(self) -> None:
        assert age_seconds(UpstreamHeartbeat(1_000), 0, 4_500) == 3.5
        assert age_seconds(None, 2_000, 4_500) == 2.5
        assert age_seconds(UpstreamHeartbeat(9_000), 0, 4_500) == 0.0
