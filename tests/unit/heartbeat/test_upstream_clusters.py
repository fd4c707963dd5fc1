"""Clusters upstream by their heartbeats."""

from hypothesis import given
from hypothesis import strategies as st

from lockstep_heartbeat.upstream_clusters import (
    Upstream,
    UpstreamHeartbeat,
    age_seconds,
    find_upstreams,
    with_heartbeat,
)
from lockstep_rules.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from lockstep_rules.remote_topics import count_hops

DEFAULT = DefaultReplicationPolicy()
HOUR = 3_600_000


class TestUpstreams:
    def test_each_cluster_behind_the_flow_is_one_nearest_first(self) -> None:
        topics = ["heartbeats", "B.heartbeats", "B.A.heartbeats", "B.A.D.heartbeats", "B.orders", "orders"]
        assert find_upstreams(DEFAULT, topics, "B") == (
            Upstream("B", 1, "B.heartbeats"),
            Upstream("A", 2, "B.A.heartbeats"),
            Upstream("D", 3, "B.A.D.heartbeats"),
        )

    def test_upstream_heartbeats_of_another_flow_are_ignored(self) -> None:
        assert find_upstreams(DEFAULT, ["C.heartbeats", "C.B.heartbeats", "heartbeats"], "B") == ()

    def test_upstream_is_known_by_the_shortest_path_of_its_heartbeats(self) -> None:
        clusters = find_upstreams(
            DEFAULT, ["B.heartbeats", "B.C.A.heartbeats", "B.A.heartbeats", "B.D.A.heartbeats"], "B"
        )
        assert Upstream("A", 2, "B.A.heartbeats") in clusters
        assert [cluster.alias for cluster in clusters] == ["B", "A", "C", "D"]

    def test_upstream_without_own_heartbeats_is_known_by_those_through_it(self) -> None:
        assert find_upstreams(DEFAULT, ["B.A.heartbeats"], "B") == (
            Upstream("B", 1, "B.A.heartbeats"),
            Upstream("A", 2, "B.A.heartbeats"),
        )

    def test_upstream_with_own_heartbeats_is_known_by_them(self) -> None:
        clusters = find_upstreams(DEFAULT, ["B.A.D.heartbeats", "B.C.E.A.heartbeats"], "B")
        assert Upstream("A", 2, "B.C.E.A.heartbeats") in clusters

    def test_heartbeats_under_identity_have_their_path_in_the_name(self) -> None:
        policy = IdentityReplicationPolicy("B")
        clusters = find_upstreams(policy, ["orders", "heartbeats", "B.heartbeats", "B.A.heartbeats"], "B")
        assert [(cluster.alias, cluster.hops) for cluster in clusters] == [("B", 1), ("A", 2)]


ALIASES = st.sampled_from(["A", "B", "C"])
TOPICS = st.lists(ALIASES, min_size=1, max_size=4).map(lambda way: ".".join([*way, "heartbeats"]))


@given(st.sets(TOPICS))
def test_hops_are_those_that_mirrormakers_client_counts(topics: set[str]) -> None:
    through_b = {topic for topic in topics if topic.startswith("B.")}
    for cluster in find_upstreams(DEFAULT, topics, "B"):
        assert cluster.hops == count_hops(DEFAULT, through_b, cluster.alias)
        assert cluster.topic in through_b


class TestHeard:
    def test_the_newest_counts(self) -> None:
        first = with_heartbeat(None, 1_000, 1_040)
        assert first == UpstreamHeartbeat(1_000, 1_040, 40)
        assert with_heartbeat(first, 2_000, 2_010) == UpstreamHeartbeat(2_000, 2_010, 10)
        assert with_heartbeat(first, 900, 2_010) == first
        assert with_heartbeat(first, 1_000, 9_000) == first, "the same again, as after a restart of the copy"

    def test_upstream_heartbeat_read_at_the_start_has_no_latency(self) -> None:
        assert with_heartbeat(None, 1_000, 5_000, new=False) == UpstreamHeartbeat(1_000, 5_000)
        earlier = UpstreamHeartbeat(1_000, 1_040, 40)
        assert with_heartbeat(earlier, 2_000, 5_000, new=False) == UpstreamHeartbeat(2_000, 5_000, 40)

    def test_a_clock_that_is_ahead_gives_a_negative_one(self) -> None:
        assert with_heartbeat(None, 1_000, 400) == UpstreamHeartbeat(1_000, 400, -600)

    def test_the_age_grows_though_nothing_arrives(self) -> None:
        assert age_seconds(UpstreamHeartbeat(1_000, 1_040), 0, 4_500) == 3.5
        assert age_seconds(None, 2_000, 4_500) == 2.5
        assert age_seconds(UpstreamHeartbeat(9_000, 4_500), 0, 4_500) == 0.0

    def test_the_age_grows_after_a_heartbeat_of_the_future(self) -> None:
        """The clock of its sender was ahead, and the flow does not live any more."""
        assert age_seconds(with_heartbeat(None, HOUR, 4_500), 0, 64_500) == 60.0
        assert age_seconds(with_heartbeat(None, HOUR, 4_500, new=False), 0, 64_500) == 60.0

    def test_heartbeat_replaces_one_of_the_future(self) -> None:
        """As soon as the clock of the sender is right again, not when that time has come."""
        ahead = with_heartbeat(None, HOUR, 1_000)
        corrected = with_heartbeat(ahead, 1_900, 2_000)
        assert corrected == UpstreamHeartbeat(1_900, 2_000, 100)
        assert with_heartbeat(corrected, 1_500, 2_050) == corrected, "an older one does not replace it"

    def test_heartbeat_read_at_the_start_replaces_one_of_the_future(self) -> None:
        """The order in the topic is that of arrival. The latency of a clock that was ahead means nothing."""
        ahead = with_heartbeat(None, HOUR, 1_000)
        assert with_heartbeat(ahead, 1_900, 2_000, new=False) == UpstreamHeartbeat(1_900, 2_000)

    def test_sender_whose_clock_is_always_ahead_has_its_newest_heartbeat(self) -> None:
        earlier = with_heartbeat(None, 1_000 + HOUR, 1_000)
        assert with_heartbeat(earlier, 2_000 + HOUR, 2_000) == UpstreamHeartbeat(2_000 + HOUR, 2_000, -HOUR)

    @given(st.lists(st.tuples(st.integers(1, 5_000), st.integers(-HOUR, HOUR)), min_size=1), st.integers(0, HOUR))
    def test_the_age_is_never_less_than_the_time_since_the_last_arrival(
        self, arrivals: list[tuple[int, int]], later_ms: int
    ) -> None:
        earlier, now = None, 10 * HOUR
        for waited, ahead in arrivals:
            now += waited
            earlier = with_heartbeat(earlier, now + ahead, now)
        assert age_seconds(earlier, 0, now + later_ms) >= later_ms / 1e3
