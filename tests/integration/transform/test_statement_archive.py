"""The class-data archive for statements has the classes of a statement."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep_data_plane.record_batch.codecs import LZ4
from lockstep_data_plane.record_batch.gapped_batch import gapped_batch
from lockstep_data_plane.spark.class_archive_writer import RECORD, STATEMENT
from tests.support.transform_jvm import TransformJvm, records_of

WRITE = """
import sys
from pathlib import Path
from lockstep_data_plane.spark.class_archive import ArchiveContent
from lockstep_data_plane.spark.class_archive_writer import write_archive
write_archive(Path(sys.argv[1]), ArchiveContent.STATEMENT)
"""
COMPILE = """
import asyncio, os, sys
from lockstep_config.keys.spark_settings import SparkSettings
from lockstep_data_plane.spark.session import SparkSession

async def main():
    os.environ["SPARK_SUBMIT_OPTS"] = sys.argv[1]
    session = SparkSession(SparkSettings(), 1, evaluates=True)
    session.start()
    compiled = await session.compile_statement("SELECT json_mask(value, '$.a', 'mask') AS value FROM records")
    print("compiled:", *compiled.columns_written)
    gateway = (await session.context())._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(60)

asyncio.run(main())
"""
MAPPED, FROM_A_JAR = "shared objects file", "file:"
LOADED = re.compile(r"org\.apache\.spark\.sql\.\S+ source: (.*)")


def run(code: str, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def compiled_with(archive: Path, log: Path) -> list[str]:
    """Compile a statement in a JVM with this archive. Return where each class of Spark SQL came from."""
    options = f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:cds=off -Xlog:class+load:file={log}"
    assert run(COMPILE, options) == "compiled: value\n"
    return LOADED.findall(log.read_text())


async def test_record_of_the_archive_is_evaluated_to_its_end(jvm: TransformJvm) -> None:
    batch = gapped_batch([RECORD], RECORD.offset, leader_epoch=0, codec=LZ4)
    answer = await jvm.answer(STATEMENT, bytes(batch.data), secrets={"salt": b"salt"})
    (made,) = records_of(answer)
    assert not answer.failures
    assert (made.key, b'"iban":"DE02"' in (made.value or b"")) == (b"KEY", True)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_classes_of_a_statement_come_from_their_archive(tmp_path: Path) -> None:
    archive = tmp_path / "spark.jsa"
    run(WRITE, str(archive))
    sources = compiled_with(archive, tmp_path / "with.log")
    assert len([source for source in sources if source.startswith(MAPPED)]) > 1000
    assert not [source for source in sources if source.startswith(FROM_A_JAR)], "all but lambdas are mapped"
