"""A large flow as it is reckoned, not measured: topics, their partitions, and how many bytes a second each moves.

Few topics move most, as is usual: the topic of rank n moves 1/n of what the first one does. Keys are skewed, so the
partitions of a topic differ. The same arguments always give the same fleet. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic

SEED = 36
SIZES = (4, 6, 8, 12, 16, 24, 32, 48, 96)
"""How many partitions a topic may have."""

KEY_SKEW = 0.5
"""The sigma of the log-normal distribution by which the partitions of a topic differ."""

TOPIC_ID = "m4oYx2QeRvW1jZ3kT5nA{:02x}"
CONFIGS = (
    ("cleanup.policy", "delete"),
    ("compression.type", "producer"),
    ("delete.retention.ms", "86400000"),
    ("max.message.bytes", "1048588"),
    ("message.timestamp.type", "CreateTime"),
)


@dataclass(frozen=True, slots=True)
class ModelledFleet:
    """`rates`: bytes a second by partition."""

    topics: Sequence[MirroredTopic]
    rates: Mapping[TopicPartition, float]

    @classmethod
    def modelled(cls, partitions: int, bytes_per_s: float, seed: int = SEED) -> "ModelledFleet":
        """Return so many partitions, which move so much together."""
        random = Random(seed)
        sizes: list[int] = []
        while (remaining := partitions - sum(sizes)) > 0:
            sizes.append(min(random.choice(SIZES), remaining))
        ranks = random.sample(range(1, len(sizes) + 1), len(sizes))
        total = sum(1 / rank for rank in ranks)
        topics = [
            modelled_topic(f"orders.region-{number % 8}.stream-{number:04d}", size, number)
            for number, size in enumerate(sizes)
        ]
        rates: dict[TopicPartition, float] = {}
        for topic, rank in zip(topics, ranks, strict=True):
            shares = [random.lognormvariate(0.0, KEY_SKEW) for _ in range(topic.partitions)]
            for number, share in enumerate(shares):
                rates[topic.source_topic, number] = bytes_per_s / rank / total * share / sum(shares)
        return cls(topics, rates)

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        return list(self.rates)

    def with_topics(self, count: int, partitions: int) -> "ModelledFleet":
        """Return the same fleet with so many new topics, which move nothing yet."""
        first = len(self.topics)
        added = [modelled_topic(f"added-{number:03d}", partitions, first + number) for number in range(count)]
        none = {(topic.source_topic, number): 0.0 for topic in added for number in range(partitions)}
        return replace(self, topics=[*self.topics, *added], rates={**self.rates, **none})


def modelled_topic(name: str, partitions: int, number: int) -> MirroredTopic:
    """Return the row of a topic that is mirrored, as topic-sync writes it."""
    return MirroredTopic(
        source_topic=name,
        target_topic=f"A.{name}",
        source_topic_id=TOPIC_ID.format(number % 256),
        target_topic_id=TOPIC_ID.format((number + 128) % 256),
        partitions=partitions,
        target_partitions=partitions,
        target_configs=CONFIGS,
    )
