"""How Spark's JVM is told passwords: everybody may read its command line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import javaproperties

SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""What pyspark starts its JVM with, as a shell would have it."""


@contextmanager
def secret_conf_file(secrets: Mapping[str, str], folder: Path) -> Iterator[None]:
    """While Spark's JVM is started: it reads these settings from a file in `folder` that nobody else may read, and that
    is gone afterwards."""
    if not secrets:
        yield
        return
    file, asked = folder / "secret.conf", os.environ.get(SUBMIT_ARGUMENTS)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as out:
        out.write(javaproperties.dumps(secrets, timestamp=None))
    # Settings on the command line count first, then the file, then the user's spark-defaults.conf.
    os.environ[SUBMIT_ARGUMENTS] = f"--properties-file {file} --load-spark-defaults {asked or 'pyspark-shell'}"
    try:
        yield
    finally:
        file.unlink()
        if asked is None:
            del os.environ[SUBMIT_ARGUMENTS]
        else:
            os.environ[SUBMIT_ARGUMENTS] = asked
