"""Names that several services must form alike: flows, control topics, groups.

The formats are in `architecture.md` §3 and `mm2-behaviour.md` §1.1.
"""

import re
import string
from dataclasses import dataclass

OUR_GROUPS = "lockstep-"
"""The prefix of the groups of our own services (`service_group`). They exist where a target is itself a source."""

LOCKSTEP_PREFIX = "mm2-lockstep-"
"""The prefix of our own topics, which neither Lockstep nor an MM2 with its default excludes mirrors."""

COMMANDS_PARTITIONS = 6
"""Partitions of a commands topic: the largest number of replicas among which a service can divide its work."""

ARROW = "->"

TOPIC_CHARACTERS = frozenset(string.ascii_letters + string.digits + "._-")
"""The characters that topic names may have."""

LONGEST_TOPIC = 249
"""The most characters of a topic's name."""


def is_topic_name(name: str) -> bool:
    """Return whether Kafka takes this name for a topic, unless it is too long (`LONGEST_TOPIC`)."""
    return name not in ("", ".", "..") and TOPIC_CHARACTERS.issuperset(name)


@dataclass(frozen=True, slots=True, order=True)
class Flow:
    """Mirroring from the cluster with alias ``source`` to the one with alias ``target``; prints as ``A->B``."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}{ARROW}{self.target}"

    @classmethod
    def parse(cls, text: str) -> "Flow":
        """Parse ``A->B``. Raises ValueError with a sentence for any other text."""
        source, arrow, target = text.strip().partition(ARROW)
        if not (arrow and source.strip() and target.strip()):
            raise ValueError(f"{text!r} is not a flow: write it as SOURCE->TARGET, for example 'A->B' (with quotes)")
        return cls(source.strip(), target.strip())


def _control_topic(kind: str, flow: Flow, group_id: str | None) -> str:
    instance = f"{group_id}-" if group_id else ""
    return f"{LOCKSTEP_PREFIX}{instance}{kind}.{flow.source}.internal"


def state_topic(flow: Flow, group_id: str | None = None) -> str:
    """Return the flow's state topic: compacted, one partition, on the target."""
    return _control_topic("state", flow, group_id)


_STATE_TOPIC = re.compile(rf"{LOCKSTEP_PREFIX}(.+-)?state\..+\.internal")


def is_state_topic(topic: str) -> bool:
    """Return whether `topic` is the state topic of some flow into its cluster, of any instance."""
    return _STATE_TOPIC.fullmatch(topic) is not None


def companion_topics(topic: str) -> frozenset[str]:
    """Return the topics that a flow that has run keeps beside this state topic; none for the name of another topic."""
    if not is_state_topic(topic):
        return frozenset()
    instance, _, source = topic.removeprefix(LOCKSTEP_PREFIX).rpartition("state.")
    return frozenset(f"{LOCKSTEP_PREFIX}{instance}{kind}.{source}" for kind in ("events", "commands"))


def events_topic(flow: Flow, group_id: str | None = None) -> str:
    """Return the flow's events topic: kept seven days, one partition, on the target."""
    return _control_topic("events", flow, group_id)


def commands_topic(flow: Flow, group_id: str | None = None) -> str:
    """Return the flow's commands topic: kept seven days, `COMMANDS_PARTITIONS` partitions, on the target."""
    return _control_topic("commands", flow, group_id)


def quarantine_topic(flow: Flow, group_id: str | None = None) -> str:
    """Return the topic of refused and unreadable records: kept until deleted, one partition, on the target."""
    return _control_topic("quarantine", flow, group_id)


def progress_topic(flow: Flow) -> str:
    """Return Connect's source-offset topic of MM2's dedicated mode, on the target (`mm2-behaviour.md` §1.1).

    It has dots under any separator.
    """
    return f"mm2-offsets.{flow.source}.internal"


def service_group(service: str, flow: Flow, group_id: str | None = None) -> str:
    """Return the consumer group through which the replicas of a service divide the commands topic of a flow."""
    instance = f"{group_id}-" if group_id else ""
    return f"{OUR_GROUPS}{instance}{service}-{flow.source}-{flow.target}"


def transactional_id(flow: Flow, group_id: str | None, topic: str, partition: int) -> str:
    """Return the transactional id for records of one source partition (`exactly.once.source.support=enabled`)."""
    instance = f"{group_id}-" if group_id else ""
    return f"lockstep-{instance}{flow.source}-{flow.target}-{topic}-{partition}"
