"""The data plane's part in a process: one Spark for all flows, a driver for each."""

from __future__ import annotations

import asyncio
import logging

from lockstep_data_plane.driver import Driver
from lockstep_data_plane.spark import Spark
from lockstep_runtime.context import FlowContext
from lockstep_runtime.log import JsonLines

__all__ = ["build"]

sparks: dict[int, Spark] = {}
"""One Spark an event loop, that is, one a process."""


def build(ctx: FlowContext) -> Driver:
    """The driver of one flow, for `lockstep_runtime.service`. Spark begins to start once all flows of the process are
    built: it takes seconds, and the group's first assignment takes as long."""
    loop = asyncio.get_running_loop()
    spark = sparks.get(id(loop))
    if spark is None:
        spark = sparks[id(loop)] = Spark()
        loop.call_soon(lambda: starting.append(asyncio.ensure_future(spark.warm_up())))
    root = logging.getLogger()
    as_json = any(isinstance(handler.formatter, JsonLines) for handler in root.handlers)
    return Driver(ctx, spark, logging.getLevelName(root.level).lower(), "json" if as_json else "text")


starting: list[asyncio.Future[None]] = []
"""Keeps the start from being collected while it runs."""
