"""A driver that stops cancels each slot whose end cannot be written down."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lockstep_data_plane.driver.driver import Driver
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, LeadershipLost, NotPermitted
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_state.rows.state_rows import Assignment


class RefusingState:
    """Writes no row."""

    def __init__(self, error: Exception) -> None:
        self._why = error

    def get(self, kind: type, *identity: str) -> None:
        return None

    async def write_all(self, rows: Any) -> None:
        assert all(isinstance(row, Assignment) and row.ending for row in rows)
        raise self._why


class Spark:
    def __init__(self) -> None:
        self.cancelled: list[str] = []

    async def cancel(self, spec: str) -> None:
        self.cancelled.append(spec)


@pytest.mark.parametrize(
    "error",
    [
        ClusterUnreachable("B", "b:9092", "refused"),
        NotPermitted("B", "WRITE", "topic state"),
        ClusterError("B", "the row was not appended"),
        LeadershipLost("another leads"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_driver_cancels_slots_whose_end_cannot_be_written(error: Exception) -> None:
    driver = object.__new__(Driver)
    spark = Spark()
    driver.spark = cast(Any, spark)
    driver.ctx = cast(Any, SimpleNamespace(state=RefusingState(error), log=FlowLog("data-plane", "A->B")))
    task = asyncio.create_task(asyncio.sleep(3600))
    driver._running = {0: cast(Any, SimpleNamespace(slot=0, spec="run-1", task=task, stop=lambda: None))}
    await driver._drain()
    assert spark.cancelled == ["run-1"]
    assert task.cancelled()
    assert driver._running == {}
