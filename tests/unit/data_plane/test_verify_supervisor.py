"""Slots that compare run while there is something to compare, and leave their places; their results are metrics."""

import asyncio
from dataclasses import replace

import pytest

from lockstep_config.keys.lockstep_settings import VerifySettings
from lockstep_data_plane.driver.verify_supervisor import VerifySupervisor
from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_data_plane.verify.partition_share import comparing_slot, copied_partitions
from lockstep_state.commands.command import Command
from lockstep_state.commands.command_vocabulary import FLOW, VERIFY, Scope, ScopeKind
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, Verification, VerifiedPartition
from tests.support.eventually import eventually
from tests.support.metered_driver import Driver, T, row
from tests.support.reasons import reported

WHOLE = VerifiedPartition(topic="t", partition=0, first=0, upstream=9, downstream=9, records=10, verified_ms=T - 5_000)
REQUEST = Verification(id="one")


class Spark:
    """Slots that run until they are cancelled."""

    def __init__(self) -> None:
        self.running: set[int] = set()
        self.cancelled: list[int] = []

    async def run_slot(self, spec: SlotSpec) -> int:
        self.running.add(spec.slot)
        try:
            await asyncio.Event().wait()
        finally:
            self.running.discard(spec.slot)
        return 0

    async def cancel(self, spec: SlotSpec) -> None:
        self.cancelled.append(spec.slot)


@pytest.fixture
def driver() -> Driver:
    return Driver()


def supervised(driver: Driver, *, enabled: bool = False, slots: int = 1) -> tuple[VerifySupervisor, Spark]:
    driver.settings.data_plane.verify = VerifySettings(enabled=enabled, tasks_max=slots)
    spark = Spark()
    return VerifySupervisor(driver, spark, Spec), spark  # type: ignore[arg-type]  # the attributes it reads


class Spec:
    """As much of a `SlotSpec` as a supervisor and this Spark need."""

    def __init__(self, slot: int) -> None:
        self.slot = slot


async def some_ticks() -> None:
    await asyncio.sleep(0.05)


# -- metrics -----------------------------------------------------------------------------------------------------------


def test_verified_lag_counts_since_everything_was_verified(driver: Driver) -> None:
    supervised(driver, enabled=True)
    driver.say(row(upstream=9), WHOLE)
    assert driver.value("lockstep_verified_lag_seconds", topic="t") == 0
    driver.say(row(upstream=10))
    assert driver.value("lockstep_verified_lag_seconds", topic="t") == 5
    driver.now += 60_000
    assert driver.value("lockstep_verified_lag_seconds", topic="t") == 65


def test_verified_lag_of_what_was_never_compared_counts_from_the_start(driver: Driver) -> None:
    supervised(driver, enabled=True)
    driver.say(row(upstream=9))
    driver.now += 7_000
    assert driver.value("lockstep_verified_lag_seconds", topic="t") == 7


@pytest.mark.parametrize(
    ("progress", "verified", "counts"),
    [
        (row(upstream=9), replace(WHOLE, cause=reported("cluster B does not answer")), True),
        (row(upstream=3, gaps=(("target-truncated", 1),)), replace(WHOLE, differences=(("value", 2),)), False),
    ],
    ids=["it waits", "its log is gone, and was verified last before that"],
)
def test_verified_lag_of_a_partition_that_is_not_verified_grows(
    driver: Driver, progress: PartitionProgress, verified: VerifiedPartition, counts: bool
) -> None:
    supervised(driver, enabled=True)
    driver.say(progress, verified)
    assert driver.value("lockstep_verified_lag_seconds", topic="t") == 5
    assert ("lockstep_verify_differences" in driver.page()) is counts


def test_verified_lag_is_shown_only_where_copies_are_followed(driver: Driver) -> None:
    supervised(driver)
    driver.say(row(upstream=10), replace(WHOLE, differences=(("value", 2), ("missing", 1)), not_verified=(("x", 4),)))
    page = driver.page()
    assert "lockstep_verified_lag_seconds" not in page
    assert page["lockstep_verify_differences"] == [({"flow": "A->B", "topic": "t"}, 3)]
    assert page["lockstep_not_verified_records"] == [({"flow": "A->B", "topic": "t"}, 4)]


