"""Where the class-data archive of Spark's JVM is: its classes as a file, which the JVM maps instead of reading and
verifying each class. That is half of what its start costs. `class_archive_writer.py` writes it."""

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path

from lockstep_runtime.util.java import find_java

FOLDER = Path(sys.prefix, "share", "lockstep")
"""Part of the installation: who may change the archive may change the packages as well."""


def archive_file(java: Path, spark_version: str, spark_path: str, folder: Path = FOLDER) -> Path:
    """The file for this very `java` and this Spark. Another of the two has an archive of its own, or none."""
    executable = java.resolve()
    release = executable.parents[1] / "release"
    build = release.read_bytes() if release.is_file() else str(executable.stat().st_mtime_ns).encode()
    parts = (bytes(executable), build, spark_version.encode(), spark_path.encode())
    return folder / f"spark-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:12]}.jsa"


def find_archive(environment: Mapping[str, str]) -> Path | None:
    """The archive for the Java and the Spark that would start now; None if it was not written."""
    import pyspark

    java = find_java(environment)
    if java is None:
        return None
    file = archive_file(java, pyspark.__version__, str(Path(pyspark.__file__).parent))
    return file if file.is_file() else None
