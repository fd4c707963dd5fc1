"""The heartbeat service of a Lockstep deployment."""

from lockstep_runtime.service.cli import service_command

ABOUT = """Show that each flow lives: every second (emit.heartbeats.interval.seconds) a record to the topic
`heartbeats` on the flow's target, as MirrorMaker 2 does, so that its MirrorClient sees hops and upstream clusters.

It runs for every ordered pair of clusters in the file, also where the flow itself is not enabled, unless
emit.heartbeats.enabled is false for the pair. Several replicas may run: one acts in each flow, the others stand by.

\b
  lockstep-heartbeat --config mm2.properties
  lockstep-heartbeat --config mm2.properties --flow 'A->B' --port 9404"""

main = service_command(
    "heartbeat", ABOUT, build="lockstep_heartbeat.app:Heartbeats", needs=lambda settings: settings.heartbeat.enabled
)

if __name__ == "__main__":
    main()
