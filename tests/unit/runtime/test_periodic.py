"""Work in rounds: sooner when asked, back-off, one line for a trouble."""

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from lockstep_config.credentials.permissions import Remedy
from lockstep_runtime.flow.periodic import SAID_AT_ONCE, FailureTracker, PeriodicTasks
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.errors import ClusterError, ClusterUnreachable, NotPermitted, TopicDeleted
from tests.support.eventually import eventually

LONG = timedelta(hours=1)
AWAY = ClusterUnreachable("B", "b:9092", "refused")
DENIED = NotPermitted("B", "to create", "topic x")


@contextmanager
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    lines: list[str] = []
    with caplog.at_level(logging.INFO, logger="lockstep.test"):
        yield lines
    lines += [record.getMessage() for record in caplog.records]


async def test_a_refresh_waits_for_a_round_that_began_after_it() -> None:
    rounds = PeriodicTasks(FlowLog("test", "A->B"), asyncio.get_running_loop().time)
    began: list[int] = []
    go_on = asyncio.Event()

    async def round_() -> None:
        began.append(len(began))
        if len(began) == 1:
            await go_on.wait()

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(rounds.every("work", LONG, round_))
        while not began:
            await asyncio.sleep(0)
        refresh = tasks.create_task(rounds.refresh())  # while the first round is under way
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.wait_for(refresh, 5.0)
        assert began == [0, 1]
        work.cancel()


async def test_refresh_that_fails_has_its_cause() -> None:
    rounds = PeriodicTasks(FlowLog("test", "A->B"), asyncio.get_running_loop().time)
    troubled: list[ClusterError] = []

    async def round_() -> None:
        if troubled:
            raise troubled[0]

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(rounds.every("work", LONG, round_))
        await asyncio.wait_for(rounds_done(rounds), 5.0)
        troubled.append(DENIED)
        with pytest.raises(NotPermitted):
            await asyncio.wait_for(rounds.refresh(), 5.0)
        assert rounds.troubles.now == {"work": str(DENIED)}
        troubled.clear()
        await asyncio.wait_for(rounds.refresh(), 5.0)
        assert rounds.troubles.now == {}
        work.cancel()


async def test_mm2_036_round_without_an_answer_is_retried_before_its_interval() -> None:
    ended: list[bool] = []
    rounds = PeriodicTasks(
        FlowLog("test", "A->B"), asyncio.get_running_loop().time, lambda _, failed: ended.append(failed)
    )

    async def round_() -> None:
        if not ended:
            raise AWAY

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(rounds.every("work", LONG, round_))
        await eventually(lambda: len(ended) == 2, within=5.0)
        assert ended == [True, False]
        assert rounds.troubles.now == {}
        work.cancel()


async def rounds_done(rounds: PeriodicTasks) -> None:
    await asyncio.sleep(0)
    await rounds.refresh()


async def test_a_round_that_is_much_work_is_followed_by_a_long_rest() -> None:
    loop = asyncio.get_running_loop()
    rounds = PeriodicTasks(FlowLog("test", "A->B"), loop.time)
    began: list[float] = []
    ended: list[float] = []

    async def round_() -> None:
        began.append(loop.time())
        work_for(0.05)
        ended.append(loop.time())

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(rounds.every("work", timedelta(seconds=0.06), round_, rest=3.0))
        await eventually(lambda: len(began) == 2)
        assert began[1] - ended[0] >= 3.0 * 0.05 - 0.001, "not when the interval was over"
        work.cancel()


async def test_a_round_that_waited_for_a_cluster_is_not_rested_from() -> None:
    rounds = PeriodicTasks(FlowLog("test", "A->B"), asyncio.get_running_loop().time)
    began = 0

    async def round_() -> None:
        nonlocal began
        began += 1
        await asyncio.sleep(0.2)

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(rounds.every("work", timedelta(seconds=0.06), round_, rest=1e2))
        await eventually(lambda: began == 2, within=10.0)
        work.cancel()


