"""A source whose topics have no ids, as in the middle of an upgrade (`broker-versions.md`)."""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.support.broker_pairs import WITHIN, Brokers, created_again, numbered_records, until
from tests.support.clusters import create_topic, produce
from tests.support.mirror import Mirror
from tests.support.traffic import Traffic

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    with ExitStack() as stack:
        yield Brokers(stack)


# -- brokers that have no topic ids ------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["2.8-without-ids", "3.9-without-ids"])
def without_ids(
    request: pytest.FixtureRequest, brokers: Brokers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mirror]:
    source, target = brokers[request.param].bootstrap, brokers["4.3"].bootstrap
    mark = f"n{uuid.uuid4().hex[:6]}"
    folder = tmp_path_factory.mktemp("without-ids")
    with Mirror.one_flow(folder, mark, (source, source), (target, target)) as mirror:
        yield mirror


def test_records_from_a_source_without_topic_ids(without_ids: Mirror) -> None:
    flow = without_ids.flow
    topic = create_topic(flow.source, f"{flow.flow.source[1:]}-orders", partitions=2)
    with Traffic(flow.source, topic, partitions=2) as traffic:
        flow.wait_mirrored(topic, within=WITHIN)
        traffic.wait_for_more(300, within=WITHIN)
        flow.wait_for_more(topic, 100, within=WITHIN)
        without_ids.copying_worker(within=WITHIN).kill()
        traffic.wait_for_more(300, within=WITHIN)
    flow.wait_copied(topic, within=WITHIN)
    rows = flow.wait_written_down(topic, within=WITHIN)
    assert {(row.source_topic_id, bool(row.target_topic_id)) for row in rows.values()} == {("", True)}


def test_without_ids_a_topic_created_again_and_shorter_shows_as_truncated(without_ids: Mirror) -> None:
    flow = without_ids.flow
    topic = create_topic(flow.source, f"{flow.flow.source[1:]}-shorter")
    produce(flow.source, topic, numbered_records(50))
    flow.wait_copied(topic, within=WITHIN)
    flow.wait_written_down(topic, within=WITHIN)
    created_again(flow.source, topic)
    produce(flow.source, topic, numbered_records(10, 1000))
    gap = flow.wait_event("GapFound", f"{topic}-0", within=WITHIN)
    assert gap.detail["case"] == "source-truncated"
    flow.wait_event("PartitionHalted", f"{topic}-0", within=WITHIN)


def test_recreated_longer_topic_without_ids_is_taken_as_the_same(without_ids: Mirror) -> None:
    """What no id tells, nobody sees: as much of the new log as the old one had is not copied."""
    flow = without_ids.flow
    topic = create_topic(flow.source, f"{flow.flow.source[1:]}-longer")
    produce(flow.source, topic, numbered_records(50))
    flow.wait_copied(topic, within=WITHIN)
    flow.wait_written_down(topic, within=WITHIN)
    without_ids.kill_data_plane()
    created_again(flow.source, topic)
    produce(flow.source, topic, numbered_records(80, 1000))
    without_ids.data_plane.start()
    wanted = [*numbered_records(50), *numbered_records(80, 1000)[50:]]
    until(lambda: [r.value for r in flow.copy_of(topic)] == [r.value for r in wanted], what="the end of the new log")
    assert flow.events("GapFound", topic) == []
