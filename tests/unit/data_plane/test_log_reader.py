"""A stretch of a log is read to the end that was asked for, or not at all (`log_reader.py`)."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.log_reader import log_between
from lockstep_data_plane.progress.committed_progress import CommittedProgressReader
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.resume.log_match import match_logs
from lockstep_data_plane.verify.batch_comparison import Depth
from lockstep_data_plane.verify.log_comparison import LogStretch, ReadLimit, compare_logs
from lockstep_data_plane.verify.offset_map import OffsetMap
from lockstep_data_plane.verify.partition_verifier import PartitionVerifier
from lockstep_data_plane.verify.record_alignment import TargetRules
from lockstep_kafka.messages.message_versions import EncodedRequest, load_message
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_kafka.wire.cluster import ClusterClient, KafkaProtocolError
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_runtime.state.unreadable_records import UnreadableRecords
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_state.codecs.mm2_codec import encode_source_progress
from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import batch_bytes, record, records
from tests.support.kio_codec import read_back

TP = ("t", 0)
TOPIC_ID = UUID(int=7)
LAST_STABLE = 3
NOT_LEADER = 6


class Leading(Connection):
    """A connection whose answers are told beforehand: what a log of single batches holds, with answers that hold
    nothing in between."""

    def __init__(self, log: Sequence[bytes], empty: Sequence[bool], last_stable: int = -1) -> None:
        """`empty`: which answers to a fetch hold nothing, in turn; those after them do not."""
        super().__init__("broker", 9092, client_id="test")
        self._versions = {APIS[api].key: (0, 13) for api in ("fetch", "list_offsets")}
        self._writer = object()
        self.log = list(log)
        self.empty = list(empty)
        self.leads = True
        self._last_stable = last_stable

    async def request(self, entity: Any, timeout_s: float = 30.0) -> Any:
        fetch = isinstance(entity, EncodedRequest)
        (topic,) = (read_back(entity) if fetch else entity).topics
        (asked,) = topic.partitions
        if fetch:
            nothing = self.empty.pop(0) if self.empty else False
            return self._fetched(topic.topic_id, asked.fetch_offset, nothing)
        m = load_message("list_offsets", int(entity.__version__), "response")
        offset = len(self.log) if asked.timestamp == -1 else 0
        code = 0 if self.leads else NOT_LEADER
        part = m.ListOffsetsPartitionResponse(partition_index=0, error_code=code, timestamp=None, offset=offset)
        return m.ListOffsetsResponse(
            throttle_time=timedelta(0), topics=(m.ListOffsetsTopicResponse(name=TP[0], partitions=(part,)),)
        )

    def _fetched(self, topic_id: UUID, offset: int, nothing: bool) -> Any:
        m = load_message("fetch", 13, "response")
        until = len(self.log) if self._last_stable < 0 else self._last_stable
        part = m.PartitionData(
            partition_index=0,
            error_code=0,
            high_watermark=len(self.log),
            last_stable_offset=until,
            log_start_offset=0,
            aborted_transactions=None,
            records=b"" if nothing or offset >= until else self.log[offset],
        )
        topic = m.FetchableTopicResponse(topic_id=topic_id, partitions=(part,))
        return m.FetchResponse(throttle_time=timedelta(0), error_code=0, session_id=0, responses=(topic,))


class Led(ClusterClient):
    """A cluster of brokers of which the last one leads, once somebody asks."""

    async def refresh(self, topics: Iterable[str]) -> None:
        self._leaders[TP] = PartitionLeader(max(self._brokers), 0, TOPIC_ID)


def cluster_led_by(connection: Connection) -> ClusterClient:
    cluster = Led("a", [("broker", 9092)], {})
    cluster._brokers = {1: ("broker", 9092)}
    cluster._leaders[TP] = PartitionLeader(1, 0, TOPIC_ID)
    cluster._topics[TP[0]] = 0, 1, TOPIC_ID
    cluster._connections = {(1, purpose): connection for purpose in ("ask", "tail")}
    return cluster


async def read_all(connection: Connection, end: int, isolation: str = "read_uncommitted") -> list[Batch]:
    pieces = log_between(cluster_led_by(connection), TP, 0, end, isolation)
    return [batch async for batches, _ in pieces for batch in batches]


LOG = [batch_bytes(records(offset, 1)) for offset in range(5)]


async def test_an_answer_without_records_is_not_the_end() -> None:
    records_read = await read_all(Leading(LOG, [True, False, True, True]), 5)
    assert [batch.base_offset for batch in records_read] == list(range(5))


async def test_log_reader_forgets_a_leader_that_denies_to_lead() -> None:
    """Else a partition that has not begun, and so asks for no metadata anew, would ask the same broker for ever."""
    leading = Leading(LOG, [])
    cluster = cluster_led_by(leading)
    assert await cluster.end_offset(TP) == len(LOG)
    assert cluster.leader(TP) is not None
    leading.leads = False
    with pytest.raises(KafkaProtocolError):
        await cluster.end_offset(TP)
    assert cluster.leader(TP) is None


async def test_log_reader_names_records_that_the_broker_does_not_return() -> None:
    with pytest.raises(ConnectionError, match=r"cluster a gives nothing of t-0 at offset 0.* 5"):
        await read_all(Leading(LOG, [True] * 10), 5)


async def test_committed_records_end_at_the_last_stable_offset() -> None:
    records_read = await read_all(Leading(LOG, [], LAST_STABLE), 5, "read_committed")
    assert [batch.base_offset for batch in records_read] == list(range(LAST_STABLE))


@pytest.mark.parametrize("log", ["source", "target"])
async def test_comparison_waits_where_a_log_is_not_stable_to_its_end(log: str) -> None:
    """Else the records behind the last stable offset of one log would be differences from the other."""
    verifier = PartitionVerifier((0, 0), (5, 5), Depth.RECORD, TargetRules(), OffsetMap((), -1), lambda producer: True)
    stretches = [
        LogStretch(cluster_led_by(Leading(LOG, [], LAST_STABLE if log == name else 5)), TP, 0, 5, "read_committed")
        for name in ("source", "target")
    ]
    with pytest.raises(BrokerUnreachable, match=rf"t-0 is stable up to {LAST_STABLE}, not to 5"):
        await compare_logs(verifier, stretches[0], stretches[1], ReadLimit(None), lambda: True)
    assert (verifier.differences, verifier.position[0] <= LAST_STABLE) == ({}, True)


def progress(at: int, offset: int) -> bytes:
    key, value = encode_source_progress("S", "u", 0, offset)
    return batch_bytes([record(at, value, key=key)])


def progress_reader(cluster: ClusterClient) -> CommittedProgressReader:
    unreadable = UnreadableRecords(FlowLog("data-plane", "S->T"))
    return CommittedProgressReader(cluster, TP[0], "MirrorSourceConnector", "S", unreadable.pass_over_at)


async def test_log_reader_keeps_committed_progress_after_an_empty_answer() -> None:
    """Else the copy would go on from before what is on the target already, and records would be there twice."""
    leading = Leading([progress(0, 10), progress(1, 20)], [False, True])
    log = progress_reader(cluster_led_by(leading))
    assert await log.read_newest(("u", 0)) == 20


async def test_progress_that_is_none_is_counted_by_partition() -> None:
    unreadable = UnreadableRecords(FlowLog("data-plane", "S->T"))
    garbage = batch_bytes([record(0, b"[", key=b"[")])
    cluster = cluster_led_by(Leading([garbage, progress(1, 20)], []))
    log = CommittedProgressReader(cluster, TP[0], "MirrorSourceConnector", "S", unreadable.pass_over_at)
    assert await log.read_newest(("u", 0)) == 20
    assert unreadable.by_partition == ((*TP, 1),)


async def test_progress_that_could_not_be_read_is_read_the_next_time() -> None:
    leading = Leading([progress(0, 10), progress(1, 20)], [False, *[True] * 10])
    log = progress_reader(cluster_led_by(leading))
    with pytest.raises(ConnectionError):
        await log.read_newest(("u", 0))
    leading.empty = []
    assert await log.read_newest(("u", 0)) == 20


async def test_a_leader_of_the_progress_that_leads_no_more_is_asked_once() -> None:
    """Else a partition that begins would wait until the metadata of all topics are asked for anew, for minutes."""
    former, leading = Leading([progress(0, 10)], []), Leading([progress(0, 10), progress(1, 20)], [])
    cluster = cluster_led_by(former)
    cluster._brokers[2] = ("broker", 9092)
    cluster._connections |= {(2, purpose): leading for purpose in ("ask", "tail")}
    log = progress_reader(cluster)
    assert await log.read_newest(("u", 0)) == 10
    former.leads = False
    with pytest.raises(KafkaProtocolError, match="NOT_LEADER_OR_FOLLOWER"):
        await log.read_newest(("u", 0))
    assert await log.read_newest(("u", 0)) == 20


async def test_log_reader_of_a_recreated_topic_starts_over_and_forgets_progress() -> None:
    leading = Leading([progress(0, 10), progress(1, 20)], [])
    cluster = cluster_led_by(leading)
    log = progress_reader(cluster)
    assert await log.read_newest(("u", 0)) == 20
    cluster._topics[TP[0]] = 0, 1, UUID(int=8)
    leading.log = [progress(0, 3), batch_bytes(records(1, 1)), batch_bytes(records(2, 1))]
    assert await log.read_newest(("u", 0)) == 3


@pytest.mark.parametrize("remaining", [0, 1])
async def test_a_log_that_was_truncated_is_read_from_its_start(remaining: int) -> None:
    leading = Leading([progress(0, 10), progress(1, 20)], [])
    log = progress_reader(cluster_led_by(leading))
    assert await log.read_newest(("u", 0)) == 20
    del leading.log[remaining:]
    assert await log.read_newest(("u", 0)) == (10 if remaining else None)


async def test_log_match_of_committed_records_stops_at_the_last_stable_offset() -> None:
    """Else an open transaction that is committed later would never be copied."""
    ours = [batch_bytes(records(offset, 1), producer=(4000, 1, offset)) for offset in range(LAST_STABLE)]
    aligned = await match_logs(
        cluster_led_by(Leading(LOG, [], LAST_STABLE)),
        cluster_led_by(Leading(ours, [])),
        PartitionState("t", 0, "t", 0),
        PartitionProgress(topic="t", partition=0, producer_id=4000, producer_epoch=1),
        LastAppend(LAST_STABLE - 1, LAST_STABLE - 1),
        isolation="read_committed",
    )
    assert (aligned.upstream, aligned.next) == (LAST_STABLE - 1, LAST_STABLE)
