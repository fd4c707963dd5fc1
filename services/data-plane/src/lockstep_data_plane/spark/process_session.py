"""The one Spark session of this process, started before the driver's own modules are loaded.

This module imports little, because Spark's JVM takes longer to start than all else.
"""

import os
import sys
from collections.abc import Sequence

from lockstep_config import FlowSettings
from lockstep_data_plane.slot.slot_spec import slot_count
from lockstep_data_plane.spark.conf import InvalidSubmission, join_conf, submitted_to
from lockstep_data_plane.spark.session import SparkSession
from lockstep_kafka.messages.kio_loader import load_kio
from lockstep_runtime.util.java import missing_java

started: list[SparkSession] = []
"""The Spark session of this process, once it has been started."""


def start_spark(flows: Sequence[FlowSettings]) -> None:
    """Start Spark with places for the slots of all flows, as soon as the configuration has been read.

    Raises SystemExit with code 2, after one sentence on standard error, if Java or the submitted settings cannot be
    used.
    """
    if (missing := missing_java(os.environ)) is not None:
        sys.stderr.write(f"{missing}\n")
        raise SystemExit(2)
    settings = flows[0].data_plane.spark  # a file names one Spark for all its flows
    try:
        if (submission := submitted_to(os.environ)) is not None:
            settings = join_conf(settings, submission)
    except InvalidSubmission as bad:
        sys.stderr.write(f"{bad}\n")
        raise SystemExit(2) from None
    verifying = sum(flow.data_plane.verify.tasks_max for flow in flows)  # a request may come at any time
    evaluates = any(transform.sql for flow in flows for transform in flow.data_plane.transforms)
    spark = SparkSession(settings, sum(slot_count(flow) for flow in flows) + verifying, evaluates=evaluates)
    spark.start()
    started.append(spark)
    load_kio()
