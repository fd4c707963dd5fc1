"""The reasons why partitions of checkpoints are not in the target's listing of topics."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lockstep_kafka.admin.admin import Admin
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode


@dataclass(frozen=True, slots=True)
class MissingPartitions:
    """Partitions of the target that are not in its listing. `denied` has those whose topic may not be described."""

    reasons: Mapping[TopicPartition, Reason] = field(default_factory=dict)
    denied: frozenset[TopicPartition] = frozenset()


async def find_missing(admin: Admin, requested: Iterable[TopicPartition]) -> MissingPartitions:
    """Return why each of these partitions is not in the listing of topics.

    Topics are asked for by name: a listing leaves out a topic that may not be described. Raises ClusterUnreachable.
    """
    partitions = sorted(set(requested))
    if not partitions:
        return MissingPartitions()
    outcome = await admin.topics({topic for topic, _ in partitions})
    troubles = outcome.troubles()
    reasons: dict[TopicPartition, Reason] = {}
    for topic, partition in partitions:
        description, trouble = outcome.done.get(topic), troubles.get(topic)
        if trouble is not None:
            reason = ReasonCode.REPORTED.to_reason(text=str(trouble))
        elif description is None:
            reason = ReasonCode.TOPIC_ABSENT.to_reason(topic=topic, cluster=admin.alias)
        elif partition >= description.partitions:
            reason = ReasonCode.PARTITION_ABSENT.to_reason(topic=topic, cluster=admin.alias)
        else:
            reason = ReasonCode.TOPIC_WAS_ABSENT.to_reason(topic=topic, cluster=admin.alias)
        reasons[topic, partition] = reason
    return MissingPartitions(reasons, frozenset(tp for tp in partitions if tp[0] in outcome.denied))
