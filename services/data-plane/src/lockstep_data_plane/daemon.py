"""Spark's Python daemon with the slot's modules in it, so that workers are forked ready.

Named by `spark.python.daemon.module`; Spark runs it as `python -m lockstep_data_plane.daemon pyspark.worker`.
"""

from __future__ import annotations

from pyspark.daemon import manager

from lockstep_data_plane import worker

__all__ = ["manager", "worker"]

if __name__ == "__main__":
    manager()
