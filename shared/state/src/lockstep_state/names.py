"""Names that several services must form alike: flows, control topics, groups (`architecture.md` §3, `mm2-behaviour.md`
§1.1)."""

import re
from dataclasses import dataclass

OUR_GROUPS = "lockstep-"
"""The groups of our own services start so (`service_group`); where a target is itself a source, they are there."""

LOCKSTEP_PREFIX = "mm2-lockstep-"
"""Every topic of ours starts so; such topics are never mirrored, by us or by an MM2 with its default excludes."""

COMMANDS_PARTITIONS = 6
"""Partitions of a commands topic: the largest number of replicas among which a service can divide its work."""

ARROW = "->"


@dataclass(frozen=True, slots=True, order=True)
class Flow:
    """Mirroring from the cluster with alias ``source`` to the one with alias ``target``; prints as ``A->B``."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}{ARROW}{self.target}"

    @classmethod
    def parse(cls, text: str) -> "Flow":
        """Read ``A->B``.

        Raises ValueError with a sentence for people when the text is not two aliases joined by an arrow.
        """
        source, arrow, target = text.strip().partition(ARROW)
        if not (arrow and source.strip() and target.strip()):
            raise ValueError(f"{text!r} is not a flow: write it as SOURCE->TARGET, for example 'A->B' (with quotes)")
        return cls(source.strip(), target.strip())


def _control_topic(kind: str, flow: Flow, group_id: str | None) -> str:
    instance = f"{group_id}-" if group_id else ""
    return f"{LOCKSTEP_PREFIX}{instance}{kind}.{flow.source}.internal"


def state_topic(flow: Flow, group_id: str | None = None) -> str:
    """Compacted, one partition, on the flow's target: what is so now."""
    return _control_topic("state", flow, group_id)


_STATE_TOPIC = re.compile(rf"{LOCKSTEP_PREFIX}(.+-)?state\..+\.internal")


def is_state_topic(topic: str) -> bool:
    """Whether `topic` is the state topic of some flow into its cluster, of any instance."""
    return _STATE_TOPIC.fullmatch(topic) is not None


def companion_topics(topic: str) -> frozenset[str]:
    """Return the other topics that a flow keeps beside a state topic, on the same cluster. A flow that has run has
    them. Empty for the name of another topic."""
    if not is_state_topic(topic):
        return frozenset()
    instance, _, source = topic.removeprefix(LOCKSTEP_PREFIX).rpartition("state.")
    return frozenset(f"{LOCKSTEP_PREFIX}{instance}{kind}.{source}" for kind in ("events", "commands"))


def events_topic(flow: Flow, group_id: str | None = None) -> str:
    """Kept seven days, one partition, on the flow's target: what happened."""
    return _control_topic("events", flow, group_id)


def commands_topic(flow: Flow, group_id: str | None = None) -> str:
    """Kept seven days, `COMMANDS_PARTITIONS` partitions, on the flow's target: what an operator asked for."""
    return _control_topic("commands", flow, group_id)


def quarantine_topic(flow: Flow, group_id: str | None = None) -> str:
    """Kept until an operator deletes it, one partition, on the flow's target: what the target refused, or what cannot
    be read."""
    return _control_topic("quarantine", flow, group_id)


def progress_topic(flow: Flow) -> str:
    """Connect's source-offset topic of MM2's dedicated mode, on the target; dots always (`mm2-behaviour.md` §1.1)."""
    return f"mm2-offsets.{flow.source}.internal"


def service_group(service: str, flow: Flow, group_id: str | None = None) -> str:
    """The consumer group through which the replicas of a service divide the commands topic of a flow."""
    instance = f"{group_id}-" if group_id else ""
    return f"{OUR_GROUPS}{instance}{service}-{flow.source}-{flow.target}"


def transactional_id(flow: Flow, group_id: str | None, topic: str, partition: int) -> str:
    """The transactional id under which a flow's records of one source partition are appended to the target
    (`exactly.once.source.support=enabled`)."""
    instance = f"{group_id}-" if group_id else ""
    return f"lockstep-{instance}{flow.source}-{flow.target}-{topic}-{partition}"
