"""Records and their progress in one transaction (`exactly.once.source.support=enabled`, `mm2.md` §4.8)."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Pair
from tests.harness.clusters import Record, compare, create_topic, produce, produce_transaction, read_topic, unique_name
from tests.harness.eventually import wait_until
from tests.harness.mirror import Mirror, MirroredFlow

SOON = 90.0


def numbered(count: int, first: int = 0, partitions: int = 1) -> list[Record]:
    return [
        Record(key=b"k", value=b"%d %s" % (first + n, b"v" * 100), partition=n % partitions) for n in range(count)
    ]


def transactional(folder: Path, pair: Pair, *lines: str, mark: str = "", enabled: str = "enabled") -> Mirror:
    mark = mark or unique_name("t")
    a, b = (pair.a.bootstrap, pair.a.bootstrap), (pair.b.bootstrap, pair.b.bootstrap)
    return Mirror.one_flow(
        folder,
        mark,
        a,
        b,
        f"t{mark}.exactly.once.source.support = {enabled}",
        f"s{mark}.consumer.isolation.level = read_committed",
        *lines,
        slots=2,
    )


def topic_of(flow: MirroredFlow, stem: str, partitions: int = 1) -> str:
    return create_topic(flow.source, unique_name(f"{flow.flow.source.removeprefix('s')}-{stem}"), partitions=partitions)


def wait_committed(flow: MirroredFlow, topic: str, within: float = SOON) -> list[Record]:
    """Readers of committed records find each record of the source once, in order."""
    wanted = read_topic(flow.source, topic, isolation="read_committed")

    def equal() -> list[Record]:
        found = read_topic(flow.target, flow.remote(topic), isolation="read_committed")
        comparison = compare(wanted, found)
        assert comparison.equal, comparison
        return found

    flow.wait_mirrored(topic)
    return wait_until(equal, within=within, every=0.25, what=f"{topic} is copied and committed")


@pytest.fixture(scope="module")
def exactly(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    with transactional(tmp_path_factory.mktemp("exactly"), pair) as mirror:
        yield mirror


def test_records_and_progress_are_committed_together(exactly: Mirror) -> None:
    flow = exactly.flow
    topic = topic_of(flow, "plain", partitions=3)
    produce(flow.source, topic, numbered(3_000, partitions=3))
    produce_transaction(flow.source, topic, numbered(50, first=10_000), commit=False)
    produce(flow.source, topic, numbered(30, first=20_000, partitions=3))
    found = wait_committed(flow, topic)
    assert len(found) == 3_030
    wait_until(lambda: set(flow.mm2_progress(topic)) == {0, 1, 2}, within=SOON)
    last = {r.partition: r.offset for r in read_topic(flow.source, topic, isolation="read_committed")}
    assert flow.mm2_progress(topic) == last
    rows = flow.wait_written_down(topic)
    assert all(row.transactional for row in rows.values())
