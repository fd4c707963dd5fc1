"""The process of the console: its flows, its pages, its end. It keeps nothing, so it may be killed at any time."""

import asyncio
import gc
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lockstep_config import FlowSettings
from lockstep_console.access import ConsoleAccess
from lockstep_console.actions.decision_runner import DecisionRunner
from lockstep_console.actions.switch_runner import SwitchRunner
from lockstep_console.changes import ChangeBroadcast
from lockstep_console.console import Console, ConsoleIdentity
from lockstep_console.flow_watches import FlowWatches
from lockstep_console.metrics import REPORT_SECONDS, STREAMS
from lockstep_console.pages import HEADERS, handlers
from lockstep_console.static_files import FOLDER, StaticFiles
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.common.errors import errors_in
from lockstep_runtime.flow.common_metrics import build_samples, memory_samples
from lockstep_runtime.http.access import PagesUnusable
from lockstep_runtime.http.server import PageServer, certificate_log
from lockstep_runtime.service.stop_signals import stop_on_signals
from lockstep_runtime.telemetry.metrics import Metrics, Sample
from lockstep_runtime.util.memory import resident, trim_heap

SERVICE = "console"

CLEAN, CRASHED, UNUSABLE = 0, 1, 2

TRIM_INTERVAL_S = 30.0
"""The seconds after which free memory is given back. With 10,000 partitions it takes some hundredths of a second."""


class ConsoleProcess:
    """All flows of the file, and the pages that show them."""

    def __init__(
        self,
        flows: Sequence[FlowSettings],
        identity: ConsoleIdentity,
        access: ConsoleAccess,
        *,
        static_folder: Path = FOLDER,
    ) -> None:
        """Take the flows, who the console is, and who may use it."""
        self.console = Console(identity, FlowWatches(flows), access, ChangeBroadcast())
        self._access = access
        self._static_folder = static_folder
        self._log = self.console.log
        self.metrics = Metrics()
        self.metrics.ask(lambda: build_samples(SERVICE))
        self.metrics.ask(lambda: memory_samples(SERVICE, resident()))
        self.metrics.ask(self._samples)

    def _samples(self) -> Iterator[Sample]:
        for watch in self.console.watches.all:
            yield Sample(STREAMS, (watch.name,), watch.listeners)
            yield Sample(REPORT_SECONDS, (watch.name,), watch.dated.took_s)

    def ready(self) -> str | None:
        """Return None once each flow was read, or it is known why it cannot be: a cluster may be away for long."""
        waiting = [watch.name for watch in self.console.watches.all if not watch.dated.at_ms]
        return f"not read yet: {', '.join(waiting)}" if waiting else None

    def status(self) -> dict[str, Any]:
        """Return what the console does, as JSON values."""
        return {
            "service": SERVICE,
            "instance": self.console.identity.instance,
            "ready": self.ready() is None,
            "streams": self.console.changes.count,
            "flows": {
                watch.name: {"read_ms": watch.dated.at_ms, "trouble": watch.dated.trouble}
                for watch in self.console.watches.all
            },
        }

    async def run(self, stop: asyncio.Event) -> int:
        """Run until `stop` is set or a crash, and return the exit code."""
        pages = PageServer(
            self.metrics,
            live=lambda: None,
            ready=self.ready,
            status=self.status,
            warn=certificate_log(self._log, self._access.policy),
            routes=handlers(self.console, StaticFiles(self._static_folder)),
            headers=HEADERS,
        )
        try:
            address = await pages.open(self._access.policy)
        except PagesUnusable as exc:
            self._log.info("cannot start", str(exc), level=logging.ERROR)
            return UNUSABLE
        names = ", ".join(self.console.watches.names)
        identity = self.console.identity
        self._log.info("started", f"{names} as {identity.instance}, the console is at {address}/", address=address)
        for warning in (*self._access.policy.warnings(), *self._access.warnings()):
            self._log.warn("pages are not on this machine alone", f"{address}: {warning}")
        self.console.spawn("free memory", _keep_small())
        self.console.spawn("switches of silent consoles", self.console.part(SwitchRunner).take_up_silent())
        self.console.spawn("decisions of silent consoles", self.console.part(DecisionRunner).take_up_silent())
        watching, stopping = asyncio.ensure_future(self.console.watches.run()), asyncio.ensure_future(stop.wait())
        await asyncio.wait({watching, stopping}, return_when=asyncio.FIRST_COMPLETED)
        code = CLEAN
        if watching.done():
            errors = list(errors_in(watching.exception()))
            self._log.failed("crashed", errors[0] if errors else RuntimeError("the watches ended by themselves"))
            code = CRASHED
        await cancelled([watching, stopping])
        await self.console.close()
        await pages.close()
        self._log.info("ended")
        return code


async def _keep_small() -> None:
    """Give memory back that reports and answers needed for a moment, until cancelled."""
    while True:
        await asyncio.sleep(TRIM_INTERVAL_S)
        gc.collect()  # futures and their callbacks hold each other, and what clusters answered
        await asyncio.to_thread(trim_heap)


async def run_until_stopped(process: ConsoleProcess) -> int:
    """Run until SIGTERM or SIGINT, and return the exit code: 0 ended cleanly, 1 crashed, 2 cannot start."""
    return await process.run(stop_on_signals(process.console.log))
