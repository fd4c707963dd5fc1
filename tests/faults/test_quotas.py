"""A quota on what one flow fetches, and on what it appends: the flow goes on at the rate of the quota, nothing is lost
or doubled, it is said once, and another flow between the same brokers does not notice. All of it is this file's own."""

import time
import uuid
from collections.abc import Iterator

import pytest

from lockstep_state.names import Flow
from tests.conftest import Pair
from tests.support.broker import Broker, started
from tests.support.clusters import Record, create_topic, produce, unique_name
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.services import two_cluster_file
from tests.support.wire import set_quota

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

MARK = uuid.uuid4().hex[:6]
OUT, BACK = Flow(f"a{MARK}", f"b{MARK}"), Flow(f"b{MARK}", f"a{MARK}")
RATE = 200_000.0
SECONDS = 15.0
PAYLOAD = b"x" * 1000
WITHIN = 240.0
WINDOWS = {"quota.window.num": "3"}

SMALL_BATCHES = {"batch.num.messages": "20"}
"""A broker gives whole batches: one that is larger than a window's worth of the quota never comes, to nobody."""


@pytest.fixture(scope="module")
def own() -> Iterator[Pair]:
    a, b = Broker("A", properties=WINDOWS), Broker("B", properties=WINDOWS)
    with started(a, b):
        yield Pair(a, b)


@pytest.fixture(scope="module")
def mirror(own: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    file = two_cluster_file(
        tmp_path_factory.mktemp("quotas"),
        (OUT.source, own.a.bootstrap),
        (OUT.target, own.b.bootstrap),
        f"{OUT}.enabled = true",
        f"{OUT}.topics = out-.*",
        f"{BACK}.enabled = true",
        f"{BACK}.topics = back-.*",
        "tasks.max = 1",
        "heartbeats.replication.enabled = false",
        "offset-syncs.topic.replication.factor = 1",
    )
    a, b = own.a.bootstrap, own.b.bootstrap
    with Mirror(file, [MirroredFlow(OUT, a, b), MirroredFlow(BACK, b, a)]) as running:
        yield running


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_flow_over_a_quota_goes_on_at_its_rate(own: Pair, mirror: Mirror, side: str) -> None:
    out, back = mirror.flow, list(mirror.flows.values())[1]
    role, cluster = ("consumer", OUT.source) if side == "source" else ("producer", OUT.target)
    at, limit = out.source if side == "source" else out.target, f"{role}_byte_rate"
    client = f"{OUT}|MirrorSourceConnector|replication-{role}-0"
    first, other = (
        create_topic(out.source, unique_name(f"out-{side}")),
        create_topic(back.source, unique_name("back")),
    )
    produce(out.source, first, [Record(value=b"first")])
    produce(back.source, other, [Record(value=b"first")])
    out.wait_copied(first, within=WITHIN)
    back.wait_copied(other, within=WITHIN)
    throttled = len(out.events("Throttled", f"cluster {cluster}"))
    set_quota(at, client, **{limit: RATE})
    try:
        began = time.monotonic()
        count = int(RATE * SECONDS / len(PAYLOAD))
        produce(out.source, first, [Record(value=b"%d " % n + PAYLOAD) for n in range(count)], settings=SMALL_BATCHES)
        produce(back.source, other, [Record(value=b"%d " % n + PAYLOAD) for n in range(1_000)])
        back.wait_copied(other, within=WITHIN)
        out.wait_copied(first, within=WITHIN)
        took = time.monotonic() - began
    finally:
        set_quota(at, client, **{limit: None})
    assert 0.7 * SECONDS < took < 4 * SECONDS
    assert len(out.events("Throttled", f"cluster {cluster}")) == throttled + 1
    assert out.compared(first).equal
    for flow in (out, back):
        assert flow.events("PartitionHalted") == flow.events("ForeignWrite") == []
    assert back.events("Throttled") == []
