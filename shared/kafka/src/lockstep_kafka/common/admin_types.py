"""Plain values for topics, groups and results of admin requests, so that plans need no client library."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lockstep_kafka.common.errors import NotPermitted, RequestRefused

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The result of a request about many resources.

    Each resource is a key of at most one of the three fields.
    """

    done: dict[str, T] = field(default_factory=dict)
    failed: dict[str, RequestRefused] = field(default_factory=dict)
    denied: dict[str, NotPermitted] = field(default_factory=dict)

    def merge(self, other: "Outcome[T]") -> None:
        """Add the outcome of other resources to this one."""
        self.done.update(other.done)
        self.failed.update(other.failed)
        self.denied.update(other.denied)

    def troubles(self) -> dict[str, NotPermitted | RequestRefused]:
        """Return the errors of the resources that failed or were denied, by resource."""
        return {**self.failed, **self.denied}

    def require_done(self) -> dict[str, T]:
        """Return the results if every resource succeeded, otherwise raise the first error."""
        for trouble in self.troubles().values():
            raise trouble
        return self.done


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic that exists.

    `topic_id` is Kafka's base64 text, or "" from brokers older than 2.8. `replicas` is that of the partition that has
    the fewest, or 0 if it is not known.
    """

    name: str
    topic_id: str
    partitions: int
    replicas: int = field(default=0, compare=False)
    in_sync: tuple[int, ...] = field(default=(), compare=False)
    """Number of replicas in sync, by partition."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create.

    A `replication_factor` of -1 leaves it to the broker (2.4+).
    """

    name: str
    partitions: int
    replication_factor: int = -1
    configs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A consumer group as its coordinator describes it.

    `members` counts the live members. `member_names` has their client ids and hosts, sorted.
    """

    group: str
    state: str
    members: int
    member_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """A committed offset, never negative, with the committer's metadata or ""."""

    offset: int
    metadata: str = ""
