"""The committed offsets of groups, while their coordinators change."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from datetime import timedelta

import pytest

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.admin_types import GroupOffset
from lockstep_kafka.common.errors import ClusterUnreachable
from tests.support.broker import Broker, Quorum, started
from tests.support.clusters import Record, commit_offset, create_topic, produce, unique_name, wait_for_brokers
from tests.support.eventually import eventually
from tests.support.ports import free_port

GROUPS = [f"group-{number}" for number in range(8)]
"""Of the partitions of `__consumer_offsets` that the two brokers lead, each has some."""


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[tuple[Broker, Broker]]:
    quorum = Quorum.with_nodes(2)
    first, second = (Broker("N", quorum=quorum, node=node) for node in (1, 2))
    with started(first, second):
        wait_for_brokers(first.bootstrap, 2)
        yield first, second


@pytest.fixture(scope="module")
def topic(two_nodes: tuple[Broker, Broker]) -> str:
    """Its first question about offsets makes the brokers create `__consumer_offsets`."""
    first, _ = two_nodes
    admin = Admin("N", {"bootstrap.servers": first.bootstrap})
    assert asyncio.run(admin.group_offsets("unknown")) == {}
    name = create_topic(first.bootstrap, unique_name("topic"))
    produce(first.bootstrap, name, [Record(b"k", b"v")] * 10)
    for at, group in enumerate(GROUPS, start=1):
        commit_offset(first.bootstrap, group, name, 0, at)
    return name


@contextlib.contextmanager
def frozen_listener() -> Iterator[str]:
    """Address of one that accepts connections and answers nothing, as a broker that is stopped."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


async def offsets(admin: Admin, topic: str) -> list[int]:
    """What each group has committed, all asked at once."""
    offsets = await asyncio.gather(*map(admin.group_offsets, GROUPS))
    return [group_offsets[topic, 0].offset for group_offsets in offsets]


async def offsets_or_none(admin: Admin, topic: str) -> list[int] | None:
    with contextlib.suppress(ClusterUnreachable):
        return await offsets(admin, topic)
    return None


EXPECTED = list(range(1, len(GROUPS) + 1))


@pytest.mark.parametrize("node", [0, 1])
async def test_broker_that_no_longer_coordinates_a_group_is_asked_no_more(
    two_nodes: tuple[Broker, Broker], topic: str, node: int
) -> None:
    """It answers NOT_COORDINATOR, at which librdkafka ends the process."""
    admin = Admin("N", {"bootstrap.servers": two_nodes[0].bootstrap})
    assert await offsets(admin, topic) == EXPECTED
    former = dict.fromkeys(GROUPS, ("127.0.0.1", two_nodes[node].port))
    assert admin._coordinators._addresses != former
    admin._coordinators._addresses.update(former)
    assert await offsets(admin, topic) == EXPECTED
    assert admin._coordinators._connections == {}


async def test_commit_reaches_the_broker_that_coordinates_its_group_now(
    two_nodes: tuple[Broker, Broker], topic: str
) -> None:
    admin = Admin("N", {"bootstrap.servers": two_nodes[0].bootstrap})
    for node in two_nodes:
        admin._coordinators._addresses.update(dict.fromkeys(GROUPS, ("127.0.0.1", node.port)))
        metadata = f"by way of {node.port}\0"
        for group, at in zip(GROUPS, EXPECTED, strict=True):
            wanted = {(topic, 0): GroupOffset(at, metadata)}
            assert (await admin.alter_group_offsets(group, wanted)).done == {f"{topic}/0": wanted[topic, 0]}
            assert await admin.group_offsets(group) == wanted


async def test_coordinator_that_is_away_is_found_anew(two_nodes: tuple[Broker, Broker], topic: str) -> None:
    admin = Admin("N", {"bootstrap.servers": f"127.0.0.1:{free_port()},{two_nodes[0].bootstrap}"})
    admin._coordinators._addresses.update(dict.fromkeys(GROUPS, ("127.0.0.1", free_port())))
    assert await offsets(admin, topic) == EXPECTED


async def test_frozen_broker_is_not_the_first_that_each_attempt_asks(
    two_nodes: tuple[Broker, Broker], topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named first, and takes the whole of the first attempt."""
    monkeypatch.setattr("lockstep_kafka.admin.group_requests.COORDINATOR_ANSWERS_S", 2.0)
    with frozen_listener() as address:
        admin = Admin("N", {"bootstrap.servers": f"{address},{two_nodes[0].bootstrap}"})
        assert await offsets(admin, topic) == EXPECTED
        assert await offsets(admin, topic) == EXPECTED


@pytest.mark.parametrize("frozen", [False, True], ids=["refused", "frozen"])
async def test_cluster_that_is_away_is_not_asked_until_the_timeout(
    monkeypatch: pytest.MonkeyPatch, frozen: bool
) -> None:
    """No broker of it answers. That is known as soon as a listing would know it."""
    monkeypatch.setattr("lockstep_kafka.admin.admin_requests.QUICK", 2.0)
    monkeypatch.setattr("lockstep_kafka.admin.group_requests.COORDINATOR_ANSWERS_S", 1.0)
    with frozen_listener() if frozen else contextlib.nullcontext(f"127.0.0.1:{free_port()}") as address:
        admin = Admin("N", {"bootstrap.servers": address}, timedelta(hours=1))
        async with asyncio.timeout(60):
            for question in (admin.group_offsets("g"), admin.list_groups()):
                with pytest.raises(ClusterUnreachable):
                    await question


async def test_frozen_coordinator_is_named_and_asked_again(
    two_nodes: tuple[Broker, Broker], topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep_kafka.admin.group_requests.COORDINATOR_ANSWERS_S", 1.0)
    first, second = two_nodes
    admin = Admin("N", {"bootstrap.servers": first.bootstrap}, timedelta(seconds=2))
    assert await offsets(admin, topic) == EXPECTED
    try:
        first.suspend()
        second.suspend()
        # No broker answers at all, so it is one of two questions that ends first.
        with pytest.raises(ClusterUnreachable, match=r"coordinator of group-0|cluster N at"):
            await admin.group_offsets("group-0")
    finally:
        first.resume()
        second.resume()
    found: list[int] = await eventually(lambda: offsets_or_none(admin, topic))
    assert found == EXPECTED
