"""A slot's life in Spark's Python worker: an event loop for the slot, and the log where the executor's output goes."""

from __future__ import annotations

import asyncio
import os

from lockstep_data_plane.slot import Slot, SlotSpec
from lockstep_runtime import log

__all__ = ["run_slot"]


def run_slot(spec: SlotSpec) -> int:
    """Copy until the slot is told to end. Returns how many records were appended."""
    log.configure("data-plane", spec.log_level, "json" if spec.log_format == "json" else "text")
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    return asyncio.run(Slot(spec).run())
