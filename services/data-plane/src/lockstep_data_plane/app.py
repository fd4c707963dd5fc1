"""The data plane's part of a process: one driver for each flow, on one Spark (`spark/process_session.py`)."""

import logging

from lockstep_data_plane.driver.driver import Driver
from lockstep_data_plane.spark.process_session import started
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.telemetry.log import JsonLines


def build(ctx: FlowContext) -> Driver:
    """Return the driver of one flow, for `lockstep_runtime.service.service`."""
    root = logging.getLogger()
    as_json = any(isinstance(handler.formatter, JsonLines) for handler in root.handlers)
    return Driver(ctx, started[-1], logging.getLevelName(root.level).lower(), "json" if as_json else "text")
