"""What a slot writes down while it goes on copying: the rows of many partitions, and the same one twice at once."""

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_config import FlowSettings, load
from lockstep_data_plane.ledger import Ledger
from lockstep_data_plane.partition import Partition
from lockstep_protocol.names import Flow, progress_topic, state_topic
from lockstep_protocol.state import PartitionProgress, decode_row
from lockstep_runtime.log import FlowLog
from tests.harness.broker import Broker
from tests.harness.clusters import create_topic, read_topic

PARTITIONS = 200


@pytest.fixture
def settings(broker_b: Broker, tmp_path: Path) -> FlowSettings:
    one, other = (f"{side}{uuid.uuid4().hex[:6]}" for side in "st")
    file = tmp_path / "mm2.properties"
    file.write_text(
        f"clusters = {one}, {other}\n{one}->{other}.enabled = true\n{one}->{other}.topics = .*\n"
        f"{one}.bootstrap.servers = {broker_b.bootstrap}\n{other}.bootstrap.servers = {broker_b.bootstrap}\n"
    )
    (found,) = (each for each in load(file, {}).flows if each.flow == Flow(one, other))
    create_topic(broker_b.bootstrap, state_topic(found.flow), configs={"cleanup.policy": "compact"})
    create_topic(broker_b.bootstrap, progress_topic(found.flow), partitions=25, configs={"cleanup.policy": "compact"})
    return found


def copied(number: int) -> Partition:
    partition = Partition("orders", number, "s.orders", 100)
    partition.durable.know(PartitionProgress(topic="orders", partition=number, producer_id=7, upstream=0))
    return partition


def progress(broker: Broker, settings: FlowSettings) -> Iterator[PartitionProgress]:
    for record in read_topic(broker.bootstrap, state_topic(settings.flow)):
        row = decode_row(record.key or b"", record.value)
        assert isinstance(row, PartitionProgress)
        yield row


async def test_others_go_on_between_the_rows_of_many_partitions_and_the_newest_row_comes_last(
    broker_b: Broker, settings: FlowSettings
) -> None:
    ledger = Ledger(settings, 0, "run", FlowLog("data-plane", settings.flow))
    partitions = [copied(number) for number in range(PARTITIONS)]
    last = partitions[-1]

    async def go_on() -> None:
        last.durable.reached(9, 0)
        await ledger.flush([last])

    await ledger.start()
    try:
        await asyncio.gather(ledger.flush(partitions), go_on())
        rows = list(progress(broker_b, settings))
        await ledger.flush(partitions)
    finally:
        await ledger.stop()
    assert [row.partition for row in rows].index(last.number) == 1, "after the first one's, not after all"
    assert {row.partition: row.upstream for row in rows} == {p.number: p.durable.upstream for p in partitions}
    assert list(progress(broker_b, settings)) == rows, "what is written down is not written again"
