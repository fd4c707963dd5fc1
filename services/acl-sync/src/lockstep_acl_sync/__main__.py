"""The ACL sync service of a Lockstep deployment."""

from lockstep_runtime.service.cli import service_command

ABOUT = """Let who may read a source topic read its remote topic: every ten minutes
(sync.topic.acls.interval.seconds), and at once for a new topic, ACLs that the target lacks are added.

As MirrorMaker 2: ALLOW WRITE is never copied and ALLOW ALL becomes ALLOW READ; only literal topic names count, and
nothing is revoked on the target, unless lockstep.acls.prefixed, .groups or .delete ask for more.
Several replicas may run: one acts in each flow, the others stand by.

\b
  lockstep-acl-sync --config mm2.properties
  lockstep-acl-sync --config mm2.properties --flow 'A->B' --port 9404"""

main = service_command(
    "acl-sync",
    ABOUT,
    build="lockstep_acl_sync.app:AclSync",
    needs=lambda settings: settings.enabled and settings.acl_sync.enabled,
)

if __name__ == "__main__":
    main()
