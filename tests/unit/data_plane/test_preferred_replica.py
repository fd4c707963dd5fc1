"""Which replica is read: the one that the leader named, for a while, and the leader after any trouble (KIP-392)."""

from lockstep_data_plane.fetch.preferred_replica import AVOID_S, PreferredReplicas

LEASE_S = 300.0
HERE, OTHER = ("t", 0), ("t", 1)


def test_without_a_rack_none_is_ever_sent() -> None:
    assert PreferredReplicas("", LEASE_S).rack([HERE, OTHER], 0.0) == ""


def test_a_named_replica_is_read_until_its_lease_ends() -> None:
    replicas = PreferredReplicas("r", LEASE_S)
    assert replicas.replica_for(HERE, 0.0) is None
    replicas.set_preferred(HERE, 2, 10.0)
    assert replicas.replica_for(HERE, 10.0) == 2
    assert replicas.replica_for(HERE, 10.0 + LEASE_S - 1) == 2
    assert replicas.replica_for(HERE, 10.0 + LEASE_S) is None
    assert replicas.replica_for(OTHER, 10.0) is None


def test_the_newest_name_counts() -> None:
    replicas = PreferredReplicas("r", LEASE_S)
    replicas.set_preferred(HERE, 2, 0.0)
    replicas.set_preferred(HERE, 3, 1.0)
    assert replicas.replica_for(HERE, 2.0) == 3


def test_preferred_replica_after_a_failure_is_the_leader_for_a_while() -> None:
    replicas = PreferredReplicas("r", LEASE_S)
    replicas.set_preferred(HERE, 2, 0.0)
    replicas.on_failure(HERE, 1.0)
    assert replicas.replica_for(HERE, 1.0) is None
    assert replicas.rack([HERE], 1.0) == ""
    assert replicas.rack([OTHER, HERE], AVOID_S) == ""
    assert replicas.rack([OTHER], 1.0) == "r"
    assert replicas.rack([HERE, OTHER], 1.0 + AVOID_S) == "r"


def test_preferred_replica_that_failed_is_avoided_after_a_new_begin() -> None:
    replicas = PreferredReplicas("r", LEASE_S)
    replicas.set_preferred(HERE, 2, 0.0)
    replicas.reset(HERE)
    assert replicas.replica_for(HERE, 0.0) is None
    assert replicas.rack([HERE], 0.0) == "r"
    replicas.on_failure(HERE, 1.0)
    replicas.reset(HERE)
    assert replicas.rack([HERE], 2.0) == ""
