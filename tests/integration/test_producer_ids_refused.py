"""Appends to control topics where the cluster gives no producer ids, or does not permit us to have one."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from lockstep_config.credentials.permissions import Access, Grant
from lockstep_kafka.common.errors import NotAppended, NotPermitted
from lockstep_kafka.librdkafka.control_producer import ControlProducer, ControlTopicLog
from lockstep_kafka.librdkafka.producer_id_support import refuses_producer_ids
from lockstep_ops.doctor.rate_meter import WriteMeter
from tests.conftest import GuardedPair
from tests.support.cluster_profile import ClusterProfile
from tests.support.clusters import create_topic, read_topic
from tests.support.guarded import PASSWORD
from tests.support.proxy import Proxy

INIT = frozenset({"init_producer_id"})
REFUSING = {
    "absent": ClusterProfile(absent=INIT),
    "unsupported": ClusterProfile(unsupported=INIT),
    "closes": ClusterProfile(closes_on=INIT),
}


@pytest.fixture(params=REFUSING)
def refusing(request: pytest.FixtureRequest, proxy_b: Proxy) -> Proxy:
    proxy_b.answer_as(REFUSING[request.param])
    return proxy_b


def producer(bootstrap: str, login: dict[str, str] | None = None, within: float = 60.0) -> ControlProducer:
    conf = {"bootstrap.servers": bootstrap, **(login or {})}
    return ControlProducer("B", conf, within=within, access=Access(conf))


async def test_rows_without_producer_ids_are_appended_once_and_in_order(refusing: Proxy, topic_name: str) -> None:
    topic = create_topic(refusing.bootstrap, topic_name)
    control = producer(refusing.bootstrap)
    log = ControlTopicLog(control, topic)
    try:
        await log.append_all([(b"k", b"%d" % n) for n in range(50)])
        await log.append(b"k", b"last")
    finally:
        await control.stop()
    assert [record.value for record in read_topic(refusing.bootstrap, topic)] == [
        *(b"%d" % n for n in range(50)),
        b"last",
    ]


async def test_rows_sent_while_the_producer_ends_stay_in_order(refusing: Proxy, topic_name: str) -> None:
    topic = create_topic(refusing.bootstrap, topic_name)
    control = producer(refusing.bootstrap)
    await control.start()
    sent: list[asyncio.Future[tuple[int, int]]] = []
    done: set[asyncio.Future[tuple[int, int]]] = set()
    try:
        while not done:
            sent.append(control.send(topic, b"k", b"%d" % len(sent), 0, None))
            done, _ = await asyncio.wait(sent, timeout=0.02, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*sent)
    finally:
        await control.stop()
    assert [record.value for record in read_topic(refusing.bootstrap, topic)] == [b"%d" % n for n in range(len(sent))]


def test_doctor_measures_its_writing_without_producer_ids(refusing: Proxy, topic_name: str) -> None:
    topic = create_topic(refusing.bootstrap, topic_name, partitions=1)
    conf = {"bootstrap.servers": refusing.bootstrap, "acks": "all", "enable.idempotence": "true"}
    _, rate = WriteMeter("B", conf, topic, threading.Event()).measure(0.3)
    assert rate.trouble == ""


async def test_producer_that_stops_before_it_appends_names_the_request(proxy_b: Proxy, topic_name: str) -> None:
    proxy_b.answer_as(REFUSING["closes"])
    topic = create_topic(proxy_b.bootstrap, topic_name)
    control = producer(proxy_b.bootstrap)
    await control.start()
    future = control.send(topic, b"k", b"v", 0, None)
    await control.stop(0.0)
    with pytest.raises(NotAppended):
        await future


async def test_cluster_that_gives_producer_ids_is_not_taken_for_another(proxy_b: Proxy) -> None:
    assert not await refuses_producer_ids({"bootstrap.servers": proxy_b.bootstrap}, "test")


async def test_cluster_that_is_away_is_not_taken_for_one_without_ids(proxy_b: Proxy) -> None:
    proxy_b.refuse()
    assert not await refuses_producer_ids({"bootstrap.servers": proxy_b.bootstrap}, "test")


async def test_producer_id_that_is_denied_names_the_missing_right(
    pair: GuardedPair, topic_name: str, request: pytest.FixtureRequest
) -> None:
    topic = create_topic(pair.b.bootstrap, topic_name)
    grants = [Grant("topic", topic, "Describe", "")]
    pair.b.grant("newcomer", grants)
    request.addfinalizer(revoking(pair, grants))
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "newcomer",
        "sasl.password": PASSWORD,
    }
    control = producer(pair.b.guarded, login)
    try:
        for _ in range(3):
            with pytest.raises(NotPermitted, match=r"IDEMPOTENT_WRITE on the cluster \(InitProducerId\)"):
                await ControlTopicLog(control, topic).append(b"k", b"v")
    finally:
        await control.stop()


def revoking(pair: GuardedPair, grants: list[Grant]) -> Callable[[], None]:
    return lambda: pair.b.revoke("newcomer", grants)
