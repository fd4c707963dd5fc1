"""A flow that goes on with other settings: its session ends in order, and the next has them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_config.flow.client_settings import StoresUnusable
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.errors import ClusterError
from lockstep_runtime.membership.flow_runner import FlowRunner
from tests.support.eventually import eventually
from tests.support.flow_context import flow_context


class Sessions(FlowRunner):
    """A runner whose sessions only wait; each writes down what it was begun with."""

    def __init__(self, folder: Path) -> None:
        nobody: Any = None
        ctx = flow_context(folder, "heartbeat")

        class Service:
            async def run(self) -> None: ...

        service: Any = Service()
        super().__init__(ctx, service, nobody)
        self.begun: list[float] = []
        self.ended = 0
        self.trouble: ClusterError | None = None

    async def _session(self) -> None:
        self.begun.append(self.ctx.settings.admin_timeout.total_seconds())
        try:
            if self.trouble is not None:
                raise self.trouble
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # what ends takes its time
            self.ended += 1

    def other(self, seconds: float) -> FlowSettings:
        return replace(self.ctx.settings, admin_timeout=timedelta(seconds=seconds))


@asynccontextmanager
async def running(runner: Sessions) -> AsyncIterator[None]:
    task = asyncio.create_task(runner.run())
    yield
    await cancelled([task])


async def test_a_session_ends_in_order_and_the_next_begins_at_once(tmp_path: Path) -> None:
    runner = Sessions(tmp_path)
    async with running(runner):
        await eventually(lambda: len(runner.begun) == 1)
        before = runner.ctx.source._conf, runner.ctx.target._conf
        await runner.renew(runner.other(7))
        await eventually(lambda: len(runner.begun) == 2)
        assert (runner.begun, runner.ended) == ([60.0, 7.0], 1)
        assert runner.ctx.source._conf is not before[0]
        assert runner.ctx.target._conf is not before[1]
        assert runner._restarts.failures == 0
    assert runner.ended == 2


async def test_flow_renewal_ends_a_wait_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Sessions(tmp_path)
    runner._restarts.backoff.first = runner._restarts.backoff.limit = 60.0
    runner.trouble = ClusterError("B", "away")
    async with running(runner):
        await eventually(lambda: runner.ended == 1)
        runner.trouble = None
        await runner.renew(runner.other(7))
        await eventually(lambda: len(runner.begun) == 2)


async def test_stores_that_do_not_serve_for_the_moment_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = Sessions(tmp_path)
    runner._restarts.backoff.first = runner._restarts.backoff.limit = 0.01
    tries: list[None] = []
    target_admin = client_settings.target_admin

    def half_written(settings: FlowSettings, role: str) -> dict[str, Any]:
        tries.append(None)
        if len(tries) < 3:
            raise StoresUnusable("the key does not belong to the certificate")
        return target_admin(settings, role)

    monkeypatch.setattr(client_settings, "target_admin", half_written)
    async with running(runner):
        await eventually(lambda: len(runner.begun) == 1)
        await runner.renew(runner.other(7))
        await eventually(lambda: len(runner.begun) == 2)
        assert len(tries) == 3
        assert runner.begun[-1] == 7.0
