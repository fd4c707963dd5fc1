"""Asking a cluster whose connections come and go."""

import asyncio
import contextlib
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection

import pytest

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.admin.group_requests import COORDINATOR_ANSWERS_S
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable
from tests.support.broker import Broker, Quorum, started
from tests.support.clusters import (
    Record,
    commit_offset,
    create_topic,
    delete_topic,
    produce,
    unique_name,
    wait_for_brokers,
)
from tests.support.eventually import eventually
from tests.support.proxy import Proxy

WITHIN = timedelta(seconds=5)


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


async def test_offset_of_a_topic_that_does_not_exist_is_absent(broker_b: Broker, topic_name: str) -> None:
    create_topic(broker_b.bootstrap, topic_name)
    admin = Admin("B", {"bootstrap.servers": broker_b.bootstrap}, WITHIN)
    there, gone = (topic_name, 0), (unique_name("gone"), 0)
    assert await admin.end_offsets([gone]) == {}
    assert await admin.begin_offsets([there, gone, there]) == {there: 0}
    ends, troubles = await admin.end_offsets_or_troubles([gone, there])
    assert (ends, [*troubles]) == ({there: 0}, [gone])
    assert gone[0] in str(troubles[gone])


async def test_probe_asks_for_one_topic_that_the_cluster_has_named(broker_b: Broker) -> None:
    """All topics of a large cluster are megabytes, and a topic that was not named may be one that we may not see."""
    admin = Admin("B", {"bootstrap.servers": broker_b.bootstrap}, WITHIN)
    own = create_topic(broker_b.bootstrap), create_topic(broker_b.bootstrap)
    assert set(own) <= (await admin._brokers_metadata(5.0)).topics.keys()
    admin._named_topic = own[0]
    assert (await admin._brokers_metadata(5.0)).topics.keys() == {own[0]}
    delete_topic(broker_b.bootstrap, own[0])
    await admin.probe()
    assert own[0] not in (await admin._brokers_metadata(5.0)).topics
    assert await admin.topic(own[0]) is None, "it was created again"


def ask_beside_a_restart(bootstrap: str, test: Connection) -> None:
    """Asks about one group while its broker runs, is away and is back. Waits for the test before each of the three."""

    async def ask() -> None:
        admin = Admin("R", {"bootstrap.servers": bootstrap}, timedelta(seconds=COORDINATOR_ANSWERS_S + 2))
        test.send(set((await admin.describe_groups(["g"])).done))
        test.recv()
        with pytest.raises(ClusterUnreachable):
            await admin.describe_groups(["g"])
        test.send(set())
        test.recv()
        test.send(await eventually(lambda: _described(admin)))

    asyncio.run(ask())


async def _described(admin: Admin) -> set[str]:
    with contextlib.suppress(ClusterUnreachable):
        return set((await admin.describe_groups(["g"])).done)
    return set()


@pytest.mark.long
def test_question_given_up_while_its_coordinator_was_away_does_no_harm() -> None:
    """librdkafka uses a request after its timeout when the coordinator comes back, and aborts the process. So a process
    of its own asks here."""
    broker = Broker("R")
    test, child = get_context("spawn").Pipe()
    with started(broker):
        process = get_context("spawn").Process(target=ask_beside_a_restart, args=(broker.bootstrap, child), daemon=True)
        process.start()
        assert test.poll(60)
        assert test.recv() == {"g"}
        broker.stop()
        test.send("away")
        assert test.poll(60)
        assert test.recv() == set()
        broker.start()
        test.send("back")
        assert test.poll(60), "the process ended"
        assert test.recv() == {"g"}
        process.join(30)
        assert process.exitcode == 0


@pytest.mark.long
async def test_end_of_a_log_whose_broker_is_dead_is_not_answered() -> None:
    """librdkafka gives an offset for it all the same, which is below every log."""
    quorum = Quorum.with_nodes(2)
    first, second = (Broker(f"Q{node}", quorum=quorum, node=node) for node in (1, 2))
    with started(first, second):
        wait_for_brokers(first.bootstrap, 2)
        topic = create_topic(first.bootstrap, partitions=2)
        cluster = Admin("A", {"bootstrap.servers": f"{first.bootstrap},{second.bootstrap}"}, timeout=WITHIN)
        both = [(topic, 0), (topic, 1)]
        assert await cluster.end_offsets(both) == dict.fromkeys(both, 0)
        second.kill()
        for answered in (
            await cluster.end_offsets(both),
            await cluster.begin_offsets(both),
            await cluster.reachable_end_offsets(both, within=WITHIN),
        ):
            assert list(answered.values()) == [0]
        ends, troubles = await cluster.end_offsets_or_troubles(both)
        assert {*ends, *troubles} == {*both}
        (trouble,) = troubles.values()
        assert "did not answer" in str(trouble)
        ((silent, number),) = troubles
        with pytest.raises(ClusterUnreachable):
            await cluster.reachable_end_offsets([(silent, number)], within=WITHIN)
