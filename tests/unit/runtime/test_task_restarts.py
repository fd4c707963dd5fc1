"""A task of a flow that fails is run again, and each error is reported once."""

import asyncio

import pytest

from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable
from lockstep_runtime.util import task_restarts
from lockstep_runtime.util.task_restarts import TaskRestarts
from tests.support.eventually import eventually

AWAY, REFUSED = ClusterUnreachable("B", "b:9092", "refused"), ClusterError("B", "no leader")


@pytest.mark.parametrize(
    ("error", "pauses"), [(REFUSED, [0.5, 1.0, 2.0, 4.0, 8.0, 10.0]), (AWAY, [0.5, 1.0, 2.0, 4.0, 5.0, 5.0])]
)
async def test_task_is_run_again_after_pauses_that_double(
    monkeypatch: pytest.MonkeyPatch, error: ClusterError, pauses: list[float]
) -> None:
    waits, reported = list[float](), list[ClusterError]()

    async def waited(_: asyncio.Event, seconds: float) -> bool:
        waits.append(seconds)
        await asyncio.sleep(0)
        return False

    async def fail() -> None:
        raise ExceptionGroup("tasks", [error])

    monkeypatch.setattr(task_restarts, "set_within", waited)
    restarts = TaskRestarts(reported.append, lambda: 0.0, longest_s=10.0)
    running = asyncio.create_task(restarts.run_forever(fail))
    await eventually(lambda: len(waits) >= len(pauses))
    await cancelled([running])
    assert waits[: len(pauses)] == pauses
    assert reported == [error] * restarts.failures


async def test_task_that_raises_another_error_ends() -> None:
    async def fail() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await TaskRestarts(lambda _: None).run_forever(fail)
