"""The addresses of real brokers: dead ones, silent ones, and names with several of them."""

import socket
from contextlib import ExitStack
from typing import Any

import pytest

from lockstep_kafka.wire.cluster import connect_cluster
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from tests.support.broker import Broker
from tests.support.clusters import create_topic
from tests.support.eventually import eventually
from tests.support.ports import free_port


async def test_every_address_is_tried(broker_a: Broker) -> None:
    dead = ",".join(f"127.0.0.1:{free_port()}" for _ in range(2))
    cluster = connect_cluster("a", {"bootstrap.servers": f"{dead},{broker_a.bootstrap}"}, "test")
    try:
        await cluster.refresh([])
        assert cluster.cluster_id == broker_a.cluster_id
    finally:
        await cluster.close()


async def test_bootstrap_without_an_answer_names_each_address() -> None:
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    cluster = connect_cluster("a", {"bootstrap.servers": ",".join(addresses)}, "test")
    with pytest.raises(BrokerUnreachable) as raised:
        await cluster.refresh([])
    for address in addresses:
        assert address in str(raised.value)


@pytest.mark.parametrize("silent", ["takes connections and answers nothing", "takes no connection"])
async def test_an_address_that_is_silent_is_given_up_for_the_next(broker_a: Broker, silent: str) -> None:
    soon = {"socket.connection.setup.timeout.ms": "1000"}
    with ExitStack() as open_ones:
        listening = open_ones.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        if silent == "takes no connection":  # as behind a firewall that drops: its queue is full
            for _ in range(4):
                waits = open_ones.enter_context(socket.socket())
                waits.setblocking(False)
                waits.connect_ex(listening.getsockname())
        cluster = connect_cluster("a", {"bootstrap.servers": f"{address},{broker_a.bootstrap}", **soon}, "test")
        try:
            await cluster.refresh([])
            assert cluster.cluster_id == broker_a.cluster_id
        finally:
            await cluster.close()
        alone = connect_cluster("a", {"bootstrap.servers": address, **soon}, "test")
        with pytest.raises(BrokerUnreachable, match=address):
            await alone.refresh([])


async def test_bootstrap_addresses_are_used_again_when_all_brokers_are_gone(broker_a: Broker) -> None:
    before = broker_a.proxy
    assert before is not None
    topic = create_topic(broker_a.bootstrap)
    cluster = connect_cluster("a", {"bootstrap.servers": f"{before.bootstrap},{broker_a.bootstrap}"}, "test")
    try:
        await cluster.refresh([topic])
        connection = await cluster.any_connection()
        assert connection.port == before.port, "the broker names the proxy to whom it knows by it, and nothing else"
        before.refuse()
        await eventually(lambda: connection.closed)
        await cluster.refresh([topic])
        assert (await cluster.any_connection()).port == broker_a.port
        assert await cluster.end_offset((topic, 0)) == 0
    finally:
        before.heal()
        await cluster.close()


async def test_every_address_behind_a_name_is_tried(broker_a: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    port, resolve = broker_a.port, socket.getaddrinfo

    def two(host: Any, port: Any, *args: Any, **more: Any) -> list[Any]:
        if host != "brokers.test":
            return resolve(host, port, *args, **more)
        return [found for address in ("127.0.0.2", "127.0.0.1") for found in resolve(address, port, *args, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", two)
    cluster = connect_cluster("a", {"bootstrap.servers": f"brokers.test:{port}"}, "test")
    try:
        await cluster.refresh([])
        assert cluster.cluster_id == broker_a.cluster_id
    finally:
        await cluster.close()
