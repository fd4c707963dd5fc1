"""A slot in Spark's Python worker: its event loop, its garbage collection, and its log in the executor's output."""

import asyncio
import os
import sys

from lockstep_data_plane.slot.slot import Slot
from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_data_plane.slot.verify_slot import VerifySlot
from lockstep_kafka.common.tracing import NO_TRACING, Tracing
from lockstep_runtime.telemetry import log
from lockstep_runtime.telemetry.tracing_config import start_tracing
from lockstep_runtime.util import memory

SWITCH_S = 0.0005
"""Seconds for which another thread (a control topic's consumer or producer) may keep the interpreter."""

COLLECT_AFTER = (20_000, 50, 100)
"""The thresholds of the garbage collector. Objects of the copy are freed without it, and there are few cycles."""

LARGE_BYTES = 32 * 1024 * 1024
"""The size for malloc's settings, which is above that of any answer to a fetch."""

NICENESS = 10
"""The niceness of a slot that compares. On busy processors it gets about a tenth of the time of a slot that copies."""

LAST_SPANS_S = 1.0
"""Seconds to wait at the end for the export of the last spans. If the collector is away, the slot ends later by this.
"""


def run_slot(spec: SlotSpec) -> int:
    """Copy or compare until the slot is asked to end or has nothing left, and return how many records were appended."""
    log.configure("data-plane", spec.log_level, "json" if spec.log_format == "json" else "text")
    sys.setswitchinterval(SWITCH_S)
    tracing = _tracing(spec)
    memory.freeze_gc(COLLECT_AFTER)
    memory.tune_malloc_for_slot(LARGE_BYTES)
    if spec.verifies:
        os.nice(NICENESS)  # no other slot gets this process
    try:
        return asyncio.run(_run(spec, tracing))
    finally:
        tracing.end(LAST_SPANS_S)


def _tracing(spec: SlotSpec) -> Tracing:
    """Start the tracing of this worker.

    The exporter is a thread, and no thread survives the fork that made the worker.
    """
    if not spec.settings.tracing:
        return NO_TRACING
    return start_tracing("data-plane", spec.run, os.environ, log.FlowLog("data-plane", spec.settings.flow))


async def _run(spec: SlotSpec, tracing: Tracing) -> int:
    """Run a slot, and start another one whenever it ends because certificates changed."""
    appended = syncs = 0
    while True:
        slot = VerifySlot(spec) if spec.verifies else Slot(spec, tracing, syncs_before=syncs)
        appended += await slot.run()
        if isinstance(slot, Slot):
            syncs = slot.syncs
        if not slot.renews:
            return appended
