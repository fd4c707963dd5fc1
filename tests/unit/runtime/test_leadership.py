"""Which replica may act: the group's partition makes a candidate, the leader row read back makes a leader."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_runtime.state.leadership import Leadership, LeadershipState, leader_label


@dataclass
class Log:
    """A state topic that holds nothing but leader rows."""

    rows: list[tuple[str, str]]

    def append(self, label: str, instance: str) -> int:
        self.rows.append((label, instance))
        return len(self.rows)  # offsets from 1: term 0 means none


@pytest.fixture
def me() -> Leadership:
    """A replica that holds partition 0."""
    me = Leadership("topic-sync")
    me.assigned({0})
    return me


def lead(me: Leadership, term: int = 7) -> None:
    me.claimed(0, term)
    me.read_claim("topic-sync", "one", term)


def test_holding_the_partition_alone_is_not_leading(me: Leadership) -> None:
    me.assigned({0, 1, 2})
    assert me.unclaimed_partitions() == (0,)
    assert me.leadership_state() is LeadershipState.CLAIMING
    assert (me.leads(), me.term()) == (False, 0)


def test_leading_begins_when_the_own_row_is_read_back(me: Leadership) -> None:
    me.claimed(0, 7)
    assert not me.leads()
    assert me.unclaimed_partitions() == ()
    me.read_claim("topic-sync", "one", 7)
    assert (me.leads(), me.term(), me.leader()) == (True, 7, "one")


def test_reading_back_before_the_acknowledgement_is_as_good(me: Leadership) -> None:
    me.read_claim("topic-sync", "one", 7)
    me.claimed(0, 7)
    assert me.leads()


def test_leadership_does_not_follow_from_an_old_row_of_the_same_name(me: Leadership) -> None:
    me.assigned(())
    me.read_claim("topic-sync", "one", 3)
    me.assigned({0})
    assert not me.leads()
    me.claimed(0, 9)
    me.read_claim("topic-sync", "one", 3)
    assert not me.leads()


def test_leadership_without_partition_0_is_standby(me: Leadership) -> None:
    me.assigned({1, 2, 3})
    assert me.unclaimed_partitions() == ()
    assert me.leadership_state() is LeadershipState.IDLE


def test_leadership_lost_to_a_later_row_is_claimed_again(me: Leadership) -> None:
    lead(me)
    me.read_claim("topic-sync", "two", 8)
    assert not me.leads()
    assert me.unclaimed_partitions() == (0,)
    lead(me, 9)
    assert me.term() == 9


def test_leadership_of_a_revoked_partition_ends_despite_a_late_ack(me: Leadership) -> None:
    me.assigned(())
    lead(me)
    assert not me.leads()
    me.assigned({0})
    assert me.unclaimed_partitions() == (0,)  # a new term, not the old one


def test_leadership_is_kept_by_other_assignments_and_services(me: Leadership) -> None:
    lead(me)
    me.assigned({0, 1})
    me.read_claim("acl-sync", "two", 8)
    assert me.term() == 7


def test_leadership_claims_of_others_since_a_term_are_known() -> None:
    me = Leadership("data-plane")
    assert not me.claimed_by_others(0, "one")
    me.read_claim("data-plane", "one", 7)
    assert not me.claimed_by_others(0, "one")
    me.read_claim("data-plane", "two", 9)
    me.read_claim("topic-sync", "three", 10)
    me.read_claim("data-plane", "one", 11)
    assert [me.claimed_by_others(term, "one") for term in (7, 8, 9, 11)] == [True, True, False, False]
    me.reset()
    assert not me.claimed_by_others(7, "one")


def test_divided_work_is_led_partition_by_partition() -> None:
    me = Leadership("checkpoint", divided=True)
    me.assigned({2, 4})
    assert me.unclaimed_partitions() == (2, 4)
    for partition, term in ((2, 11), (4, 12)):
        me.claimed(partition, term)
        me.read_claim(leader_label("checkpoint", partition, divided=True), "one", term)
    assert me.leading() == {2, 4}
    me.read_claim("checkpoint-2", "two", 13)
    assert me.leading() == {4}
    assert (me.term(2), me.term(4)) == (0, 12)


@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), st.sampled_from(["assign", "revoke", "claim", "read"]))))
def test_leadership_is_never_held_by_two_up_to_date_replicas(steps: list[tuple[str, str]]) -> None:
    """Whatever the group does, even if it gives the partition to both."""
    log = Log([])
    replicas = {name: Leadership("s") for name in ("one", "two")}
    read = dict.fromkeys(replicas, 0)

    def read_all(name: str) -> None:
        for offset, (label, instance) in enumerate(log.rows[read[name] :], start=read[name] + 1):
            replicas[name].read_claim(label, instance, offset)
        read[name] = len(log.rows)

    for name, step in steps:
        me = replicas[name]
        if step == "assign":
            me.assigned({0})
        elif step == "revoke":
            me.assigned(())
        elif step == "claim":
            for partition in me.unclaimed_partitions():
                me.claimed(partition, log.append("s", name))
        else:
            read_all(name)
    for name in replicas:
        read_all(name)
    leading = [me for me in replicas.values() if me.leads()]
    assert len(leading) <= 1
    assert all(me.term() == len(log.rows) for me in leading)
