"""The heartbeat service as a process against two real clusters (`mm2-behaviour.md` §4.9, §1.5)."""

import time
import uuid
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import psutil
import pytest

from lockstep_state.codecs.mm2_codec import Heartbeat, decode_heartbeat, encode_heartbeat
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, produce, read_topic
from tests.support.eventually import wait_until
from tests.support.metrics import read_page, wait_for_all_declared
from tests.support.services import ServiceProcess, two_cluster_file

MARK = uuid.uuid4().hex[:6]
ALIASES = f"s{MARK}", f"t{MARK}"

NEAR, FAR = f"{ALIASES[0]}.heartbeats", f"{ALIASES[0]}.far.heartbeats"
"""As the flow between the two would mirror them: from its source, and from a cluster behind that."""

LONG_AGO_MS = 1_700_000_000_000

SHOWN = ("hops", "heartbeat_age_seconds", "heartbeat_latency_seconds")


def sent(beat: Heartbeat) -> Record:
    key, value = encode_heartbeat(beat)
    return Record(key=key, value=value, partition=0, timestamp_ms=beat.timestamp_ms)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, broker_a: Broker, broker_b: Broker) -> Iterator[ServiceProcess]:
    """One for the whole file, with aliases of its own; each test leaves it running."""
    one, other = ALIASES
    for topic in (NEAR, FAR):
        create_topic(broker_b.bootstrap, topic)
    produce(broker_b.bootstrap, FAR, [sent(Heartbeat("x", "far", LONG_AGO_MS))])
    folder = tmp_path_factory.mktemp("heartbeat")
    file = two_cluster_file(folder, (one, broker_a.bootstrap), (other, broker_b.bootstrap))
    with ServiceProcess("lockstep_heartbeat", file) as process:
        yield process


def beats(broker: Broker, source: str, target: str) -> list[tuple[Heartbeat, Record]]:
    decoded = [(decode_heartbeat(r.key, r.value), r) for r in read_topic(broker.bootstrap, "heartbeats")]
    return [(beat, r) for beat, r in decoded if (beat.source, beat.target) == (source, target)]


def three_beats(broker: Broker, source: str, target: str) -> list[tuple[Heartbeat, Record]]:
    """All there are, once there are three."""
    heartbeats = beats(broker, source, target)
    return heartbeats if len(heartbeats) >= 3 else []


def test_mm2_072_080_every_ordered_pair_beats_each_second_on_its_target(
    service: ServiceProcess, broker_a: Broker, broker_b: Broker
) -> None:
    one, other = ALIASES
    for source, target, broker in ((one, other, broker_b), (other, one, broker_a)):
        service.hear("leading", flow=f"{source}->{target}")
        heartbeats = wait_until(partial(three_beats, broker, source, target), within=60, every=0.5)
        for beat, record in heartbeats:
            assert record.timestamp_ms == beat.timestamp_ms
            assert record.partition == 0
        times = [beat.timestamp_ms for beat, _ in heartbeats]
        assert times == sorted(times)
        assert max(later - earlier for earlier, later in pairwise(times)) < 5_000


def test_heartbeats_that_arrive_show_the_clusters_upstream(service: ServiceProcess, broker_b: Broker) -> None:
    flow = f"{ALIASES[0]}->{ALIASES[1]}"

    def upstreams() -> dict[str, dict[str, Any]]:
        upstreams: dict[str, dict[str, Any]] = service.status(flow)["upstreams"]
        return upstreams

    wait_until(lambda: upstreams().keys() == {ALIASES[0], "far"}, within=60)
    now_ms = time.time_ns() // 1_000_000
    produce(broker_b.bootstrap, NEAR, [sent(Heartbeat(ALIASES[1], ALIASES[0], now_ms))])
    near = wait_until(lambda: (one := upstreams()[ALIASES[0]])["latency_ms"] is not None and one, within=60)
    assert (near["hops"], near["topic"], near["trouble"]) == (1, NEAR, "")
    assert 0 <= near["latency_ms"] < 30_000
    assert near["age_seconds"] < 60
    produce(broker_b.bootstrap, NEAR, [Record(key=b"", value=b"no heartbeat", partition=0)])
    wait_until(lambda: "holds what is no heartbeat" in upstreams()[ALIASES[0]]["trouble"], within=60)
    far = upstreams()["far"]
    assert (far["hops"], far["latency_ms"]) == (2, None), "it was there before anybody listened"
    assert far["age_seconds"] > (now_ms - LONG_AGO_MS) / 1e3 - 1

    page = read_page(service.page("/metrics")[1])
    shown = {name: {s["upstream"]: v for s, v in page[f"lockstep_upstream_{name}"]} for name in SHOWN}
    assert shown["hops"] == {ALIASES[0]: 1, "far": 2}
    assert shown["heartbeat_latency_seconds"] == {ALIASES[0]: near["latency_ms"] / 1e3}
    assert shown["heartbeat_age_seconds"]["far"] > shown["heartbeat_age_seconds"][ALIASES[0]]


def test_heartbeat_service_stays_small(service: ServiceProcess, broker_b: Broker) -> None:
    wait_until(partial(three_beats, broker_b, *ALIASES), within=60, every=0.5)
    assert psutil.Process(service.pid).memory_info().rss < 120 * 2**20
    page = wait_for_all_declared(service, "heartbeat")
    for source, target in (ALIASES, ALIASES[::-1]):
        (age,) = (v for labels, v in page["lockstep_heartbeat_age_seconds"] if labels["flow"] == f"{source}->{target}")
        assert 0 <= age < 30


def test_a_killed_service_goes_on_beating_after_its_restart(service: ServiceProcess, broker_b: Broker) -> None:
    wait_until(partial(three_beats, broker_b, *ALIASES), within=60, every=0.5)
    service.kill()
    before = len(beats(broker_b, *ALIASES))
    service.start()
    wait_until(lambda: len(beats(broker_b, *ALIASES)) > before, within=60, every=0.5)


def test_sigterm_ends_it_cleanly_within_ten_seconds(service: ServiceProcess) -> None:
    service.hear("leading")
    began = time.monotonic()
    assert service.stop() == 0
    assert time.monotonic() - began < 10.0
    assert service.said("ended")
