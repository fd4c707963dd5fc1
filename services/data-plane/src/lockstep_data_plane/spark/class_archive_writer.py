"""The command `python -m lockstep_data_plane.spark.class_archive_writer`, which writes the class-data archives.

It is called once after an installation, by a user who may write to the installation, and starts Spark twice for some
seconds. Later starts of Spark use the archives if they have the same Java and the same Spark. The transforms' jar is in
none, because Spark loads jars by a class loader of its own. So another jar needs no other archive.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from lockstep_config.keys.spark_settings import SparkSettings
from lockstep_data_plane.record_batch.codecs import LZ4
from lockstep_data_plane.record_batch.gapped_batch import gapped_batch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.spark.class_archive import ArchiveContent, own_archive_file
from lockstep_data_plane.spark.session import SparkNotStarted, SparkSession, in_thread
from lockstep_data_plane.transform.evaluation_answer import EvaluationOptions
from lockstep_data_plane.transform.evaluator import TransformEvaluator
from lockstep_data_plane.transform.jar import JAR
from lockstep_data_plane.transform.jvm_socket import find_own_server
from lockstep_runtime.util.java import find_java, missing_java
from lockstep_state.errors import LockstepError

ENDS_WITHIN_S = 60.0
"""Seconds that the JVM has to end. It writes the archive meanwhile."""

STATEMENT = (
    "SELECT json_mask(json_mask(value, '$.name', 'hash_salted'), '$.iban', 'truncate(4)') AS value, "
    "CAST(upper(CAST(key AS STRING)) AS BINARY) AS key FROM records "
    "WHERE json_text(value, '$.country') = 'DE' AND get_json_object(CAST(value AS STRING), '$.total') > 1 "
    "AND timestamp > TIMESTAMP '2020-01-01'"
)
"""A statement with what most have: own functions, Spark's, casts and conditions."""
RECORD = PlainRecord(0, 1_700_000_000_000, b"key", b'{"name":"n","iban":"DE02","country":"DE","total":2}', ())
EVALUATIONS = 3


def write_archive(file: Path, content: ArchiveContent) -> None:
    """Start Spark, and let its JVM write the classes that it loaded for this content.

    Raises OSError, SparkNotStarted, and LockstepError if the statement is not evaluated.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        unfinished = Path(folder, file.name)
        os.environ["SPARK_SUBMIT_OPTS"] = f'"-XX:ArchiveClassesAtExit={unfinished}" -Xlog:disable'
        asyncio.run(_run_spark(content))
        if not unfinished.is_file():
            raise SparkNotStarted("Spark's JVM ended without an archive: this Java may not support class-data archives")
        unfinished.rename(file)


async def _run_spark(content: ArchiveContent) -> None:
    evaluates = content is ArchiveContent.STATEMENT
    session = SparkSession(SparkSettings(), 1, evaluates=evaluates)
    session.start()
    context = await session.context()
    await in_thread("job", lambda: _run_job(context))
    if evaluates:
        await _evaluate(session, context)
    await in_thread("end", lambda: _end(context))


async def _evaluate(session: SparkSession, context: Any) -> None:
    """Compile a statement as the driver does, and evaluate a record as slots have it done."""
    compiled = await session.compile_statement(STATEMENT)
    server = await in_thread("server", lambda: find_own_server(context))
    options = EvaluationOptions(seconds=ENDS_WITHIN_S)
    evaluator = await TransformEvaluator.connect(
        server, compiled, options=options, secrets={"salt": b"salt"}, within=ENDS_WITHIN_S
    )
    try:
        batch = gapped_batch([RECORD], RECORD.offset, leader_epoch=0, codec=LZ4)
        for _ in range(EVALUATIONS):
            await evaluator.evaluate([batch.data], RECORD.offset, 0, "topic")
    finally:
        await evaluator.close()


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
    # PySpark keeps the gateway of the JVM that it started. Without one it starts another JVM for the next archive.
    type(context)._gateway = type(context)._jvm = None


def main() -> None:
    """Write the archives for this installation that do not exist. Exits with a sentence if one cannot be written.

    Without the transforms' jar there is no archive for statements.
    """
    if (missing := missing_java(os.environ)) is not None:
        sys.exit(missing)
    java = find_java(os.environ)
    assert java is not None, "missing_java has found one"
    for content in ArchiveContent if JAR.is_file() else (ArchiveContent.JOB,):
        file = own_archive_file(java, content)
        if file.is_file():
            sys.stdout.write(f"the class archive is there: {file}\n")
            continue
        try:
            write_archive(file, content)
        except (OSError, SparkNotStarted, LockstepError) as exc:
            sys.exit(f"the class archive was not written, and Spark starts without it: {exc}")
        sys.stdout.write(f"class archive written: {file} ({file.stat().st_size / 1e6:.0f} MB)\n")


if __name__ == "__main__":
    main()
