"""The checkpoint service of a Lockstep deployment."""

from lockstep_runtime.service.cli import service_command

ABOUT = """Say where each consumer group of the source stands on the target: every minute
(emit.checkpoints.interval.seconds) a checkpoint to SOURCE.checkpoints.internal for each partition in which a group has
moved, as MirrorMaker 2 does, so that its MirrorClient and RemoteClusterUtils read them.

With sync.group.offsets.enabled the group of the same name on the target is moved there too: only forwards, and only
while nobody is in it. Which groups: `groups` and `groups.exclude`. Several replicas may run: they divide the groups.

\b
  lockstep-checkpoint --config mm2.properties
  lockstep-checkpoint --config mm2.properties --flow 'A->B' --port 9404"""

main = service_command(
    "checkpoint",
    ABOUT,
    build="lockstep_checkpoint.app:CheckpointFlow",
    needs=lambda settings: settings.checkpoint.enabled,
    divided=True,
)

if __name__ == "__main__":
    main()
