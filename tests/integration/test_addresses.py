"""Addresses that lead to something other than the brokers, and what is said of them."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection_errors import BrokerUnreachable, TopicDeletedError
from tests.support.broker import Broker, Quorum
from tests.support.commands import lockstep
from tests.support.doctor_runs import run_doctor
from tests.support.proxy import Proxy
from tests.support.services import two_cluster_file

SETTINGS = {"client_id": "test", "opening_s": 10.0}


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Broker]:
    """It tells clients an address whose name does not exist."""
    quorum = Quorum.with_nodes(1)
    broker = Broker("elsewhere", quorum=quorum)
    broker._properties["advertised.listeners"] = f"PLAINTEXT://nowhere.invalid:{broker.port}"
    with broker:
        yield broker


def controller_of(broker: Broker) -> str:
    return f"127.0.0.1:{broker._quorum.controllers[broker.node]}"


async def test_controller_address_is_distinguished_from_a_broker_address(broker_a: Broker) -> None:
    address = controller_of(broker_a)
    with pytest.raises(
        ClusterUnreachable, match=r"cluster A at 127.0.0.1:\d+ .* is a KRaft controller's, which serves"
    ):
        await Admin("A", {"bootstrap.servers": address}).probe(timedelta(seconds=20))
    host, _, port = address.rpartition(":")
    cluster = ClusterClient("A", [(host, int(port))], SETTINGS)
    with pytest.raises(BrokerUnreachable, match="is a KRaft controller's, which serves no clients: give addresses of"):
        await cluster.refresh(["t"])
    await cluster.close()


async def test_a_topic_that_is_not_there_is_no_broker_that_is_away(broker_a: Broker) -> None:
    host, _, port = broker_a.bootstrap.rpartition(":")
    cluster = ClusterClient("A", [(host, int(port))], SETTINGS)
    with pytest.raises(TopicDeletedError) as caught:
        async with cluster.leader_for_request(("deleted-topic", 0)):
            pass
    assert (caught.value.alias, caught.value.topic) == ("A", "deleted-topic")
    await cluster.close()


@pytest.mark.long
def test_broker_advertised_by_an_unknown_name_is_named_soon(elsewhere: Broker, tmp_path: Path) -> None:
    file = two_cluster_file(tmp_path, ("A", elsewhere.bootstrap), ("B", elsewhere.bootstrap), "A->B.enabled = true")
    began = time.monotonic()
    said = lockstep("probe", str(file), code=3)
    assert time.monotonic() - began < 20
    assert "✗ LD302 A: advertised listeners: 1 broker of 1 cannot be reached: broker 1 at nowhere.invalid:" in said
    assert f"a broker is advertised as nowhere.invalid:{elsewhere.port}, whose name is not known here (" in said
    assert "set that broker's advertised.listeners to an address that is known here" in said


@pytest.mark.long
def test_probe_of_a_broker_half_alive_keeps_to_its_time(
    broker_a: Broker, broker_b: Broker, proxy_b: Proxy, tmp_path: Path
) -> None:
    """It is reached, and of the rights on groups it says nothing: a request waits a minute for that."""
    proxy_b.answer_only(3, 18)  # Metadata and ApiVersions
    clusters = ("A", broker_a.bootstrap), ("B", proxy_b.bootstrap)
    file = two_cluster_file(tmp_path, *clusters, "A->B.enabled = true")
    began = time.monotonic()
    said = lockstep("probe", str(file), "--timeout", "4", code=3)
    assert time.monotonic() - began < 20
    assert "✓ LD605 A->B: two clusters: " in said
    assert "- LD701 A->B: rights: " in said
    assert "no answer of the coordinator of " in said


@pytest.mark.long
def test_doctor_shows_an_advertised_name_and_why_it_fails(elsewhere: Broker, broker_a: Broker, tmp_path: Path) -> None:
    file = two_cluster_file(tmp_path, ("A", elsewhere.bootstrap), ("B", broker_a.bootstrap), "A->B.enabled = true")
    run = run_doctor(file, "--category", "connection", "--category", "cluster", "--timeout", "5", code=1)
    finding = run.one("LD302", "A")
    assert finding["result"] == "failed"
    assert f"broker 1 at nowhere.invalid:{elsewhere.port} (the name cannot be resolved: " in finding["detail"]
    assert run.one("LD601", "A")["result"] == "failed"
    assert run.results("B")["LD604"] == "ok"


def test_doctor_distinguishes_a_controller_from_a_broker(broker_a: Broker, broker_b: Broker, tmp_path: Path) -> None:
    file = two_cluster_file(tmp_path, ("A", controller_of(broker_a)), ("B", broker_b.bootstrap), "A->B.enabled = true")
    run = run_doctor(file, "--category", "login", code=1)
    assert run.one("LD501", "A")["detail"].endswith("is a KRaft controller's address, which serves no clients")
