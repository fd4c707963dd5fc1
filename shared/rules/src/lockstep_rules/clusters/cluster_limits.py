"""The number of topics and partitions that tiers of services take, by their documents. Pure.

No decision uses these limits. A person compares them with what a flow needs, and a cluster refuses by itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lockstep_rules.clusters.cluster_kind import ClusterKind


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCount:
    """A number of topics, of their partitions, and of the partitions of compacted ones."""

    topics: int = 0
    partitions: int = 0
    compacted: int = 0
    largest: int = 0
    """Partitions of the topic that has the most."""

    def __add__(self, other: "TopicCount") -> "TopicCount":
        return TopicCount(
            topics=self.topics + other.topics,
            partitions=self.partitions + other.partitions,
            compacted=self.compacted + other.compacted,
            largest=max(self.largest, other.largest),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TierLimit:
    """The limits of a tier of a service. None: its documents name no limit.

    `unit` names what a user buys several of. The limits `topics` and `partitions` are then for each one.
    """

    tier: str
    topics: int | None = None
    partitions: int | None = None
    uncompacted: int | None = None
    """Partitions of topics that are not compacted."""
    compacted: int | None = None
    """Partitions of compacted topics."""
    largest: int | None = None
    """Partitions of one topic."""
    unit: str = ""

    def exceeded_by(self, count: TopicCount) -> Iterator[tuple[str, int, int]]:
        """Yield (counted, count, limit) of each exceeded limit that does not depend on units."""
        numbers = (count.topics, count.partitions, count.partitions - count.compacted, count.compacted, count.largest)
        for (limit, counted, of_units), number in zip(self._limits(), numbers, strict=True):
            if limit is not None and number > limit and not (self.unit and of_units):
                yield counted, number, limit

    @property
    def text(self) -> str:
        """The tier with its limits, in the words of a sentence."""
        per_unit = f" for each {self.unit}" if self.unit else ""
        limits = (
            f"{limit:,} {counted}{per_unit if of_units else ''}"
            for limit, counted, of_units in self._limits()
            if limit is not None
        )
        return f"{self.tier} takes {', '.join(limits)}"

    def _limits(self) -> tuple[tuple[int | None, str, bool], ...]:
        """Return each limit, what it counts, and whether it is for each `unit`."""
        return (
            (self.topics, "topics", True),
            (self.partitions, "partitions", True),
            (self.uncompacted, "partitions that are not compacted", False),
            (self.compacted, "compacted partitions", False),
            (self.largest, "partitions of a topic", False),
        )


LIMITS: Mapping[str, tuple[TierLimit, ...]] = MappingProxyType(
    {
        ClusterKind.EVENT_HUBS: (
            TierLimit(tier="Standard", topics=10, largest=32),
            TierLimit(tier="Premium", topics=100, partitions=200, largest=100, unit="processing unit"),
            TierLimit(tier="Dedicated", topics=1000, largest=1024),
        ),
        ClusterKind.MSK_SERVERLESS: (TierLimit(tier="Default quota", uncompacted=2400, compacted=120),),
        ClusterKind.CONFLUENT_CLOUD: (TierLimit(tier="Basic", partitions=2048),),
    }
)
"""The tiers by the kind of a cluster. The guide of managed services links the documents."""