def test_driver_that_does_not_lead_shows_nothing_verified(driver: Driver) -> None:
    supervised(driver, enabled=True)
    driver.say(row(upstream=9), WHOLE)
    driver.is_acting = False
    assert "lockstep_verify_differences" not in driver.page()


# -- slots -------------------------------------------------------------------------------------------------------------


def test_partitions_of_a_topic_are_shared_evenly_by_slots() -> None:
    slots = [comparing_slot(("orders", number), 3) for number in range(9)]
    assert sorted(slots) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_partitions_without_a_copy_are_not_compared() -> None:
    topics = [
        MirroredTopic(source_topic="b", target_topic="A.b", partitions=3, target_partitions=2),
        MirroredTopic(source_topic="a", target_topic="A.a", partitions=1, target_partitions=1),
        MirroredTopic(source_topic="c", target_topic="A.c", partitions=1, target_partitions=1, phase="deleted"),
    ]
    assert copied_partitions(topics, by_key=False) == [("a", 0), ("b", 0), ("b", 1)]


def test_request_leaves_the_partitions_that_are_not_done(driver: Driver) -> None:
    supervisor, _ = supervised(driver)
    assert supervisor.remaining(REQUEST) == [], "nothing is copied"
    driver.say(row(0, upstream=9), row(1, upstream=9))
    assert supervisor.remaining(REQUEST) == [("t", 0), ("t", 1)]
    driver.say(replace(WHOLE, request="one", done=True), replace(WHOLE, partition=1, request="former", done=True))
    assert supervisor.remaining(REQUEST) == [("t", 1)]
    assert supervisor.remaining(replace(REQUEST, topics=("other",))) == []


async def test_only_slots_with_something_to_compare_are_started(driver: Driver) -> None:
    supervisor, spark = supervised(driver, slots=2)
    driver.say(row(0, upstream=9), row(1, upstream=9), replace(WHOLE, request="one", done=True), REQUEST)
    async with supervisor.running():
        await some_ticks()
        assert spark.running == {comparing_slot(("t", 1), 2)}
    await some_ticks()
    assert spark.running == set()
    assert spark.cancelled == [comparing_slot(("t", 1), 2)]


async def test_slots_leave_their_places_while_one_that_copies_has_none(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep_data_plane.driver.verify_supervisor.TICK_S", 0.01)
    supervisor, spark = supervised(driver, enabled=True, slots=2)
    async with supervisor.running():
        await some_ticks()
        assert spark.running == {0, 1}
        supervisor.check(crowded=True)
        await eventually(lambda: spark.running == set())
        supervisor.check(crowded=False)
        await eventually(lambda: spark.running == {0, 1})


# -- commands ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"depth": "deep"}, "there is no depth 'deep': there are count, crc, bytes, record"),
        ({"topics": ["nobody"]}, "no topic that the flow mirrors is called nobody"),
        ({"topics": ["("]}, "is no list of patterns"),
        ({"topics": 5}, "is no list of patterns"),
        ({"topics": "t"}, "is no list of patterns"),
        ({"max_bytes_per_s": -1}, "max_bytes_per_s is -1: it takes a number of bytes of 64 bits, 0 for no limit"),
        ({"max_bytes_per_s": 2**63}, "max_bytes_per_s is 9223372036854775808"),
        ({"max_bytes_per_s": True}, "max_bytes_per_s is True"),
    ],
)
async def test_request_that_cannot_be_carried_out_is_refused(
    driver: Driver, arguments: dict[str, object], sentence: str
) -> None:
    supervisor, _ = supervised(driver)
    command = Command(id="one", verb=VERIFY, subject=str(FLOW), arguments=arguments)
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        await supervisor.carry_out(command, Scope(ScopeKind.FLOW, ""))
    assert driver.state.get(Verification, "request") is None


async def test_other_verbs_are_left_to_others() -> None:
    supervisor, _ = supervised(Driver())
    command = Command(id="one", verb="pause", subject=str(FLOW))
    assert await supervisor.carry_out(command, Scope(ScopeKind.FLOW, "")) is None
