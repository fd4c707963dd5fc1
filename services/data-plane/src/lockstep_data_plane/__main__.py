"""The data plane of a Lockstep deployment: the driver of its slots."""

from __future__ import annotations

from lockstep_runtime.command import service_command

ABOUT = """Copy records from source to target, in raw batches, inside Spark tasks (slots).

One Spark driver serves all flows of the process; each flow has up to tasks.max slots (one per core where it is not
set). What has been copied stands in the target's own log, so a slot that is killed anywhere goes on without losing or
doubling a record. Needs Java 17 or newer (JAVA_HOME or PATH). Spark settings come from the environment as usual, such
as SPARK_CONF_DIR; without a master, Spark runs inside this process's JVM.

\b
  lockstep-data-plane --config mm2.properties
  lockstep-data-plane --config mm2.properties --flow 'A->B' --port 9404"""

main = service_command(
    "data-plane",
    ABOUT,
    build="lockstep_data_plane.app:build",
    needs=lambda settings: settings.data_plane.enabled,
    first="lockstep_data_plane.app:start_spark",
)

if __name__ == "__main__":
    main()
