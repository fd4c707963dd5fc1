"""Why a slot failed is one line out of what Spark says: the one Python raised."""

import pytest

from lockstep_data_plane.spark.session import _first_cause

FROM_PYTHON = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1245, in main
    process()
  File "slot.py", line 70, in run
    raise Deposed("another run: newer")
lockstep_data_plane.slot.slot.Deposed: another run: newer

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)
\tat java.base/java.lang.Thread.run(Thread.java:840)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2856)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "slot.py", line 70, in run
    raise Deposed("another run: newer")
lockstep_data_plane.slot.slot.Deposed: another run: newer
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)
"""
CHAINED = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "cluster.py", line 1, in connect
OSError: refused

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "slot.py", line 70, in run
lockstep_kafka.wire.connection.BrokerUnreachable: 127.0.0.1:1: refused
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        pytest.param(FROM_PYTHON, "lockstep_data_plane.slot.slot.Deposed: another run: newer", id="raised in Python"),
        pytest.param(
            CHAINED,
            "lockstep_kafka.wire.connection.BrokerUnreachable: 127.0.0.1:1: refused",
            id="the outermost of a chain",
        ),
        pytest.param(
            "\n\nJob 3 cancelled part of cancelled job group x\n\tat a.b\n",
            "Job 3 cancelled part of cancelled job group x",
            id="no Python in it",
        ),
        pytest.param("", "", id="nothing"),
        pytest.param("x" * 900, "x" * 500, id="never longer than a line can be read"),
    ],
)
def test_slot_failure_is_the_line_of_the_first_cause(text: str, cause: str) -> None:
    assert _first_cause(text) == cause
