"""The command `lockstep-heartbeat`."""

from lockstep_runtime.service.cli import service_command
from lockstep_runtime.service.definition import ServiceDefinition

ABOUT = """Show that each flow lives. Every second (emit.heartbeats.interval.seconds) the topic `heartbeats` on the
flow's target gets a record. From these, MirrorMaker 2's MirrorClient finds hops and upstream clusters.

It runs for every ordered pair of clusters in the file, also if the flow itself is not enabled. It does not run for a
pair with emit.heartbeats.enabled=false. Several replicas may run: one acts in each flow, the others stand by.

\b
  lockstep-heartbeat --config mm2.properties
  lockstep-heartbeat --config mm2.properties --flow 'A->B' --port 9404"""

SERVICE = ServiceDefinition("heartbeat", build="lockstep_heartbeat.app:Heartbeats")

main = service_command(SERVICE, ABOUT)

if __name__ == "__main__":
    main()
