"""The data plane's part in a process: one Spark for all flows, a driver for each."""

import logging
import os
import sys
from collections.abc import Sequence

from lockstep_config import FlowSettings
from lockstep_data_plane.driver.driver import Driver, slot_count
from lockstep_data_plane.spark.conf import InvalidSubmission, join_conf, submitted_to
from lockstep_data_plane.spark.session import SparkSession
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.telemetry.log import JsonLines
from lockstep_runtime.util.java import missing_java

started: list[SparkSession] = []
"""The process's Spark, once it has been started."""


def start_spark(flows: Sequence[FlowSettings]) -> None:
    """Start Spark with places for the slots of all flows. Called as soon as the configuration has been read, for
    nothing in a start takes longer. Without a usable Java, or submitted with settings that cannot be: one sentence, and
    SystemExit with code 2."""
    if (missing := missing_java(os.environ)) is not None:
        sys.stderr.write(f"{missing}\n")
        raise SystemExit(2)
    settings = flows[0].data_plane.spark  # a file names one Spark for all its flows
    try:
        if (submission := submitted_to(os.environ)) is not None:
            settings = join_conf(settings, submission)
    except InvalidSubmission as bad:
        sys.stderr.write(f"{bad}\n")
        raise SystemExit(2) from None
    verifying = sum(flow.data_plane.verify.tasks_max for flow in flows)  # a request may come at any time
    spark = SparkSession(settings, sum(slot_count(flow) for flow in flows) + verifying)
    spark.start()
    started.append(spark)


def build(ctx: FlowContext) -> Driver:
    """The driver of one flow, for `lockstep_runtime.service.service`."""
    root = logging.getLogger()
    as_json = any(isinstance(handler.formatter, JsonLines) for handler in root.handlers)
    return Driver(ctx, started[-1], logging.getLevelName(root.level).lower(), "json" if as_json else "text")
