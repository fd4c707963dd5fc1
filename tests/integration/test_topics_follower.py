"""One client that follows many topics: what it hands over, and what ends one topic and no other."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from lockstep_kafka.common.errors import LogTruncated
from lockstep_kafka.topics.topic_reader import Record
from lockstep_kafka.topics.topics_follower import FollowedTopic, TopicsFollower
from tests.support.broker import Broker
from tests.support.clusters import Record as Written
from tests.support.clusters import create_topic, delete_records, produce
from tests.support.eventually import eventually


@asynccontextmanager
async def following(broker: Broker) -> AsyncIterator[TopicsFollower]:
    follower = TopicsFollower({"bootstrap.servers": broker.bootstrap}, "B")
    try:
        yield follower
    finally:
        follower.end()


def write(broker: Broker, topic: str, *values: str) -> None:
    produce(broker.bootstrap, topic, [Written(value=value.encode(), partition=0) for value in values])


async def caught_up(followed: FollowedTopic) -> None:
    async with asyncio.timeout(30):
        await followed.caught_up()


class Heard(list[str]):
    """The values that came."""

    def take(self, records: Sequence[Record]) -> None:
        self.extend((record.value or b"").decode() for record in records)


async def test_each_topic_is_read_from_its_offset_and_followed(broker_b: Broker) -> None:
    topics = [create_topic(broker_b.bootstrap) for _ in range(12)]
    for number, topic in enumerate(topics):
        write(broker_b, topic, *(f"{number}-{place}" for place in range(number)))
    heard = [Heard() for _ in topics]
    async with following(broker_b) as follower:
        followed = [
            follower.follow(topic, min(1, number), number, heard[number].take) for number, topic in enumerate(topics)
        ]
        await asyncio.gather(*map(caught_up, followed))
        assert heard == [[f"{number}-{place}" for place in range(1, number)] for number in range(12)]
        follower.leave(followed[1])
        for topic in topics[:3]:
            write(broker_b, topic, "new")
        await eventually(lambda: heard[0] == ["new"] and heard[2][-1] == "new", within=20, what="what is new")
        assert "new" not in heard[1]
        assert followed[2].position == 3


async def test_topic_that_is_followed_anew_begins_at_the_new_offset(broker_b: Broker) -> None:
    topic = create_topic(broker_b.bootstrap)
    write(broker_b, topic, "a", "b")
    first, second = Heard(), Heard()
    async with following(broker_b) as follower:
        await caught_up(follower.follow(topic, 1, 2, first.take))
        await caught_up(follower.follow(topic, 0, 2, second.take))
        assert (first, second) == (["b"], ["a", "b"])


async def test_truncated_topic_ends_alone(broker_b: Broker) -> None:
    kept, cut = create_topic(broker_b.bootstrap), create_topic(broker_b.bootstrap)
    write(broker_b, kept, "a")
    write(broker_b, cut, "a", "b", "c")
    await asyncio.to_thread(delete_records, broker_b.bootstrap, cut, 2)
    heard = Heard()
    async with following(broker_b) as follower:
        fine = follower.follow(kept, 0, 1, heard.take)
        gone = follower.follow(cut, 0, 3, heard.take)
        async with asyncio.timeout(40):
            with pytest.raises(LogTruncated):
                await gone.failed()
        await caught_up(fine)
        write(broker_b, kept, "b")
        await eventually(lambda: heard == ["a", "b"], within=20, what="the other topic goes on")


async def test_error_of_a_receiver_ends_its_topic_alone(broker_b: Broker) -> None:
    one, two = create_topic(broker_b.bootstrap), create_topic(broker_b.bootstrap)
    for topic in (one, two):
        write(broker_b, topic, "a")

    def refuse(_: Sequence[Record]) -> None:
        raise ValueError("no")

    heard = Heard()
    async with following(broker_b) as follower:
        failing, fine = follower.follow(one, 0, 1, refuse), follower.follow(two, 0, 1, heard.take)
        with pytest.raises(ValueError, match="no"):
            await caught_up(failing)
        await caught_up(fine)
        assert heard == ["a"]
