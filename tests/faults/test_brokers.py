"""A broker of either cluster restarts, in order or by kill -9, under traffic: the copy goes on by itself, in order,
nothing lost, nothing doubled. Brokers and mirror are this file's own."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException

from lockstep_state.names import state_topic
from lockstep_state.rows.state_rows import SlotStatus
from tests.conftest import Pair
from tests.support.broker import two_brokers
from tests.support.clusters import Record, create_topic, end_offsets, produce, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror
from tests.support.traffic import Traffic

pytestmark = pytest.mark.long

MARK = uuid.uuid4().hex[:6]
PARTITIONS = 2
BACK_WITHIN = 120.0


@pytest.fixture(scope="module")
def own() -> Iterator[Pair]:
    with two_brokers() as (a, b):
        yield Pair(a, b)


@pytest.fixture(scope="module")
def mirror(own: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    a, b = (own.a.bootstrap,) * 2, (own.b.bootstrap,) * 2
    with Mirror.one_flow(tmp_path_factory.mktemp("brokers"), MARK, a, b) as running:
        yield running


def wait_served(mirror: Mirror, topic: str) -> None:
    """A broker that is back takes a moment to lead its partitions again; until then the tests cannot look either."""
    flow = mirror.flow

    def served() -> bool:
        try:
            end_offsets(flow.source, topic)
            return bool(end_offsets(flow.target, state_topic(flow.flow)))
        except KafkaException:
            return False

    wait_until(served, every=0.25)


@pytest.mark.parametrize("side", ["target", "source"])
def test_a_broker_restarts_under_traffic(own: Pair, mirror: Mirror, side: str) -> None:
    flow, broker = mirror.flow, own.b if side == "target" else own.a
    topic = create_topic(flow.source, unique_name(f"{MARK}-{side}"), partitions=PARTITIONS)
    with Traffic(flow.source, topic, partitions=PARTITIONS, rate=300):
        flow.wait_for_more(topic, 200, within=BACK_WITHIN)
        broker.restart()
        wait_served(mirror, topic)
        flow.wait_for_more(topic, 200, within=BACK_WITHIN)
        broker.kill()
        broker.start()
        wait_served(mirror, topic)
        flow.wait_for_more(topic, 200, within=BACK_WITHIN)
    flow.wait_copied(topic, within=BACK_WITHIN)
    flow.wait_written_down(topic)
    assert flow.compared(topic).equal
    assert flow.events("PartitionHalted") == []
    assert mirror.data_plane.running


def test_a_slot_that_starts_while_the_source_is_away_forgets_nothing(own: Pair, mirror: Mirror) -> None:
    flow = mirror.flow
    topic = create_topic(flow.source, unique_name(f"{MARK}-away"), partitions=PARTITIONS)
    produce(flow.source, topic, [Record(value=b"%d" % n, partition=n % PARTITIONS) for n in range(400)])
    flow.wait_copied(topic, within=BACK_WITHIN)
    before = {number: row.upstream for number, row in flow.wait_written_down(topic).items()}
    own.a.stop()
    former = _status(mirror).run
    mirror.copying_worker().kill()
    started = wait_until(lambda: _status_of_another_run(mirror, former), within=BACK_WITHIN, every=0.25)
    # It says that it lives every few seconds: by the next time it has written down what it knows, several times.
    wait_until(lambda: _status(mirror).at_ms > started.at_ms + 2_000, within=BACK_WITHIN, every=0.25)
    assert {number: row.upstream for number, row in flow.progress(topic).items()} == before
    own.a.start()
    wait_served(mirror, topic)
    produce(flow.source, topic, [Record(value=b"later %d" % n, partition=n % PARTITIONS) for n in range(400)])
    flow.wait_copied(topic, within=BACK_WITHIN)


def _status(mirror: Mirror) -> SlotStatus:
    (status,) = mirror.flow.rows(SlotStatus)
    return status


def _status_of_another_run(mirror: Mirror, former: str) -> SlotStatus | None:
    status = _status(mirror)
    return status if status.run != former else None
