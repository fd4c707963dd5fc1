"""A session tells the broker what changed, and the broker answers for exactly what is wanted."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from lockstep_kafka.messages.fetch_session import FetchPosition, FetchSession
from lockstep_kafka.messages.metadata_codec import PartitionLeader


def leader(topic: int = 1) -> PartitionLeader:
    return PartitionLeader(1, 0, UUID(int=topic))


def wanted(**offsets: int) -> list[FetchPosition]:
    return [((name, 0), leader(), offset, -1) for name, offset in offsets.items()]


def test_fetch_session_sends_all_partitions_first_then_changes() -> None:
    session = FetchSession()
    first = session.plan(wanted(a=0, b=0))
    assert (first.session_id, first.epoch, len(first.changed), first.forgotten) == (0, 0, 2, ())
    session.answered(77)
    second = session.plan(wanted(a=5, b=0))
    assert (second.session_id, second.epoch) == (77, 1)
    assert [each[0][0] for each in second.changed] == ["a"]
    session.answered(77)
    third = session.plan(wanted(b=0, c=1))
    assert (third.epoch, [each[0][0] for each in third.changed]) == (2, ["c"])
    assert [tp[0] for tp, _ in third.forgotten] == ["a"]


def test_fetch_session_sends_all_partitions_to_a_broker_without_sessions() -> None:
    session = FetchSession()
    for _ in range(3):
        plan = session.plan(wanted(a=0, b=0))
        assert (plan.session_id, plan.epoch, len(plan.changed)) == (0, 0, 2)
        session.answered(0)


def test_a_lost_session_begins_anew() -> None:
    session = FetchSession()
    session.plan(wanted(a=0))
    session.answered(77)
    session.reset()
    assert session.plan(wanted(a=0, b=3)).session_id == 0


def test_a_topic_created_again_is_forgotten_and_named() -> None:
    session = FetchSession()
    session.plan([(("a", 0), leader(1), 5, -1)])
    session.answered(77)
    plan = session.plan([(("a", 0), leader(2), 0, -1)])
    assert [each[1].topic_id for each in plan.changed] == [UUID(int=2)]
    assert [leader.topic_id for _, leader in plan.forgotten] == [UUID(int=1)]


def test_a_partition_whose_leader_has_another_epoch_is_named_and_no_other() -> None:
    session = FetchSession()
    session.plan(wanted(a=5, b=5))
    session.answered(77)
    plan = session.plan([(("a", 0), PartitionLeader(1, 3, UUID(int=1)), 5, 2), *wanted(b=5)])
    assert [(tp, leader.epoch, before) for tp, leader, _, before in plan.changed] == [(("a", 0), 3, 2)]
    assert plan.forgotten == []


def test_the_number_of_a_request_wraps_to_one() -> None:
    session = FetchSession()
    session.plan(wanted(a=0))
    session.answered(77)
    session._epoch = 2**31 - 1
    session.answered(77)
    assert session.plan(wanted(a=0)).epoch == 1


class Broker:
    """A session as KIP-227 has it."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[str, int], int] = {}
        self.epoch = 0

    def fetch(self, session: FetchSession, asked: list[FetchPosition]) -> dict[tuple[str, int], int]:
        plan = session.plan(asked)
        if plan.session_id == 0:
            self.partitions, self.epoch = {}, 0
        assert plan.epoch == self.epoch
        for tp, _ in plan.forgotten:
            del self.partitions[tp]
        self.partitions.update({tp: offset for tp, _, offset, _ in plan.changed})
        self.epoch += 1
        session.answered(77)
        return self.partitions


@given(
    st.lists(
        st.one_of(st.none(), st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3), max_size=6)), max_size=30
    )
)
def test_fetch_session_of_the_broker_matches_what_is_wanted(rounds: list[dict[str, int] | None]) -> None:
    session, broker = FetchSession(), Broker()
    for offsets in rounds:
        if offsets is None:
            session.reset()
        else:
            asked = wanted(**offsets)
            assert broker.fetch(session, asked) == {tp: offset for tp, _, offset, _ in asked}


def test_a_plan_with_another_size_names_all_partitions_again() -> None:
    session = FetchSession()
    session.plan(wanted(a=0, b=0), 1000)
    session.answered(7)
    assert session.plan(wanted(a=0, b=0), 1000).changed == []
    session.answered(7)
    again = session.plan(wanted(a=0, b=0), 500)
    assert (again.changed, again.forgotten) == (wanted(a=0, b=0), [])
    session.answered(7)
    assert session.plan(wanted(a=0, b=0), 500).changed == []
