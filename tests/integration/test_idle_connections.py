"""Connections of the data plane on which nothing passes for long: kept alive, closed in time, and tried before use."""

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lockstep_data_plane.core.events import Acked
from lockstep_data_plane.produce.sender import AnsweredBatch, Sender
from lockstep_kafka.messages.produce_codec import ProduceAnswer
from lockstep_kafka.wire.cluster import connect_cluster
from lockstep_runtime.util.clock import now_ms
from tests.conftest import Pair
from tests.integration.partition_fetches import copying, fetched_elsewhere
from tests.support.batch_bytes import batch, record
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, end_offsets, produce, unique_name
from tests.support.eventually import eventually, wait_until
from tests.support.mirror import Mirror
from tests.support.proxy import Proxy
from tests.support.services import COPY_ONLY

SILENCE_S = 60.0
COSTS_AT_MOST_S = 2.0


async def test_connections_that_were_forgotten_cost_one_trial_together(
    broker_a: Broker, proxy_a: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a load balancer. Each was waited for by itself once, for 30 s."""
    topic = create_topic(broker_a.bootstrap)
    cluster = connect_cluster("a", {"bootstrap.servers": proxy_a.bootstrap}, "test")
    cluster.timeouts = replace(cluster.timeouts, trusted_s=0.2)
    written, acked, silent = copying(topic), list[ProduceAnswer](), list[int]()

    def answered(batches: Sequence[AnsweredBatch]) -> None:
        for partition, sent, answer in batches:
            assert isinstance(answer, ProduceAnswer), answer
            partition.step(Acked(sent, answer.base_offset, now_ms()))
            acked.append(answer)

    def append(number: int) -> None:
        fetched_elsewhere(written, batch([record(number, timestamp=now_ms())]))
        sender.mark_ready(written)
        sender.pump()

    sender = Sender(cluster, answered)
    try:
        await cluster.refresh([topic])
        await sender.attach(written)
        assert await cluster.end_offset((topic, 0)) == 0
        append(0)
        await eventually(lambda: len(acked) == 1)
        forgotten = list(cluster._connections.values())
        close_idle = cluster._close_idle
        monkeypatch.setattr(cluster, "_close_idle", partial(_counted, silent, close_idle))
        await eventually(lambda: all(each.is_doubtful for each in forgotten))
        assert len(forgotten) == 3
        assert proxy_a.forget() >= len(forgotten)  # and what earlier tests left open in the proxy
        append(1)
        await eventually(lambda: len(acked) == 2, what="the first record after the silence is appended")
        await cluster.refresh([topic])
        assert await cluster.end_offset((topic, 0)) == 2
        assert silent == [1], "one dead connection was waited for, and its trial takes a second"
        assert all(each.closed for each in forgotten)
        assert forgotten[0].trial_s + 2 * forgotten[0].round_trip_s < 2
    finally:
        await cluster.close()


def _counted(silent: list[int], close_idle: Callable[[tuple[str, int]], None], address: tuple[str, int]) -> None:
    silent.append(1)
    close_idle(address)


async def test_trusted_connection_is_used_without_a_trial(broker_a: Broker) -> None:
    cluster = connect_cluster("a", {"bootstrap.servers": broker_a.bootstrap}, "test")
    try:
        await cluster.refresh([])
        first = await cluster.any_connection()
        asked = first._framing._correlation_id
        assert await cluster.any_connection() is first
        assert first._framing._correlation_id == asked
        cluster.timeouts = replace(cluster.timeouts, trusted_s=0.0)
        first.trusted_s = 0.0
        assert await cluster.any_connection() is first, "the broker has answered the trial"
        assert first._framing._correlation_id == asked + 1
    finally:
        await cluster.close()


@pytest.mark.parametrize(("properties", "idle_s"), [({}, 540.0), ({"connections.max.idle.ms": "-1"}, None)])
async def test_socket_is_kept_alive_and_closed_when_idle_for_long(
    broker_a: Broker, properties: dict[str, str], idle_s: float | None
) -> None:
    cluster = connect_cluster("a", {"bootstrap.servers": broker_a.bootstrap, **properties}, "test")
    try:
        await cluster.refresh([])
        connection = await cluster.any_connection()
        connected = connection._writer.get_extra_info("socket")
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
        assert connection._max_idle_s == idle_s
    finally:
        await cluster.close()


async def test_idle_connection_closes_by_itself_as_set_in_the_file(broker_a: Broker) -> None:
    cluster = connect_cluster("a", {"bootstrap.servers": broker_a.bootstrap, "connections.max.idle.ms": "300"}, "test")
    try:
        await cluster.refresh([])
        first = await cluster.any_connection()
        await eventually(lambda: first.closed, what="nothing was asked for 300 ms")
        assert await cluster.any_connection() is not first
    finally:
        await cluster.close()


@pytest.mark.long
def test_first_record_after_a_minute_of_silence_is_copied_at_once(
    pair: Pair, proxy_a: Proxy, proxy_b: Proxy, tmp_path: Path
) -> None:
    """A whole data plane, behind proxies that forget each connection on which nothing passed for a minute."""
    mark = unique_name("idle")
    topic = create_topic(pair.a.bootstrap, f"{mark}-t")
    source, target = (pair.a.bootstrap, proxy_a.bootstrap), (pair.b.bootstrap, proxy_b.bootstrap)
    with Mirror.one_flow(tmp_path, mark, source, target, *COPY_ONLY) as mirror:

        def copy_one() -> float:
            """Seconds until a new record is on the target."""
            end = end_offsets(pair.b.bootstrap, mirror.flow.remote(topic)).get(0, 0)
            produce(pair.a.bootstrap, topic, [Record(value=b"v")])
            began = time.monotonic()
            wait_until(lambda: end_offsets(pair.b.bootstrap, mirror.flow.remote(topic))[0] > end, within=90, every=0.05)
            return time.monotonic() - began

        produce(pair.a.bootstrap, topic, [Record(value=b"first")])
        mirror.flow.wait_copied(topic)
        copy_one()
        time.sleep(SILENCE_S + 1)
        forgotten = proxy_a.forget(silent_s=SILENCE_S), proxy_b.forget(silent_s=SILENCE_S)
        assert sum(forgotten) > 0, "the connection for appends was silent"
        after_the_silence, usual = copy_one(), copy_one()
        assert after_the_silence - usual < COSTS_AT_MOST_S, (after_the_silence, usual, forgotten)
        mirror.flow.wait_copied(topic)
