"""A task that waits for a broker is woken by the first success, and keeps its pause between tries (`RetryGate`)."""

import asyncio
import time

import pytest

from lockstep_data_plane.slot import partition_task
from lockstep_data_plane.slot.partition_task import RetryGate
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.wire.connection_errors import BrokerUnreachable

LONG = 3_600.0


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_task, "AT_LEAST_S", 0.02)


async def _waiting(company: RetryGate, changes: list[asyncio.Event], seconds: float) -> list[asyncio.Task[None]]:
    waits = [asyncio.create_task(company.pause(changed, seconds)) for changed in changes]
    await asyncio.sleep(0)
    return waits


async def test_retry_gate_wakes_all_waiting_after_one_success() -> None:
    company, changes = RetryGate(), [asyncio.Event() for _ in range(3)]
    waits = await _waiting(company, changes, LONG)
    await asyncio.sleep(0.05)
    assert not any(wait.done() for wait in waits)
    company.wake_all()
    await asyncio.wait_for(asyncio.gather(*waits), 1.0)


async def test_retry_gate_holds_a_recent_failure_for_its_minimum_only() -> None:
    company, begun = RetryGate(), time.monotonic()
    waits = await _waiting(company, [asyncio.Event()], LONG)
    company.wake_all()
    await asyncio.sleep(0)
    assert not waits[0].done(), "it would ask again and again while one after the other gets through"
    await asyncio.wait_for(waits[0], 1.0)
    assert time.monotonic() - begun >= 0.02


async def test_retry_gate_ignores_an_earlier_success() -> None:
    company = RetryGate()
    company.wake_all()
    waits = await _waiting(company, [asyncio.Event()], LONG)
    await asyncio.sleep(0.05)
    assert not waits[0].done()
    waits[0].cancel()


async def test_a_change_of_its_own_ends_it_at_once() -> None:
    company, changed = RetryGate(), asyncio.Event()
    changed.set()
    await asyncio.wait_for(company.pause(changed, LONG), 1.0)
    changed.clear()
    waits = await _waiting(company, [changed], LONG)
    await asyncio.sleep(0.05)
    changed.set()
    await asyncio.wait_for(waits[0], 1.0)


async def test_retry_gate_waits_at_most_its_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_task, "AT_MOST_S", 0.06)
    company, begun = RetryGate(), time.monotonic()
    await asyncio.wait_for(company.pause(asyncio.Event(), LONG), 1.0)
    assert time.monotonic() - begun >= 0.06
    company.wake_all()


async def test_retry_gate_does_not_wake_a_cancelled_task() -> None:
    company, changed = RetryGate(), asyncio.Event()
    waits = await _waiting(company, [changed], LONG)
    await asyncio.sleep(0.05)
    waits[0].cancel()
    await asyncio.wait(waits)
    company.wake_all()
    assert not changed.is_set()


async def test_retry_gate_shares_failures_of_the_broker_only() -> None:
    company = RetryGate()
    refused = ClusterError("B", "cluster B: topic mm2-lockstep-quarantine.A.internal may not be written")
    away = BrokerUnreachable("127.0.0.1:9092: connection refused", "B")
    apart = asyncio.create_task(company.wait(refused, asyncio.Event(), LONG))
    together = asyncio.create_task(company.wait(away, asyncio.Event(), LONG))
    await asyncio.sleep(0.05)
    company.wake_all()
    await asyncio.wait_for(together, 1.0)
    assert not apart.done(), "that a broker is back changes nothing about a refusal"
    apart.cancel()