def work_for(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


async def test_hurried_round_does_not_wait_for_its_rest() -> None:
    rounds = PeriodicTasks(FlowLog("test", "A->B"), asyncio.get_running_loop().time)

    async def round_() -> None:
        work_for(0.001)

    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(rounds.every("work", LONG, round_, rest=1e6))
        await asyncio.wait_for(rounds_done(rounds), 5.0)
        await asyncio.wait_for(rounds.refresh(), 5.0)
        work.cancel()


async def test_round_that_raises_another_error_fails_and_frees_all_waiting() -> None:
    rounds = PeriodicTasks(FlowLog("test", "A->B"), asyncio.get_running_loop().time)
    go_on = asyncio.Event()

    async def round_() -> None:
        await go_on.wait()
        raise LookupError

    work = asyncio.create_task(rounds.every("work", LONG, round_))
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(LookupError):
        await work
    rounds.reset()
    await asyncio.wait_for(rounds.refresh(), 5.0)  # nothing is left to wait for


def test_unreachable_cluster_is_logged_once_for_all_failures(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    with heard(caplog) as lines:
        troubles.began("one", AWAY)
        troubles.began("two", AWAY)
        troubles.began("one", ClusterUnreachable("B", "b:9092", "timed out"))
        troubles.over("one")
        troubles.over("two")
        troubles.over("two")
    assert lines == ["cluster unreachable", "cluster reachable again"]


def test_other_failures_are_logged_when_they_begin_or_change(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    with heard(caplog) as lines:
        troubles.began("one", DENIED)
        troubles.began("one", DENIED)
        troubles.began("one", NotPermitted("B", "to create", "topic y"))
        troubles.over("one")
    assert lines == ["one failing", "one failing", "one recovered"]


def test_first_of_many_failures_are_named(caplog: pytest.LogCaptureFixture) -> None:
    troubles, names = FailureTracker(FlowLog("test", "A->B")), [f"p-{number}" for number in range(SAID_AT_ONCE + 3)]
    with heard(caplog) as lines:
        for text in ("no leader", "still none"):
            for name in names:
                troubles.began(name, ClusterError("B", text))
        assert troubles.now.keys() == set(names)
        for name in reversed(names):
            troubles.over(name)
        troubles.began("p-0", ClusterError("B", "again"))
    named = names[:SAID_AT_ONCE]
    failing, recovered = [f"{name} failing" for name in named], [f"{name} recovered" for name in reversed(named)]
    assert lines == [*failing, "others failing", *failing, "others recovered", *recovered, "p-0 failing"]


def test_number_of_unnamed_failures_is_logged_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    caplog.set_level(logging.INFO, logger="lockstep.test")
    for _ in range(2):
        for number in range(SAID_AT_ONCE + 3):
            troubles.began(f"p-{number}", ClusterError("B", "no leader"))
        caplog.clear()
        for number in range(SAID_AT_ONCE + 3):
            troubles.over(f"p-{number}")
        (record,) = (each for each in caplog.records if each.message == "others recovered")
        assert record.__dict__["text"] == "all that were not named, 3"
    assert not troubles.now


def test_missing_permission_is_logged_once_with_its_end(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    remedy, other = Remedy("we lack Write on topic x", "grant A."), Remedy("we lack Read on topic x", "grant *")
    with heard(caplog) as lines:
        for name in ("x-0", "x-1", "y-0"):
            troubles.began(name, NotPermitted("B", "WRITE", f"topic {name}", remedy))
        troubles.began("z-0", NotPermitted("B", "READ", "topic z", other))
        assert len(troubles.now) == 4
        for name in ("x-0", "y-0", "x-1", "z-0"):
            troubles.over(name)
    assert lines == ["x-0 failing", "z-0 failing", "x-1 recovered", "z-0 recovered"]


def test_a_cluster_that_answers_with_a_refusal_is_reachable_again(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"))
    with heard(caplog) as lines:
        troubles.began("one", AWAY)
        troubles.began("one", DENIED)
    assert lines == ["cluster unreachable", "one failing", "cluster reachable again"]


def test_failures_logged_by_another_service_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    troubles = FailureTracker(FlowLog("test", "A->B"), others_say={"B"})
    with heard(caplog) as lines:
        troubles.began("copying", AWAY)
        troubles.began("progress", ClusterUnreachable("A", "a:9092", "refused"))
        assert troubles.now["copying"] == str(AWAY)
        troubles.over("copying")
        troubles.over("progress")
        troubles.began("copying", DENIED)
    assert lines == ["cluster unreachable", "cluster reachable again", "copying failing"]


def test_deleted_topic_is_logged_as_deleted(caplog: pytest.LogCaptureFixture) -> None:
    with heard(caplog) as lines:
        troubles = FailureTracker(FlowLog("test", "A->B"))
        for _ in range(2):
            troubles.began("orders-0", TopicDeleted("A", "orders"))
        troubles.over("orders-0")
    assert lines == ["orders-0 deleted", "orders-0 recovered"]
    text = "topic orders was deleted on cluster A: a broker says that there is none; it is looked for again"
    assert caplog.records[0].__dict__["text"] == text
