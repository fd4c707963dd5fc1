"""The heartbeat service as a process against two real clusters (`mm2.md` §4.9, §1.5)."""

import time
import uuid
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import psutil
import pytest

from lockstep_protocol.codec import decode_heartbeat
from lockstep_protocol.records import Heartbeat
from tests.harness.broker import Broker
from tests.harness.clusters import Record, read_topic
from tests.harness.eventually import wait_until
from tests.harness.metrics import wait_for_all_declared
from tests.harness.services import ServiceProcess, two_cluster_file

MARK = uuid.uuid4().hex[:6]
ALIASES = f"s{MARK}", f"t{MARK}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, broker_a: Broker, broker_b: Broker) -> Iterator[ServiceProcess]:
    """One for the whole file, with aliases of its own; each test leaves it running."""
    one, other = ALIASES
    folder = tmp_path_factory.mktemp("heartbeat")
    file = two_cluster_file(folder, (one, broker_a.bootstrap), (other, broker_b.bootstrap))
    with ServiceProcess("lockstep_heartbeat", file) as process:
        yield process


def beats(broker: Broker, source: str, target: str) -> list[tuple[Heartbeat, Record]]:
    decoded = [(decode_heartbeat(r.key, r.value), r) for r in read_topic(broker.bootstrap, "heartbeats")]
    return [(beat, r) for beat, r in decoded if (beat.source, beat.target) == (source, target)]


def three_beats(broker: Broker, source: str, target: str) -> list[tuple[Heartbeat, Record]]:
    """All there are, once there are three."""
    found = beats(broker, source, target)
    return found if len(found) >= 3 else []


def test_mm2_072_080_every_ordered_pair_beats_each_second_on_its_target(
    service: ServiceProcess, broker_a: Broker, broker_b: Broker
) -> None:
    one, other = ALIASES
    for source, target, broker in ((one, other, broker_b), (other, one, broker_a)):
        service.hear("leading", flow=f"{source}->{target}")
        found = wait_until(partial(three_beats, broker, source, target), within=60, every=0.5)
        for beat, record in found:
            assert record.timestamp_ms == beat.timestamp_ms
            assert record.partition == 0
        times = [beat.timestamp_ms for beat, _ in found]
        assert times == sorted(times)
        assert max(later - earlier for earlier, later in pairwise(times)) < 5_000


def test_it_stays_small_while_it_runs(service: ServiceProcess, broker_b: Broker) -> None:
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
    assert service.stop(within=10.0) == 0
    assert time.monotonic() - began < 10.0
    assert service.said("ended")
