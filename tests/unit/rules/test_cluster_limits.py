"""The limits of managed services for topics and partitions."""

import pytest

from lockstep_rules.clusters.cluster_kind import ClusterKind
from lockstep_rules.clusters.cluster_limits import LIMITS, TierLimit, TopicCount

STANDARD, PREMIUM, DEDICATED = LIMITS[ClusterKind.EVENT_HUBS]
(SERVERLESS,) = LIMITS[ClusterKind.MSK_SERVERLESS]


def test_counts_add_up_and_keep_the_largest_topic() -> None:
    first = TopicCount(topics=1, partitions=6, largest=6)
    second = TopicCount(topics=2, partitions=26, compacted=26, largest=25)
    assert first + second == TopicCount(topics=3, partitions=32, compacted=26, largest=25)


@pytest.mark.parametrize(
    ("tier", "count", "exceeded"),
    [
        (STANDARD, TopicCount(topics=10, partitions=90, largest=32), []),
        (STANDARD, TopicCount(topics=11, largest=33), [("topics", 11, 10), ("partitions of a topic", 33, 32)]),
        (PREMIUM, TopicCount(topics=101, partitions=900), []),
        (PREMIUM, TopicCount(largest=101), [("partitions of a topic", 101, 100)]),
        (SERVERLESS, TopicCount(partitions=2520, compacted=120), []),
        (
            SERVERLESS,
            TopicCount(partitions=2522, compacted=121),
            [("partitions that are not compacted", 2401, 2400), ("compacted partitions", 121, 120)],
        ),
    ],
)
def test_limit_is_exceeded_only_beyond_it_and_without_units(
    tier: TierLimit, count: TopicCount, exceeded: list[tuple[str, int, int]]
) -> None:
    assert list(tier.exceeded_by(count)) == exceeded


def test_tier_names_its_limits_with_their_unit() -> None:
    assert STANDARD.text == "Standard takes 10 topics, 32 partitions of a topic"
    assert PREMIUM.text == (
        "Premium takes 100 topics for each processing unit, 200 partitions for each processing unit, "
        "100 partitions of a topic"
    )


@pytest.mark.parametrize("kind", LIMITS)
def test_limits_are_of_known_kinds_and_name_something(kind: str) -> None:
    assert kind in set(ClusterKind)
    assert all(" takes " in tier.text and tier.text.strip() == tier.text for tier in LIMITS[kind])
