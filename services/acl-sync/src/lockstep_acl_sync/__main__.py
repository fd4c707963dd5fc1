"""The command `lockstep-acl-sync`."""

from lockstep_runtime.service.cli import service_command
from lockstep_runtime.service.definition import ServiceDefinition

ABOUT = """Copy the ACLs of source topics, so that their readers may read the remote topics. ACLs that the target lacks
are added every ten minutes (sync.topic.acls.interval.seconds), and at once for a new topic.

As in MirrorMaker 2, ALLOW WRITE is never copied and ALLOW ALL becomes ALLOW READ. Only literal topic names count, and
nothing is revoked on the target. lockstep.acls.prefixed, .groups and .delete change that.
Several replicas may run: one acts in each flow, the others stand by.

\b
  lockstep-acl-sync --config mm2.properties
  lockstep-acl-sync --config mm2.properties --flow 'A->B' --port 9404"""

SERVICE = ServiceDefinition("acl-sync", build="lockstep_acl_sync.app:AclSync")

main = service_command(SERVICE, ABOUT)

if __name__ == "__main__":
    main()
