"""Topics and groups as a cluster describes them: plain values, so that plans need no client
library.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic that exists. `topic_id` is Kafka's base64 text, "" from brokers older than 2.8."""

    name: str
    topic_id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. `replication_factor` -1 leaves it to the broker (2.4+)."""

    name: str
    partitions: int
    replication_factor: int = -1
    configs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A consumer group as its coordinator sees it; `members` counts live ones, `who` are their client ids and hosts,
    sorted."""

    group: str
    state: str
    members: int
    member_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """A committed offset, never negative, with the committer's metadata ("" when there is none)."""

    offset: int
    metadata: str = ""
