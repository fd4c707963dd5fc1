"""A source and a target that know only old versions of requests: the copy is exact over kills."""

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from lockstep_state.kafka.kafka_apis import APIS
from tests.support.broker import Broker
from tests.support.clusters import create_topic, end_offsets
from tests.support.mirror import Mirror
from tests.support.proxy import Proxy
from tests.support.services import COPY_ONLY
from tests.support.traffic import Traffic

pytestmark = pytest.mark.long

PARTITIONS = 4
WITHIN = 120.0


class Announced(NamedTuple):
    """The newest versions of requests that a source and a target announce, and lines of the file."""

    source: Mapping[str, int]
    target: Mapping[str, int]
    lines: tuple[str, ...] = ()


KAFKA_2_1 = {"produce": 7, "fetch": 10, "list_offsets": 4, "metadata": 7, "find_coordinator": 2, "init_producer_id": 1}
KAFKA_2_1 |= {"offset_for_leader_epoch": 2, "add_partitions_to_txn": 1, "end_txn": 1, "describe_producers": -1}

PROFILES = {
    "old-services": Announced(
        {"fetch": 6, "metadata": 5, "list_offsets": 2}, {"produce": 7, "metadata": 8, "init_producer_id": 3}
    ),
    "oldest": Announced(
        {name: APIS[name].oldest for name in ("fetch", "list_offsets", "offset_for_leader_epoch")} | {"metadata": 3},
        {name: APIS[name].oldest for name in ("fetch", "list_offsets", "produce", "init_producer_id")}
        | {"metadata": 4, "describe_producers": -1},
    ),
    "2.1-transactions": Announced(KAFKA_2_1, KAFKA_2_1, ("t{mark}.exactly.once.source.support = enabled",)),
}


@pytest.fixture(params=PROFILES)
def announced(request: pytest.FixtureRequest, proxy_a: Proxy, proxy_b: Proxy) -> Iterator[Announced]:
    profile = PROFILES[request.param]
    for proxy, versions in ((proxy_a, profile.source), (proxy_b, profile.target)):
        proxy.announce({APIS[name].key: newest for name, newest in versions.items()})
    yield profile
    for proxy in (proxy_a, proxy_b):
        proxy.announce({})


@pytest.fixture
def mirror(
    tmp_path: Path, broker_a: Broker, broker_b: Broker, proxy_a: Proxy, proxy_b: Proxy, announced: Announced
) -> Iterator[Mirror]:
    a, b = (broker_a.bootstrap, proxy_a.bootstrap), (broker_b.bootstrap, proxy_b.bootstrap)
    mark = uuid.uuid4().hex[:6]
    lines = [*COPY_ONLY, *(line.format(mark=mark) for line in announced.lines)]
    with Mirror.one_flow(tmp_path, mark, a, b, *lines) as mirror:
        yield mirror


def test_copy_with_old_versions_is_exact_over_kills(mirror: Mirror, announced: Announced) -> None:
    flow = mirror.flow
    topic = create_topic(flow.source, f"{flow.flow.source[1:]}-numbers", partitions=PARTITIONS)
    with Traffic(flow.source, topic, partitions=PARTITIONS) as traffic:
        mirror.kill_while_copying(traffic, topic, within=WITHIN)
    flow.wait_copied(topic, within=WITHIN)
    if not announced.lines:  # a transaction has an offset more
        assert end_offsets(flow.source, topic) == end_offsets(flow.target, flow.remote(topic))
    assert flow.events("GapFound") == []
