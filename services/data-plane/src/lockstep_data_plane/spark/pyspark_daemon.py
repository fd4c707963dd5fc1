"""Spark's Python daemon with the slot's modules loaded, so that workers are forked ready.

It is named by `spark.python.daemon.module`. Spark runs it as `python -m lockstep_data_plane.spark.pyspark_daemon
pyspark.worker`.
"""

import socket
import struct
from collections.abc import Callable
from importlib import import_module

from pyspark import daemon

from lockstep_kafka.messages.kio_loader import load_kio
from lockstep_runtime.util import memory

Serve = Callable[[socket.socket, bool], int]


def ends_with_jvm(serve: Serve) -> Serve:
    """Return PySpark's `worker` function without the traceback that it prints when its JVM was killed.

    `serve` is that function: it serves the tasks of one connection to the JVM. The driver says in one line that the JVM
    ended. What a task raises is sent to the JVM before it could get here.
    """

    def served(connection: socket.socket, authenticated: bool) -> int:
        try:
            return serve(connection, authenticated)
        except (EOFError, ConnectionError, struct.error):  # the last for a number that was cut off
            return 1  # an exit code: the caller closes the connection and ends this process

    return served


if __name__ == "__main__":
    load_kio()
    import_module("lockstep_data_plane.slot.worker")
    memory.freeze_gc()  # a search for cycles writes into each object: slots would share nothing of what is loaded
    vars(daemon)["worker"] = ends_with_jvm(daemon.worker)
    daemon.manager()
