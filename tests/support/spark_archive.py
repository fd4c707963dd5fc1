"""The classes of Spark's JVM as a file that the next JVM maps instead of reading and checking them again: half of what
its start costs, and tests start it often.

`python -m tests.support.spark_archive` goes before the tests: where there is none yet it starts Spark once and lets its
JVM write them down.
"""

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

from lockstep_config.keys.spark_settings import SparkSettings
from lockstep_data_plane.spark.conf import Pod, settings_for
from lockstep_runtime.util import java
from tests.support.java import archive_name, find_java

FOLDER = Path(__file__).parents[2] / ".cache" / "spark"
WITHIN = 300.0

ONCE = """\
import json, sys
from pyspark import SparkConf, SparkContext

context = SparkContext(conf=SparkConf().setAll(json.loads(sys.argv[1]).items()))
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
    """Unless it is there. Raises RuntimeError with what Spark said if it does not start."""
    found = find_java()
    finished = _archive(found)
    if finished.exists():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        unfinished = Path(folder, "unfinished.jsa")
        own = {
            "JAVA_HOME": str(found.resolve().parents[1]),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_SUBMIT_OPTS": f"-XX:ArchiveClassesAtExit={unfinished} -Xlog:disable",
        }
        ran = subprocess.run(
            [sys.executable, "-c", ONCE, json.dumps(settings_for(SparkSettings(), 1, Pod()))],
            check=False,
            timeout=WITHIN,
            env=os.environ | own,
            capture_output=True,
            text=True,
        )
        if ran.returncode:
            raise RuntimeError(f"Spark's class-data archive was not written:\n{ran.stderr[-2000:]}")
        unfinished.rename(finished)


def _archive(executable: Path) -> Path:
    """The jars have to lie where they lay, too."""
    spark = distribution("pyspark")
    return FOLDER / archive_name(executable, f"{spark.version} {spark.locate_file('pyspark')}")


if __name__ == "__main__":
    write()
