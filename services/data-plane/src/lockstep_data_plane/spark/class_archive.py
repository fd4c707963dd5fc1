"""The class-data archives of Spark's JVM, which maps one instead of loading and verifying each class.

That is half of what the JVM's start costs. There are two: an archive with the classes of Spark SQL too would take 80 MB
more memory of a JVM that evaluates no statement. `class_archive_writer.py` writes them.
"""

import hashlib
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from lockstep_runtime.util.java import find_java, java_build

FOLDER = Path(sys.prefix, "share", "lockstep")
"""The folder of the archives. It is part of the installation: who may change an archive may change the packages too."""


class ArchiveContent(Enum):
    """The work that a JVM has done when its classes are written."""

    JOB = "job"
    """It has run a job in Python."""
    STATEMENT = "statement"
    """It has also compiled a statement of a transform, and evaluated a record."""


def archive_file(
    java: Path,
    spark_version: str,
    spark_path: str,
    folder: Path = FOLDER,
    content: ArchiveContent = ArchiveContent.JOB,
) -> Path:
    """Return the archive's file for this very `java` and this Spark.

    Any other pair has an archive of its own, or none.
    """
    parts = (bytes(java.resolve()), java_build(java).encode(), spark_version.encode(), spark_path.encode())
    identity = hashlib.sha256(b"|".join(parts)).hexdigest()[:12]
    return folder / f"spark-{'sql-' if content is ArchiveContent.STATEMENT else ''}{identity}.jsa"


def own_archive_file(java: Path, content: ArchiveContent = ArchiveContent.JOB) -> Path:
    """Return the archive's file for this `java` and the PySpark that is installed."""
    import pyspark

    return archive_file(java, pyspark.__version__, str(Path(pyspark.__file__).parent), content=content)


def find_archive(environment: Mapping[str, str], *, evaluates: bool = False) -> Path | None:
    """Return the archive for the Java and the Spark that would start now; None: it was not written.

    If `evaluates`, the JVM is to compile or evaluate statements. Without their archive it takes the other one.
    """
    java = find_java(environment)
    if java is None:
        return None
    contents = (ArchiveContent.STATEMENT, ArchiveContent.JOB) if evaluates else (ArchiveContent.JOB,)
    files = (own_archive_file(java, content) for content in contents)
    return next((file for file in files if file.is_file()), None)
