"""Spark's Python daemon with the slot's modules in it, so that workers are forked ready.

Named by `spark.python.daemon.module`; Spark runs it as `python -m lockstep_data_plane.daemon pyspark.worker`.
"""

from __future__ import annotations

import sys
from importlib import import_module

from pyspark.daemon import manager

__all__: list[str] = []

if __name__ == "__main__":
    # kio imports hypothesis where a developer has it installed: a third of a second, and nothing of it is used.
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]  # None is Python's way to say "not there"
    import_module("lockstep_data_plane.worker")
    manager()
