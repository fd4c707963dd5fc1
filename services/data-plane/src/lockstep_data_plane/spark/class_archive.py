"""Where the class-data archive of Spark's JVM is: its classes as a file, which the JVM maps instead of reading and
verifying each class. That is half of what its start costs. `class_archive_writer.py` writes it."""

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path

from lockstep_runtime.util.java import find_java, java_build

FOLDER = Path(sys.prefix, "share", "lockstep")
"""Part of the installation: who may change the archive may change the packages as well."""


def archive_file(java: Path, spark_version: str, spark_path: str, folder: Path = FOLDER) -> Path:
    """The file for this very `java` and this Spark. Another of the two has an archive of its own, or none."""
    parts = (bytes(java.resolve()), java_build(java).encode(), spark_version.encode(), spark_path.encode())
    return folder / f"spark-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:12]}.jsa"


def own_archive_file(java: Path) -> Path:
    """The file for this `java` and the PySpark that is installed."""
    import pyspark

    return archive_file(java, pyspark.__version__, str(Path(pyspark.__file__).parent))


def find_archive(environment: Mapping[str, str]) -> Path | None:
    """The archive for the Java and the Spark that would start now; None if it was not written."""
    java = find_java(environment)
    file = None if java is None else own_archive_file(java)
    return file if file is not None and file.is_file() else None
