"""Where a partition begins that nobody has copied before."""

from pathlib import Path

import pytest

from lockstep_config import load
from lockstep_data_plane.resume.evidence import first_offset
from lockstep_kafka.wire.cluster import connect_cluster
from lockstep_state.names import Flow
from tests.conftest import Pair
from tests.support.clusters import Record, create_topic, produce
from tests.support.services import two_cluster_file

T = 1_700_000_000_000


async def begun(pair: Pair, folder: Path, topic: str, *lines: str) -> int:
    """The offset at which the first copy begins."""
    file = two_cluster_file(folder, ("A", pair.a.bootstrap), ("B", pair.b.bootstrap), "A->B.enabled = true", *lines)
    settings = load(file, {}).flow(Flow("A", "B"))
    source = connect_cluster("A", settings.clients.source_consumer, "begin")
    try:
        await source.refresh([topic])
        return await first_offset(source, settings, (topic, 0))
    finally:
        await source.close()


@pytest.fixture(scope="module")
def topic(pair: Pair) -> str:
    """Ten records, a second apart from T on, in batches of one."""
    name = create_topic(pair.a.bootstrap)
    records = [Record(value=b"%d" % n, timestamp_ms=T + n * 1000) for n in range(10)]
    produce(pair.a.bootstrap, name, records, settings={"batch.num.messages": "1"})
    return name


STAMP = "A->B.lockstep.start.timestamp"


@pytest.mark.parametrize(
    ("lines", "first"),
    [
        pytest.param((), 0, id="earliest is the default"),
        pytest.param(("A.consumer.auto.offset.reset = latest",), 10, id="latest"),
        pytest.param((f"{STAMP} = {T + 4000}",), 4, id="the record of that time"),
        pytest.param((f"{STAMP} = {T + 4001}",), 5, id="or the first one later"),
        pytest.param((f"{STAMP} = 0",), 0, id="before them all"),
        pytest.param((f"{STAMP} = {T + 60_000}",), 10, id="later than them all: the end"),
        pytest.param((f"{STAMP} = {T + 4000}", "A.consumer.auto.offset.reset = latest"), 4, id="it beats latest"),
        pytest.param((f"{STAMP} = nothing.*={T + 4000}",), 0, id="for other topics"),
    ],
)
async def test_mm2_177_first_copy_begins_where_it_is_set(
    pair: Pair, tmp_path: Path, topic: str, lines: tuple[str, ...], first: int
) -> None:
    assert await begun(pair, tmp_path, topic, *lines) == first
