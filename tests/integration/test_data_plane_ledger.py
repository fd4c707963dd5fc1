"""What a slot writes down while it goes on copying: the rows of many partitions, and the same one twice at once."""

import asyncio
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_config import FlowSettings, load
from lockstep_data_plane.core.events import RowLoaded
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.quarantine_entry import QuarantineEntry, RefusedRecords
from lockstep_data_plane.progress.control_topic_writer import ControlTopicWriter
from lockstep_kafka.common.errors import NotAppended
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_state.names import Flow, events_topic, progress_topic, quarantine_topic, state_topic
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.broker import Broker
from tests.support.clusters import create_topic, read_topic, set_configs
from tests.support.eventually import eventually
from tests.support.mirror import MirroredFlow

PARTITIONS = 200


@pytest.fixture
def settings(broker_b: Broker, tmp_path: Path) -> FlowSettings:
    one, other = (f"{side}{uuid.uuid4().hex[:6]}" for side in "st")
    file = tmp_path / "mm2.properties"
    file.write_text(
        f"clusters = {one}, {other}\n{one}->{other}.enabled = true\n{one}->{other}.topics = .*\n"
        f"{one}.bootstrap.servers = {broker_b.bootstrap}\n{other}.bootstrap.servers = {broker_b.bootstrap}\n"
    )
    made = load(file, {}).flow(Flow(one, other))
    create_topic(broker_b.bootstrap, state_topic(made.flow), configs={"cleanup.policy": "compact"})
    create_topic(broker_b.bootstrap, progress_topic(made.flow), partitions=25, configs={"cleanup.policy": "compact"})
    return made


def copied(number: int) -> PartitionState:
    partition = PartitionState("orders", number, "s.orders", 100)
    partition.step(RowLoaded(PartitionProgress(topic="orders", partition=number, producer_id=7, upstream=0)))
    return partition


@pytest.mark.parametrize(("yield_after_s", "found_at"), [(0.0, 1), (60.0, PARTITIONS - 1)])
async def test_rows_of_many_partitions_yield_and_the_newest_row_is_last(
    broker_b: Broker, settings: FlowSettings, monkeypatch: pytest.MonkeyPatch, yield_after_s: float, found_at: int
) -> None:
    """Other tasks run after the first row, or after all of them."""
    monkeypatch.setattr("lockstep_data_plane.progress.control_topic_writer.YIELD_AFTER_S", yield_after_s)
    control_writer = ControlTopicWriter(settings, 0, "run", FlowLog("data-plane", settings.flow))
    partitions = [copied(number) for number in range(PARTITIONS)]
    first, last = partitions[0], partitions[-1]

    async def go_on() -> None:
        for partition in (first, last):
            partition.step(RowLoaded(replace(partition.row(), upstream=9)))
        await control_writer.flush([last, first])

    await control_writer.start()
    try:
        await asyncio.gather(control_writer.flush(partitions), go_on())
        rows = read_topic(broker_b.bootstrap, state_topic(settings.flow))
        await control_writer.flush(partitions)
    finally:
        await control_writer.stop()
    keys = [row.key for row in rows]
    assert keys.index(last.row().key().encode()) == found_at
    assert read_topic(broker_b.bootstrap, state_topic(settings.flow)) == rows, "nothing is written twice"
    flow = MirroredFlow(settings.flow, broker_b.bootstrap, broker_b.bootstrap)
    now = {p.number: p.row().upstream for p in partitions}
    assert {number: row.upstream for number, row in flow.progress("orders").items()} == now
    assert flow.mm2_progress("orders") == now


async def test_quarantined_record_is_not_written_again(broker_b: Broker, settings: FlowSettings) -> None:
    """The second of three is not taken at first: the first one is there then, and stays there once."""
    topic, small = quarantine_topic(settings.flow), {"max.message.bytes": "1000"}
    create_topic(broker_b.bootstrap, topic, configs=small)
    create_topic(broker_b.bootstrap, events_topic(settings.flow))
    control_writer = ControlTopicWriter(settings, 0, "run", FlowLog("data-plane", settings.flow))
    entries = [QuarantineEntry(n, n, b"k", value, (), 0) for n, value in enumerate((b"a", b"b" * 2_000, b"c"))]
    partition, refusal = copied(0), RefusedRecords("too late", tuple(entries))

    async def put_away() -> None:
        await control_writer.quarantine(partition, refusal)

    async def is_put_away() -> bool:
        """A broker answers a change of configs before its log applies it."""
        with suppress(NotAppended):
            await put_away()
            return True
        return False

    def there() -> list[bytes | None]:
        return [record.value for record in read_topic(broker_b.bootstrap, topic)]

    await control_writer.start()
    try:
        with pytest.raises(NotAppended):
            await put_away()
        assert there() == [b"a"]
        set_configs(broker_b.bootstrap, topic, {"max.message.bytes": "100000"})
        done: bool = await eventually(is_put_away, what="the broker has applied the new limit")
        assert done
        await put_away()
    finally:
        await control_writer.stop()
    assert there() == [b"a", b"b" * 2_000, b"c"]
    flow = MirroredFlow(settings.flow, broker_b.bootstrap, broker_b.bootstrap)
    assert [event.detail["ranges"] for event in flow.events("BatchQuarantined")] == [[[0, 0], [1, 1], [2, 2]]]
