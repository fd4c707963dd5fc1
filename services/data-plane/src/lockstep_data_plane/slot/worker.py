"""A slot's life in Spark's Python worker: an event loop for the slot, and the log where the executor's output goes."""

import asyncio
import os
import sys

from lockstep_data_plane.slot.slot import Slot
from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_runtime.telemetry import log
from lockstep_runtime.telemetry.tracing import NO_TRACING, Tracing
from lockstep_runtime.telemetry.tracing_config import start_tracing
from lockstep_runtime.util import memory

SWITCH_S = 0.0005
"""How long another thread (a control topic's consumer or producer) may keep the interpreter while a record waits."""

COLLECT_AFTER = (20_000, 50, 100)
"""When the collector looks for cycles: what a record brings about is freed without it, and there are few cycles."""

LARGE_BYTES = 32 * 1024 * 1024
"""More than any answer of a fetch."""

LAST_SPANS_S = 1.0
"""For the spans of the last moments. If the collector is away, the end of the slot is delayed by this."""


def run_slot(spec: SlotSpec) -> int:
    """Copy until the slot is asked to end. Returns how many records were appended."""
    log.configure("data-plane", spec.log_level, "json" if spec.log_format == "json" else "text")
    sys.setswitchinterval(SWITCH_S)
    tracing = _tracing(spec)
    memory.collect_seldom(COLLECT_AFTER)
    memory.keep_much(LARGE_BYTES)
    try:
        return asyncio.run(_run(spec, tracing))
    finally:
        tracing.end(LAST_SPANS_S)


def _tracing(spec: SlotSpec) -> Tracing:
    """Of this worker: what sends spans is a thread, and none survives the fork that made the worker."""
    if not spec.settings.tracing:
        return NO_TRACING
    return start_tracing("data-plane", spec.run, os.environ, log.FlowLog("data-plane", spec.settings.flow))


async def _run(spec: SlotSpec, tracing: Tracing) -> int:
    """A slot, and another one in its place whenever it ends for other certificates."""
    appended = 0
    while True:
        slot = Slot(spec, tracing)
        appended += await slot.run()
        if not slot.renews:
            return appended
