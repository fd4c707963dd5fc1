"""Asking a cluster whose connections come and go."""

import asyncio
import contextlib
from datetime import timedelta

from lockstep_runtime.kafka.admin import Admin
from lockstep_runtime.util.errors import ClusterError
from tests.support.broker import Broker, started
from tests.support.clusters import Record, commit_offset, create_topic, produce, unique_name
from tests.support.proxy import Proxy


async def test_groups_are_answered_after_every_connection_was_lost(
    broker_b: Broker, proxy_b: Proxy, topic_name: str
) -> None:
    """librdkafka forgot the brokers then, and went on waiting for the coordinator of before: for ever."""
    group = unique_name("cut")
    create_topic(broker_b.bootstrap, topic_name)
    produce(broker_b.bootstrap, topic_name, [Record(b"k", b"v")] * 3)
    commit_offset(broker_b.bootstrap, group, topic_name, 0, 2)
    admin = Admin("B", {"bootstrap.servers": proxy_b.bootstrap}, timedelta(seconds=30))

    async def asked() -> int:
        while True:  # the first ones may meet a connection that is gone
            with contextlib.suppress(ClusterError):
                return (await admin.group_offsets(group))[topic_name, 0].offset
            await asyncio.sleep(0.1)

    assert await asked() == 2
    for _ in range(3):
        proxy_b.cut()
        assert await asyncio.wait_for(asked(), 20.0) == 2


async def test_first_question_about_a_group_of_a_new_cluster_is_answered() -> None:
    """It makes the broker create `__consumer_offsets`; until then no broker coordinates the group."""
    broker = Broker("N")
    with started(broker):
        admin = Admin("N", {"bootstrap.servers": broker.bootstrap}, timedelta(seconds=60))
        described = await asyncio.wait_for(admin.describe_groups(["g"]), 30.0)
        assert [one.state for one in described.done.values()] == ["DEAD"]
        assert await admin.group_offsets("g") == {}
