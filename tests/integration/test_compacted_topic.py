"""A follower of a compacted topic notices that the topic is another one, and reads it from its beginning."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.asyncio_util import cancelled
from lockstep_kafka.topics.control_topics import ControlTopic, ensure_control_topics
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.state.compacted_topic import CompactedTopic, CreateTopics
from lockstep_runtime.telemetry.failure_tracker import FailureTracker
from lockstep_runtime.telemetry.log import FlowLog
from tests.support.broker import Broker
from tests.support.clusters import Record as Written
from tests.support.clusters import create_topic, delete_topic, produce
from tests.support.eventually import eventually

NAME = "values"


class Values(CompactedTopic[list[bytes]]):
    """The values of a topic, in their order."""

    def __init__(
        self, broker: Broker, topic: str, *, create: CreateTopics | None = None, optional: bool = False
    ) -> None:
        conf = {"bootstrap.servers": broker.bootstrap}
        log = FlowLog("test", "A->B")
        self.troubles = FailureTracker(log)
        kept = ControlTopic(topic)
        super().__init__(
            Admin("B", conf), lambda: conf, kept, log, self.troubles, name=NAME, create=create, optional=optional
        )

    def begin_fold(self) -> list[bytes]:
        return []

    def apply(self, fold: list[bytes], records: Sequence[Record]) -> None:
        fold.extend(record.value or b"" for record in records)


@asynccontextmanager
async def followed(values: Values) -> AsyncIterator[Values]:
    work = asyncio.create_task(values.run())
    try:
        yield values
        assert not work.done()
    finally:
        await cancelled([work])


def write(broker: Broker, topic: str, *values: bytes) -> None:
    produce(broker.bootstrap, topic, [Written(key=value, value=value) for value in values])


async def test_topic_is_read_to_its_end_and_followed(broker_b: Broker, topic_name: str) -> None:
    create_topic(broker_b.bootstrap, topic_name)
    write(broker_b, topic_name, b"1", b"2")
    async with followed(Values(broker_b, topic_name)) as values:
        await asyncio.wait_for(values.wait_loaded(), 15.0)
        assert (values.fold, values.trouble, values.readings) == ([b"1", b"2"], "", 1)
        write(broker_b, topic_name, b"3")
        await eventually(lambda: values.fold == [b"1", b"2", b"3"])


async def test_missing_topic_is_created_on_request(broker_b: Broker, topic_name: str) -> None:
    async with followed(Values(broker_b, topic_name, create=ensure_control_topics)) as values:
        await asyncio.wait_for(values.wait_loaded(), 15.0)
        assert values.fold == []


async def test_optional_missing_topic_is_no_failure_and_is_read_once_created(broker_b: Broker, topic_name: str) -> None:
    async with followed(Values(broker_b, topic_name, optional=True)) as values:
        await asyncio.wait_for(values.wait_judged(), 15.0)
        assert (values.fold, values.is_missing, values.troubles.now) == (None, True, {})
        create_topic(broker_b.bootstrap, topic_name)
        write(broker_b, topic_name, b"1")
        await values.verify()
        await eventually(lambda: values.fold == [b"1"])


async def test_missing_topic_is_a_failure_until_it_is_created(broker_b: Broker, topic_name: str) -> None:
    async with followed(Values(broker_b, topic_name)) as values:
        await asyncio.wait_for(values.wait_judged(), 15.0)
        assert values.trouble == f"{NAME}: topic {topic_name} does not exist on cluster B"
        assert values.troubles.now.keys() == {NAME}
        create_topic(broker_b.bootstrap, topic_name)
        await eventually(lambda: values.fold == [] and values.troubles.now == {})


async def test_re_created_topic_is_read_again_even_if_longer(broker_b: Broker, topic_name: str) -> None:
    create_topic(broker_b.bootstrap, topic_name)
    write(broker_b, topic_name, b"1")
    async with followed(Values(broker_b, topic_name)) as values:
        await asyncio.wait_for(values.wait_loaded(), 15.0)
        delete_topic(broker_b.bootstrap, topic_name)
        create_topic(broker_b.bootstrap, topic_name)
        write(broker_b, topic_name, b"a", b"b", b"c")
        await values.verify()
        await eventually(lambda: values.fold == [b"a", b"b", b"c"])
        assert values.readings == 2
