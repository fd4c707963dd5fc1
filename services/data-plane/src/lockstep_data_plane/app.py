"""The data plane's part in a process: one Spark for all flows, a driver for each."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

from lockstep_config import FlowSettings
from lockstep_data_plane.driver import Driver, slots_of
from lockstep_data_plane.spark import Spark
from lockstep_runtime.context import FlowContext
from lockstep_runtime.java import missing_java
from lockstep_runtime.log import JsonLines

__all__ = ["build", "start_spark"]

started: list[Spark] = []
"""The process's Spark, once it has been started."""


def start_spark(flows: Sequence[FlowSettings]) -> None:
    """Start Spark with places for the slots of all flows. Called as soon as the configuration has been read, for
    nothing in a start takes longer. Without a usable Java: one sentence, and SystemExit with code 2."""
    if (missing := missing_java(os.environ)) is not None:
        sys.stderr.write(f"{missing}\n")
        raise SystemExit(2)
    # A file names one Spark, whatever the flow.
    spark = Spark(flows[0].data_plane.spark, sum(slots_of(settings) for settings in flows))
    spark.start()
    started.append(spark)


def build(ctx: FlowContext) -> Driver:
    """The driver of one flow, for `lockstep_runtime.service`."""
    root = logging.getLogger()
    as_json = any(isinstance(handler.formatter, JsonLines) for handler in root.handlers)
    return Driver(ctx, started[-1], logging.getLevelName(root.level).lower(), "json" if as_json else "text")
