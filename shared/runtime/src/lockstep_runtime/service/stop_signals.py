"""The signals that end a process: the first lets it drain, a second interrupt ends it at once."""

import asyncio
import logging
import os
import signal

from lockstep_runtime.telemetry.log import FlowLog

INTERRUPTED = 130
"""The exit code after a second interrupt, as the shell has it for SIGINT."""


def stop_on_signals(log: FlowLog) -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set. To be called within the event loop."""
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, _signalled, name, stop, log)
    return stop


def _signalled(name: signal.Signals, stop: asyncio.Event, log: FlowLog) -> None:
    if stop.is_set() and name is signal.SIGINT:
        log.warn("ended at once", "second interrupt")
        logging.shutdown()
        os._exit(INTERRUPTED)
    if not stop.is_set():
        log.info("ending", name.name)
    stop.set()
