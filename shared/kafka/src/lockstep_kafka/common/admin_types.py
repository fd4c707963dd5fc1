"""What an administrator of a cluster gets: topics and groups as plain values, so that plans need no client library. And
what became of a request about many resources.
"""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lockstep_kafka.common.errors import NotPermitted, RequestRefused

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """Each resource asked about is a key of exactly one of the three."""

    done: dict[str, T] = field(default_factory=dict)
    failed: dict[str, RequestRefused] = field(default_factory=dict)
    denied: dict[str, NotPermitted] = field(default_factory=dict)

    def merge(self, other: "Outcome[T]") -> None:
        """Take in what became of other resources."""
        self.done.update(other.done)
        self.failed.update(other.failed)
        self.denied.update(other.denied)

    def troubles(self) -> dict[str, NotPermitted | RequestRefused]:
        """What did not work, for any reason, by resource."""
        return {**self.failed, **self.denied}

    def require_done(self) -> dict[str, T]:
        """What worked, if all did. Raises the first trouble."""
        for trouble in self.troubles().values():
            raise trouble
        return self.done


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic that exists. `topic_id` is Kafka's base64 text, "" from brokers older than 2.8. `replicas`: of the
    partition that has the fewest; 0: not known.
    """

    name: str
    topic_id: str
    partitions: int
    replicas: int = field(default=0, compare=False)
    in_sync: tuple[int, ...] = field(default=(), compare=False)
    """Replicas in sync, by partition."""


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
    sorted.
    """

    group: str
    state: str
    members: int
    member_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """A committed offset, never negative, with the committer's metadata ("" when there is none)."""

    offset: int
    metadata: str = ""
