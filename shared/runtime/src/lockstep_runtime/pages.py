"""/live /ready /status /metrics of one process, on one port."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from lockstep_runtime.metrics import CONTENT_TYPE_LATEST, Metrics

__all__ = ["Pages", "PortTaken"]


class PortTaken(Exception):
    """The port cannot be had; the text says so and what to do."""


class Pages:
    """Serves what the given functions return at the time of asking.

    `live` and `ready` return None when all is well, else why not (answered with status 503). `status` returns JSON
    values.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        live: Callable[[], str | None],
        ready: Callable[[], str | None],
        status: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._metrics = metrics
        self._live = live
        self._ready = ready
        self._status = status
        self._runner: web.AppRunner | None = None

    async def open(self, host: str, port: int) -> str:
        """Listen and return the address as `http://host:port`. Port 0 takes a free one. Raises PortTaken."""
        app = web.Application()
        app.router.add_get("/live", self._page_live)
        app.router.add_get("/ready", self._page_ready)
        app.router.add_get("/status", self._page_status)
        app.router.add_get("/metrics", self._page_metrics)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port, shutdown_timeout=0.5).start()
        except OSError as exc:
            await self.close()
            if exc.errno == errno.EADDRINUSE:
                raise PortTaken(
                    f"port {port} on {host} is in use: choose another with --port, or --port 0 for a free one"
                ) from exc
            raise PortTaken(f"cannot listen on {host}:{port}: {exc.strerror}; see --host and --port") from exc
        bound = self._runner.addresses[0]
        name = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        return f"http://{name}:{bound[1]}"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _page_live(self, _: web.Request) -> web.Response:
        return _verdict(self._live(), "live")

    async def _page_ready(self, _: web.Request) -> web.Response:
        return _verdict(self._ready(), "ready")

    async def _page_status(self, _: web.Request) -> web.Response:
        text = json.dumps(self._status(), indent=2, ensure_ascii=False, default=str)
        return web.Response(text=text + "\n", content_type="application/json")

    async def _page_metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._metrics.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _verdict(why_not: str | None, word: str) -> web.Response:
    return web.Response(text=f"{word if why_not is None else why_not}\n", status=200 if why_not is None else 503)
