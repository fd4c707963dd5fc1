"""What a slot has in flight stays below the cap, a partition that holds little can always go on, and who had to wait is
told when there is room."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_data_plane.fetch.memory_budget import FetchBudget, MemoryBudget

MIB = 1 << 20
CAP = 64 * MIB


def grant(
    flight: MemoryBudget,
    *,
    connections: int = 2,
    partitions: int = 8,
    max_partition_bytes: int = MIB,
    max_bytes: int = 50 * MIB,
) -> FetchBudget | None:
    return flight.grant(
        connections=connections, partitions=partitions, max_partition_bytes=max_partition_bytes, max_bytes=max_bytes
    )


def some(budget: FetchBudget | None) -> FetchBudget:
    assert budget is not None
    return budget


def test_memory_budget_with_room_gives_each_partition_its_usual_size() -> None:
    flight = MemoryBudget(CAP)
    budget = some(grant(flight))
    assert (budget.max_partition_bytes, budget.is_tight) == (MIB, False)
    assert budget.max_bytes >= 4 * MIB, "all that four partitions may bring"
    for number in range(8):
        flight.set_held(number, 4 * MIB)
    assert (flight.held, some(grant(flight)).max_partition_bytes, some(grant(flight)).below) == (
        32 * MIB,
        MIB,
        16 * MIB,
    )


def test_memory_budget_for_a_far_broker_is_two_fetches_of_all_partitions() -> None:
    budget = some(grant(MemoryBudget(CAP), max_partition_bytes=4 * MIB))
    assert (budget.max_partition_bytes, budget.max_bytes) == (4 * MIB, 16 * MIB)


def test_memory_budget_of_all_connections_is_half_of_the_cap() -> None:
    flight = MemoryBudget(CAP)
    for connection in range(16):
        budget = some(grant(flight, connections=16, partitions=2000))
        flight.reserve(connection, budget.max_bytes)
    assert (flight.held, sum(flight._requested.values())) == (0, CAP // 2)


def test_memory_budget_of_a_stuck_partition_leaves_as_much_for_others() -> None:
    flight = MemoryBudget(CAP)
    for _ in range(100):
        budget = some(grant(flight))
        if flight.held_by("stuck") >= budget.below:
            break
        flight.set_held("stuck", flight.held_by("stuck") + budget.max_partition_bytes)
    assert flight.held_by("stuck") == CAP * 3 // 8
    assert some(grant(flight)).below == CAP * 3 // 8


def test_memory_budget_with_little_room_gives_little_to_small_holders() -> None:
    flight = MemoryBudget(CAP)
    flight.set_held("stuck", CAP * 3 // 4)
    own = CAP // (8 * 200)
    assert grant(flight, partitions=200) == FetchBudget(own + 1, own, 16 * MIB, is_tight=True)
    flight.set_held("others", CAP // 4 - own)
    assert some(grant(flight, partitions=200)).max_bytes == own
    flight.set_held("others", CAP // 4 - own + 1)
    assert grant(flight, partitions=200) is None


def test_memory_budget_gives_few_partitions_large_steps_with_little_room() -> None:
    flight = MemoryBudget(CAP)
    flight.set_held("stuck", CAP * 3 // 4)
    assert some(grant(flight, partitions=8)).max_partition_bytes == MIB


def test_a_small_cap_is_a_cap_whatever_a_fetch_is_configured_to_bring() -> None:
    budget = some(grant(MemoryBudget(MIB), partitions=1))
    assert (budget.max_partition_bytes, budget.max_bytes) == (MIB // 4, MIB // 4)


def test_a_batch_larger_than_all_there_is_passes_and_then_nothing_does() -> None:
    flight = MemoryBudget(MIB)
    flight.reserve("connection", some(grant(flight)).max_bytes)
    flight.reserve("connection", 0)
    flight.set_held("large", 10 * MIB)
    assert grant(flight) is None
    assert flight.set_held("large", 0)
    assert not some(grant(flight)).is_tight


def test_memory_budget_wakes_a_reduced_partition_once_at_the_usual_room() -> None:
    flight = MemoryBudget(CAP)
    flight.set_held(1, 40 * MIB)
    flight.reserve("other", 8 * MIB)
    assert some(grant(flight)).is_tight
    assert not flight.set_held(1, 39 * MIB + 1)
    assert flight.set_held(1, 39 * MIB)
    assert not flight.set_held(1, 0), "nobody waits any more"
    flight.set_held(1, 40 * MIB)
    assert some(grant(flight)).is_tight
    assert flight.reserve("other", 0), "what was asked for and did not come is room as well"


def test_memory_budget_wakes_a_waiting_partition_at_the_first_free_room() -> None:
    flight = MemoryBudget(CAP)
    flight.set_held(1, CAP)
    assert grant(flight) is None
    assert not flight.set_held(1, CAP - CAP // 64 + 1)
    assert flight.set_held(1, CAP - CAP // 64)


def test_memory_budget_of_a_partition_that_leaves_is_freed() -> None:
    flight = MemoryBudget(CAP)
    flight.set_held("gone", 5)
    flight.set_held("there", 7)
    flight.set_held("gone", 0)
    flight.set_held("never there", 0)
    assert (flight.held, flight.held_by("gone"), flight.held_by("there")) == (7, 0, 7)


@dataclass
class Slot:
    """Connections with partitions of their own, that ask and are answered; the target takes nothing of those that are
    stuck. Batches are `batch` bytes."""

    cap: int
    fetched: list[list[int]]
    max_partition_bytes: int
    batch: int = 1
    stuck: set[int] = field(default_factory=set)
    asked: dict[int, tuple[FetchBudget, list[int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.flight = MemoryBudget(self.cap)
        self.partitions = sum(map(len, self.fetched))

    def grant(self) -> FetchBudget | None:
        used = [number for number, partitions in enumerate(self.fetched) if partitions]
        return grant(
            self.flight, connections=len(used), partitions=self.partitions, max_partition_bytes=self.max_partition_bytes
        )

    def ask(self, connection: int) -> bool:
        """Whether it is waiting for an answer then."""
        budget = self.grant()
        if connection in self.asked or budget is None:
            return connection in self.asked
        roomy = [p for p in self.fetched[connection] if self.flight.held_by(p) < budget.below]
        if roomy:
            self.asked[connection] = budget, roomy
            self.flight.reserve(connection, min(budget.max_bytes, len(roomy) * budget.max_partition_bytes))
        return bool(roomy)

    def answer(self, connection: int, first: int) -> None:
        """As much as may come of each in turn; the first batch comes whatever its size."""
        if connection not in self.asked:
            return
        budget, roomy = self.asked.pop(connection)
        remaining = budget.max_bytes
        begin = first % len(roomy)
        for at, partition in enumerate((*roomy[begin:], *roomy[:begin])):
            size = min(budget.max_partition_bytes, remaining) // self.batch * self.batch
            size = max(size, self.batch) if not at else size
            remaining = max(0, remaining - size)
            self.flight.set_held(partition, self.flight.held_by(partition) + size)
        self.flight.reserve(connection, 0)

    def drain(self) -> None:
        for partitions in self.fetched:
            for partition in partitions:
                if partition not in self.stuck:
                    self.flight.set_held(partition, 0)


@st.composite
def slots(draw: st.DrawFn, *, batch: int) -> Slot:
    counts = draw(st.lists(st.integers(1, 40), min_size=1, max_size=6))
    numbers = iter(range(sum(counts)))
    fetched = [[next(numbers) for _ in range(count)] for count in counts]
    stuck = draw(st.sets(st.integers(0, sum(counts) - 1)))
    return Slot(draw(st.integers(1, 64)) * MIB, fetched, draw(st.integers(1, 4)) * MIB, batch, stuck)


TURNS = st.lists(st.tuples(st.sampled_from(["ask", "answer", "drain"]), st.integers(0, 239)), max_size=60)


@pytest.mark.parametrize("batch", [1, 3 * MIB])
@given(st.data(), TURNS)
@settings(deadline=None)
def test_memory_budget_is_exceeded_by_one_large_batch_of_each_connection_at_most(
    batch: int, data: st.DataObject, turns: list[tuple[str, int]]
) -> None:
    slot = data.draw(slots(batch=batch))
    for what, which in turns:
        if what == "drain":
            slot.drain()
        elif what == "ask":
            slot.ask(which % len(slot.fetched))
        else:
            slot.answer(which % len(slot.fetched), which)
        if batch == 1:
            assert slot.flight._used <= slot.cap
        else:
            assert slot.flight.held <= slot.cap + len(slot.fetched) * slot.batch


@given(slots(batch=1))
@settings(deadline=None)
def test_memory_budget_with_stuck_partitions_lets_the_others_go_on(slot: Slot) -> None:
    """A connection that has a partition which moves is always told to ask, and of that partition as well."""
    moving = {p for partitions in slot.fetched for p in partitions} - slot.stuck
    for turn in range(3 * slot.partitions):
        for connection, partitions in enumerate(slot.fetched):
            waits = slot.ask(connection)
            if moving & set(partitions):
                assert waits
                assert moving & set(partitions) <= set(slot.asked[connection][1])
        for connection in range(len(slot.fetched)):
            slot.answer(connection, turn)
        slot.drain()


@pytest.mark.parametrize("count", [33, 200, 1000, 5000])
def test_a_slot_full_of_stuck_partitions_holds_no_more_than_the_cap(count: int) -> None:
    slot = Slot(CAP, [list(range(0, count, 2)), list(range(1, count, 2))], MIB, stuck=set(range(count)))
    for turn in range(4000):
        for connection in (0, 1):
            slot.ask(connection)
        for connection in (0, 1):
            slot.answer(connection, turn)
    assert CAP // 2 < slot.flight.held <= CAP


@settings(max_examples=300)
@given(held=st.lists(st.integers(0, 16 * MIB), min_size=1, max_size=12), asked=st.integers(0, 40 * MIB))
def test_memory_budget_may_take_whatever_a_grant_lets_ask_for(held: list[int], asked: int) -> None:
    flight = MemoryBudget(CAP)
    flight.reserve("connection", asked)
    for number, size in enumerate(held):
        flight.set_held(number, size)
    budget = grant(flight, partitions=len(held))
    for number, size in enumerate(held):
        if budget is not None and size < budget.below:
            assert flight.may_take(number, len(held))


def test_memory_budget_may_not_take_a_partition_that_holds_all_there_is() -> None:
    flight = MemoryBudget(CAP)
    flight.set_held("greedy", CAP * 3 // 4)
    assert not flight.may_take("greedy", 8)
    assert flight.may_take("other", 8)
