"""The command `lockstep-checkpoint`."""

from lockstep_runtime.service.cli import service_command
from lockstep_runtime.service.definition import ServiceDefinition

ABOUT = """Translate the offsets of each consumer group of the source to the target. Every minute
(emit.checkpoints.interval.seconds) each partition in which a group has moved gets a checkpoint in
SOURCE.checkpoints.internal. MirrorMaker 2's MirrorClient and RemoteClusterUtils read them.

With sync.group.offsets.enabled the group of the same name on the target is moved there too: only forwards, and only
while it has no members. Which groups: `groups` and `groups.exclude`. Several replicas may run: they divide the groups.

\b
  lockstep-checkpoint --config mm2.properties
  lockstep-checkpoint --config mm2.properties --flow 'A->B' --port 9404"""

SERVICE = ServiceDefinition("checkpoint", build="lockstep_checkpoint.app:CheckpointFlow", divided=True)

main = service_command(SERVICE, ABOUT)

if __name__ == "__main__":
    main()
