"""The class-data archive of Spark's JVM, which maps it instead of loading and verifying each class.

That is half of what the JVM's start costs. `class_archive_writer.py` writes the archive.
"""

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path

from lockstep_runtime.util.java import find_java, java_build

CONTENT = b"a job in Python, a statement"
"""What the JVM does before its classes are written. An archive with another content is not used."""

FOLDER = Path(sys.prefix, "share", "lockstep")
"""The folder of the archives. It is part of the installation: who may change an archive may change the packages too."""


def archive_file(java: Path, spark_version: str, spark_path: str, folder: Path = FOLDER) -> Path:
    """Return the archive's file for this very `java` and this Spark.

    Any other pair has an archive of its own, or none.
    """
    parts = (bytes(java.resolve()), java_build(java).encode(), spark_version.encode(), spark_path.encode(), CONTENT)
    return folder / f"spark-{hashlib.sha256(b'|'.join(parts)).hexdigest()[:12]}.jsa"


def own_archive_file(java: Path) -> Path:
    """Return the archive's file for this `java` and the PySpark that is installed."""
    import pyspark

    return archive_file(java, pyspark.__version__, str(Path(pyspark.__file__).parent))


def find_archive(environment: Mapping[str, str]) -> Path | None:
    """Return the archive for the Java and the Spark that would start now; None: it was not written."""
    java = find_java(environment)
    file = None if java is None else own_archive_file(java)
    return file if file is not None and file.is_file() else None
