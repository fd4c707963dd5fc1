"""The command `lockstep-topic-sync`."""

from lockstep_runtime.service.cli import service_command
from lockstep_runtime.service.definition import ServiceDefinition

ABOUT = """Keep the topics of each flow in step. Create remote topics with the partitions and configs of their source
topics, add partitions, and alter configs that differ. Nothing is ever deleted on the target.

Which topics: `topics` and `topics.exclude`, as MirrorMaker 2 reads them. A new topic is seen within seconds;
refresh.topics.interval.seconds is the longest time. The flow's state topic has the list of mirrored topics, which the
other services follow. Several replicas may run: one acts in each flow, the others stand by.

\b
  lockstep-topic-sync --config mm2.properties
  lockstep-topic-sync --config mm2.properties --flow 'A->B' --port 9404"""

SERVICE = ServiceDefinition("topic-sync", build="lockstep_topic_sync.app:TopicSync")

main = service_command(SERVICE, ABOUT)

if __name__ == "__main__":
    main()
