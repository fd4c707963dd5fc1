"""The end of a process that cannot end in order."""

import logging
import os
from typing import NoReturn

from lockstep_runtime.telemetry.log import FlowLog

CRASHED = 1
"""The exit code, as of a crash, so that the supervisor of the process starts another one."""


def replace_process(log: FlowLog, reason: str) -> NoReturn:
    """End this process at once, as a crash: a part of it does not end, and shares what its successor would use."""
    log.info("crashed", reason, level=logging.ERROR)
    logging.shutdown()
    os._exit(CRASHED)
