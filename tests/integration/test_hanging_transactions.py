"""A transaction that its coordinator ended without all of its markers: the next slot ends it, and no record is there
twice or never. Kafka 4.3 leaves out the marker of a partition that has no leader at that moment (KAFKA-20734).

The broker of these tests does not verify transactions. So records can be appended in one that no coordinator knows.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from lockstep_data_plane.progress.committed_progress import CommittedProgressReader, appended_to_header
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_kafka.wire.transaction_coordinator import TransactionCoordinators
from lockstep_state.codecs.mm2_codec import SOURCE_CONNECTOR, encode_source_progress
from lockstep_state.names import progress_topic, state_topic, transactional_id
from lockstep_state.rows.state_rows import PartitionProgress
from tests.conftest import Pair
from tests.integration.test_lost_rows import append_records, cluster
from tests.integration.transactional import SOON, numbered, topic_of, transactional, wait_committed
from tests.support.broker import Broker, started
from tests.support.clusters import Record, end_offsets, produce, read_topic
from tests.support.mirror import Mirror, MirroredFlow

BEFORE, IN_IT, AFTER = 20, 5, 10
"""Records before the transaction, in it, and behind it on the source."""


@dataclass(frozen=True, slots=True)
class Markers:
    """Which partitions of the transaction got their marker, and what that is."""

    in_records: bool
    in_progress: bool
    commit: bool = True
    has_progress: bool = True


CASES = {
    "none": (Markers(False, False), "commit"),
    "none, and no progress": (Markers(False, False, has_progress=False), "abort"),
    "commit of the records": (Markers(True, False), "commit"),
    "abort of the records": (Markers(True, False, commit=False), "abort"),
    "commit of the progress": (Markers(False, True), "commit"),
    "abort of the progress": (Markers(False, True, commit=False), "abort"),
}


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    with ExitStack() as stack:
        a, b = Broker("A"), Broker("B", properties={"transaction.partition.verification.enable": "false"})
        stack.enter_context(started(a, b))
        yield stack.enter_context(transactional(tmp_path_factory.mktemp("hanging"), Pair(a, b)))


def hang(flow: MirroredFlow, topic: str, markers: Markers) -> None:
    """The target after a slot has committed or aborted records up to `BEFORE + IN_IT`, with only these markers."""
    remote = flow.remote(topic)
    name = transactional_id(flow.flow, flow.group_id, topic, 0)
    values = read_topic(flow.source, topic)[BEFORE : BEFORE + IN_IT]
    content = [PlainRecord(n, r.timestamp_ms or 0, r.key, r.value, ()) for n, r in enumerate(values)]

    async def appended() -> None:
        async with cluster(flow.target, remote) as target:
            await target.refresh([remote, progress_topic(flow.flow)])
            coordinators = TransactionCoordinators(target, timedelta(seconds=60))
            reader = CommittedProgressReader(
                target, progress_topic(flow.flow), SOURCE_CONNECTOR, flow.flow.source, lambda *_: None
            )
            progress_partition = await reader.progress_partition((topic, 0))
            assert progress_partition is not None
            producer = await coordinators.fence(name)
            known = [(remote, 0)] * markers.in_records + [progress_partition] * markers.in_progress
            if known:
                await coordinators.open(name, producer, known)
            first = await append_records(target, (remote, 0), content, *producer, 0, in_transaction=name)
            if markers.has_progress:
                key, value = encode_source_progress(flow.flow.source, topic, 0, BEFORE + IN_IT - 1)
                header = appended_to_header(target.topic_id((remote, 0)), {0: first + IN_IT - 1})
                progress = [PlainRecord(0, 1_000, key, value, (header,))]
                await append_records(target, progress_partition, progress, *producer, 0, in_transaction=name)
            if known:
                await coordinators.end(name, producer, commit=markers.commit)
                await coordinators.fence(name)  # until the markers are there

    asyncio.run(appended())


def write_down(flow: MirroredFlow, row: PartitionProgress) -> None:
    produce(flow.target, state_topic(flow.flow), [Record(*row.encode(), partition=0)])


def copied_up_to_the_transaction(mirror: Mirror, stem: str) -> tuple[str, PartitionProgress]:
    """A topic whose first records are copied, while the source has all. The data plane is gone."""
    flow = mirror.flow
    topic = topic_of(flow, stem)
    produce(flow.source, topic, numbered(BEFORE))
    wait_committed(flow, topic)
    row = flow.wait_written_down(topic)[0]
    mirror.kill_data_plane()
    produce(flow.source, topic, numbered(IN_IT + AFTER, first=BEFORE))
    return topic, row


@pytest.mark.long
@pytest.mark.parametrize("present", CASES)
def test_transaction_without_markers_is_ended_as_a_whole(mirror: Mirror, present: str) -> None:
    flow, (markers, outcome) = mirror.flow, CASES[present]
    topic, _ = copied_up_to_the_transaction(mirror, "hangs")
    hang(flow, topic, markers)
    mirror.data_plane.start()
    event = flow.wait_event("HangingTransactionEnded", f"{topic}-0", within=SOON)
    assert event.detail["outcome"] == outcome
    wait_committed(flow, topic)
    assert flow.wait_written_down(topic)[0].upstream == BEFORE + IN_IT + AFTER - 1
    appended = len(read_topic(flow.target, flow.remote(topic), isolation="read_uncommitted"))
    assert appended == BEFORE + IN_IT + AFTER + (IN_IT if outcome == "abort" else 0)
    assert flow.events("GapFound", f"{topic}-0") == []


def acknowledged(row: PartitionProgress, end: int) -> PartitionProgress:
    """The row of the slot whose EndTxn was answered: its marker is the last thing in the log."""
    return replace(row, upstream=BEFORE + IN_IT - 1, downstream=end, sequence=IN_IT - 1)


@pytest.mark.long
def test_acknowledged_transaction_without_markers_is_no_truncation(mirror: Mirror) -> None:
    """The row counts the marker, which the log does not have yet."""
    flow = mirror.flow
    topic, row = copied_up_to_the_transaction(mirror, "acknowledged")
    hang(flow, topic, Markers(False, False))
    write_down(flow, acknowledged(row, end_offsets(flow.target, flow.remote(topic))[0]))
    mirror.data_plane.start()
    wait_committed(flow, topic)
    assert flow.events("GapFound", f"{topic}-0") == []


@pytest.mark.long
@pytest.mark.parametrize("lost", ["records and progress", "records"])
def test_aborted_records_that_count_as_committed_halt_the_partition(mirror: Mirror, lost: str) -> None:
    """As where the commit of a hanging transaction broke off, and its fence aborted it: nothing is passed over."""
    flow = mirror.flow
    topic, row = copied_up_to_the_transaction(mirror, "contradiction")
    if lost == "records":
        hang(flow, topic, Markers(False, True))
        hang_aborted(flow, topic)
    else:
        hang(flow, topic, Markers(True, True, commit=False))
        write_down(flow, acknowledged(row, end_offsets(flow.target, flow.remote(topic))[0] - 1))
    mirror.data_plane.start()
    gap = flow.wait_event("GapFound", f"{topic}-0", within=SOON)
    assert gap.detail["case"] == "in-doubt"
    flow.wait_event("PartitionHalted", f"{topic}-0", within=SOON)


def hang_aborted(flow: MirroredFlow, topic: str) -> None:
    """An empty transaction of the same producer aborts what hangs in the records."""
    remote, name = flow.remote(topic), transactional_id(flow.flow, flow.group_id, topic, 0)

    async def aborted() -> None:
        async with cluster(flow.target, remote) as target:
            coordinators = TransactionCoordinators(target, timedelta(seconds=60))
            producer = await coordinators.fence(name)
            await coordinators.open(name, producer, [(remote, 0)])
            await coordinators.end(name, producer, commit=False)
            await coordinators.fence(name)

    asyncio.run(aborted())
