"""Faults of a control topic that exists: in its cleanup policy, partitions, retention or in-sync replicas.

Anybody may create a control topic beforehand, or change it later. With `cleanup.policy=delete` the state topic loses
its rows after the retention, without an error anywhere. `find_faults` is pure, `read_faults` asks a cluster.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.admin.request_pieces import merge_outcomes
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.topics.control_topics import ControlTopic

CLEANUP_POLICY, RETENTION = "cleanup.policy", "retention.ms"
MIN_INSYNC, TIMESTAMP_TYPE, PARTITIONS = "min.insync.replicas", "message.timestamp.type", "partitions"

MEANINGS: Mapping[str, str] = {
    CLEANUP_POLICY: "records that are needed are removed",
    RETENTION: "records are removed too early",
    MIN_INSYNC: "no record is taken",
    TIMESTAMP_TYPE: "records of a clock that is wrong are refused",
    PARTITIONS: "a part of the work has no partition",
}
"""The consequence of each fault, by setting. The setting is also the code of the fault."""

ENDS_WORK = frozenset({CLEANUP_POLICY, MIN_INSYNC, PARTITIONS})
"""Settings whose faults end the work.

With such a fault a flow would lose rows that it needs, or could write nothing. So it does not run.
"""


@dataclass(frozen=True, slots=True)
class ControlTopicFault:
    """One setting of a control topic that differs from what its readers need."""

    topic: str
    setting: str
    actual: str
    needed: str

    @property
    def sentence(self) -> str:
        """Return a sentence about the fault and its consequence."""
        if self.is_too_many:
            return (
                f"{self.topic} has {self.actual} partitions, and needs {self.needed}: rows in the others are not read. "
                "Kafka removes no partitions: stop the flow, delete the topic, and Lockstep makes it anew"
            )
        return f"{self.topic} has {self.setting}={self.actual}, and needs {self.needed}: {MEANINGS[self.setting]}"

    @property
    def ends_work(self) -> bool:
        """Return whether the flow does not run with the fault.

        The other faults may stay if a cluster refuses the change.
        """
        return self.setting in ENDS_WORK

    @property
    def is_too_many(self) -> bool:
        """Return whether the topic has partitions that it must not have."""
        return self.setting == PARTITIONS and int(self.actual) > int(self.needed)

    def command(self, bootstrap: str) -> str:
        """Return the command line that repairs the fault."""
        if self.is_too_many:
            return f"kafka-topics --bootstrap-server {bootstrap} --delete --topic {self.topic}"
        if self.setting == PARTITIONS:
            return (
                f"kafka-topics --bootstrap-server {bootstrap} --alter --topic {self.topic} --partitions {self.needed}"
            )
        return (
            f"kafka-configs --bootstrap-server {bootstrap} --alter --entity-type topics --entity-name {self.topic} "
            f"--add-config {self.setting}={self.needed}"
        )


class ControlTopicUnfit(ClusterError):
    """An error if a control topic does not keep or take what a flow needs, and we may not repair it."""


def find_faults(
    topic: ControlTopic, partitions: int, replicas: int, configs: Mapping[str, str]
) -> Iterator[ControlTopicFault]:
    """Yield the faults of a control topic.

    Args:
        topic: The topic as it would be created.
        partitions: The number of its partitions.
        replicas: The number of replicas of the partition with the fewest; 0 if it is not known.
        configs: Its effective configs. One that is absent is not judged.
    """
    for setting in (CLEANUP_POLICY, TIMESTAMP_TYPE):
        needed, actual = topic.configs.get(setting), configs.get(setting)
        if needed is not None and actual is not None and _words(actual) != _words(needed):
            yield ControlTopicFault(topic.name, setting, actual, needed)
    kept, needed_ms = configs.get(RETENTION, ""), topic.configs.get(RETENTION)
    if needed_ms is not None and kept.isdigit() and int(kept) < int(needed_ms):
        yield ControlTopicFault(topic.name, RETENTION, kept, needed_ms)
    in_sync = configs.get(MIN_INSYNC, "")
    if replicas and in_sync.isdigit() and int(in_sync) > replicas:
        yield ControlTopicFault(topic.name, MIN_INSYNC, in_sync, str(replicas))
    if partitions < topic.partitions and topic.needs_partitions:
        yield ControlTopicFault(topic.name, PARTITIONS, str(partitions), str(topic.partitions))
    if partitions > 1 and topic.is_one_log:
        yield ControlTopicFault(topic.name, PARTITIONS, str(partitions), "1")


class ControlTopicFaults(NamedTuple):
    """The faults of control topics, and by topic the errors of configs that could not be read."""

    faults: Sequence[ControlTopicFault]
    unknown: Mapping[str, ClusterError]


async def read_faults(admin: Admin, topics: Iterable[ControlTopic]) -> ControlTopicFaults:
    """Return the faults of those topics that exist.

    Raises:
        ClusterUnreachable: No broker answered.
    """
    by_name = {topic.name: topic for topic in topics}
    described = (await admin.topics(by_name)).done
    answer = await merge_outcomes(admin.config_pieces(described))
    configs = answer.done
    faults: list[ControlTopicFault] = []
    for name, topic in described.items():
        values = {config.name: config.value for config in configs.get(name, ())}
        faults += find_faults(by_name[name], topic.partitions, topic.replicas, values)
    return ControlTopicFaults(faults, answer.troubles())


async def repair_faults(admin: Admin, faults: Sequence[ControlTopicFault]) -> Mapping[ControlTopicFault, ClusterError]:
    """Repair faults, and return the error of each fault that stays.

    Raises:
        ClusterUnreachable: No broker answered.
    """
    configs: dict[str, dict[str, str | None]] = {}
    for fault in faults:
        if fault.setting != PARTITIONS:
            configs.setdefault(fault.topic, {})[fault.setting] = fault.needed
    totals = {
        fault.topic: int(fault.needed) for fault in faults if fault.setting == PARTITIONS and not fault.is_too_many
    }
    altered = (await admin.alter_configs(configs)).troubles() if configs else {}
    grown = (await admin.create_partitions(totals)).troubles() if totals else {}
    stays: dict[ControlTopicFault, ClusterError] = {}
    for fault in faults:
        if fault.is_too_many:
            stays[fault] = ClusterError(admin.alias, f"cluster {admin.alias} cannot remove partitions")
            continue
        trouble = (grown if fault.setting == PARTITIONS else altered).get(fault.topic)
        if trouble is not None:
            stays[fault] = trouble
    return stays


def _words(policy: str) -> frozenset[str]:
    return frozenset(word.strip() for word in policy.split(","))
