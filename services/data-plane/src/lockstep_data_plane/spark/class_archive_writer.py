"""The command `python -m lockstep_data_plane.spark.class_archive_writer`, which writes the class-data archive.

It is called once after an installation, by a user who may write to the installation, and starts Spark for some seconds.
Later starts of Spark use the archive if they have the same Java and the same Spark.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from lockstep_config.keys.spark_settings import SparkSettings
from lockstep_data_plane.spark.class_archive import own_archive_file
from lockstep_data_plane.spark.session import SparkNotStarted, SparkSession, in_thread
from lockstep_runtime.util.java import find_java, missing_java

ENDS_WITHIN_S = 60.0
"""Seconds that the JVM has to end. It writes the archive meanwhile."""


def _write_archive(file: Path) -> None:
    """Start Spark with one job, and let its JVM write the classes that it loaded.

    Raises OSError and SparkNotStarted.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        unfinished = Path(folder, file.name)
        os.environ["SPARK_SUBMIT_OPTS"] = f'"-XX:ArchiveClassesAtExit={unfinished}" -Xlog:disable'
        asyncio.run(_run_spark())
        if not unfinished.is_file():
            raise SparkNotStarted("Spark's JVM ended without an archive: this Java may not support class-data archives")
        unfinished.rename(file)


async def _run_spark() -> None:
    session = SparkSession(SparkSettings(), 1)
    session.start()
    context = await session.context()
    await in_thread("job", lambda: _run_job(context))
    await in_thread("end", lambda: _end(context))


def _run_job(context: Any) -> None:
    """Run a job as slots do: a job group of its own, and one task in Python."""
    context.setJobGroup("class archive", "class archive", interruptOnCancel=True)
    context.parallelize([0], 1).setName("class archive").mapPartitions(list).collect()
    tracker = context.statusTracker()
    for job in tracker.getJobIdsForGroup("class archive"):
        tracker.getJobInfo(job)


def _end(context: Any) -> None:
    gateway = context._gateway
    context.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(ENDS_WITHIN_S)


def main() -> None:
    """Write the archive for this installation, unless it exists. Exits with a sentence if it cannot be written."""
    if (missing := missing_java(os.environ)) is not None:
        sys.exit(missing)
    java = find_java(os.environ)
    assert java is not None, "missing_java has found one"
    file = own_archive_file(java)
    if file.is_file():
        sys.stdout.write(f"the class archive is there: {file}\n")
        return
    try:
        _write_archive(file)
    except (OSError, SparkNotStarted) as exc:
        sys.exit(f"the class archive was not written, and Spark starts without it: {exc}")
    sys.stdout.write(f"class archive written: {file} ({file.stat().st_size / 1e6:.0f} MB)\n")


if __name__ == "__main__":
    main()
