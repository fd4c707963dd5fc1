"""The classes of Spark's JVM as a file that the next JVM maps instead of reading and checking them again: half of what
its start costs, and tests start it often.

`python -m tests.harness.spark_archive` goes before the tests: where there is none yet it starts Spark once and lets its
JVM write them down.
"""

import hashlib
import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from lockstep_data_plane.spark_conf import QUIET_JVM
from lockstep_runtime import java
from tests.harness.java import find_java

__all__ = ["options", "write"]

FOLDER = Path(__file__).parents[2] / ".cache" / "spark"
WITHIN = 300.0

ONCE = """\
import sys
from pyspark import SparkContext
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").config("spark.driver.extraJavaOptions", sys.argv[1])
spark = spark.config("spark.driver.memory", "512m").config("spark.driver.bindAddress", "127.0.0.1")
spark = spark.config("spark.driver.host", "127.0.0.1").config("spark.sql.catalogImplementation", "in-memory")
context = spark.getOrCreate().sparkContext
assert context.parallelize(range(2), 2).barrier().mapPartitions(list).collect() == [0, 1]
gateway = SparkContext._gateway
context.stop()
gateway.shutdown()
gateway.proc.stdin.close()
sys.exit(gateway.proc.wait())
"""


def options() -> str:
    """JVM options that use what was written, or none where nothing was. A JVM that it does not suit goes without."""
    found = java.find_java(os.environ)
    if found is None:
        return ""
    archive = _archive(found)
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:cds=off" if archive.exists() else ""


def write() -> None:
    """Unless it is there. Raises CalledProcessError if Spark does not start."""
    found = find_java()
    finished = _archive(found)
    if finished.exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    unfinished = finished.with_suffix(f".{os.getpid()}")
    quiet = f"-XX:ArchiveClassesAtExit={unfinished} -Xlog:disable"
    try:
        subprocess.run(
            [sys.executable, "-c", ONCE, QUIET_JVM],
            check=True,
            timeout=WITHIN,
            env={**os.environ, "JAVA_HOME": str(found.resolve().parents[1]), "SPARK_SUBMIT_OPTS": quiet},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        unfinished.rename(finished)
    finally:
        unfinished.unlink(missing_ok=True)


def _archive(executable: Path) -> Path:
    """It is of use only to the JVM that wrote it, with the jars in the places where they were."""
    spark, home = distribution("pyspark"), executable.resolve().parents[1]
    release = home / "release"
    told = release.read_bytes() if release.exists() else str(executable.stat().st_mtime_ns).encode()
    of = hashlib.sha256(bytes(home) + told + bytes(Path(str(spark.locate_file("pyspark")))) + spark.version.encode())
    return FOLDER / f"{of.hexdigest()[:12]}.jsa"


if __name__ == "__main__":
    write()
