"""The temporary folder of Spark's JVM, and the file in it by which the JVM gets passwords.

Spark removes its temporary files when its JVM ends in order. A JVM that is killed leaves them. So each has a folder of
its own, and the next start removes the folders of those that are no more, with their frozen workers. A folder is
locked by the process that made it and by the JVM, which inherits the lock. The lock ends with the last of the two,
however they end.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import javaproperties

from lockstep_data_plane.spark.worker_claim import end_workers

PREFIX = "lockstep-jvm-"
SUBMIT_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""The variable with the arguments for PySpark's JVM, quoted as a shell has them."""


def new_folder(beside: Path) -> tuple[Path, int]:
    """Return a new folder in `beside`, and the descriptor that holds its lock.

    The descriptor stays open until this process ends, and a child that inherits it holds the lock as well. Unlocked
    folders in `beside` are removed, unless they belong to other users.
    """
    for former in beside.glob(f"{PREFIX}*"):
        with suppress(OSError):  # held, another user's, or removed by another process at this moment
            _remove_unless_held(former)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=beside))
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue  # another process that starts took it for a left folder
        with suppress(OSError):  # a file system without locks of folders cannot remove one either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if folder.exists():
            return folder, descriptor
        os.close(descriptor)  # likewise, a moment later


def _remove_unless_held(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        end_workers(folder)
        shutil.rmtree(folder)
    finally:
        os.close(descriptor)


@contextmanager
def secret_conf_file(secrets: Mapping[str, str], folder: Path) -> Iterator[None]:
    """Let Spark's JVM read these settings from a file in `folder` while it is started.

    Only this user may read the file, and it is removed afterwards. A command line can be read by everybody.
    """
    if not secrets:
        yield
        return
    file, arguments = folder / "secret.conf", os.environ.get(SUBMIT_ARGUMENTS)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as out:
        out.write(javaproperties.dumps(secrets, timestamp=None))
    # Settings on the command line count first, then the file, then the user's spark-defaults.conf.
    os.environ[SUBMIT_ARGUMENTS] = f"--properties-file {file} --load-spark-defaults {arguments or 'pyspark-shell'}"
    try:
        yield
    finally:
        file.unlink()
        if arguments is None:
            del os.environ[SUBMIT_ARGUMENTS]
        else:
            os.environ[SUBMIT_ARGUMENTS] = arguments
