"""The data plane of a Lockstep deployment: the driver of its slots."""

from lockstep_runtime.service.cli import service_command
from lockstep_runtime.service.definition import ServiceDefinition

ABOUT = """Copy records from source to target, in raw batches, inside Spark tasks (slots).

One Spark driver serves all flows of the process; each flow has up to tasks.max slots (one per core where it is not
set). The target's own log shows what has been copied. So after a kill a slot continues without losing or
duplicating a record. Needs Java 17 or newer (JAVA_HOME or PATH). Slots run on this machine, or where
lockstep.spark.master says; lockstep.spark.conf.spark.... are Spark's own settings.

\b
  lockstep-data-plane --config mm2.properties
  lockstep-data-plane --config mm2.properties --flow 'A->B' --port 9404"""

SERVICE = ServiceDefinition(
    "data-plane",
    build="lockstep_data_plane.app:build",
    first="lockstep_data_plane.spark.process_session:start_spark",
    pauses_itself=True,
)

main = service_command(SERVICE, ABOUT)

if __name__ == "__main__":
    main()
