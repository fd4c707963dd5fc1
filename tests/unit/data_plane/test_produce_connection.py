"""What a produce request says, byte by byte as it leaves (`kafka-wire.md` §1.10, 1.12)."""

import asyncio
import gc
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader

from lockstep_data_plane.core.append_sequence import WINDOW
from lockstep_data_plane.core.events import TopicChanged
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.produce.sender import (
    AHEAD,
    SHARED,
    AnsweredBatch,
    NoProduceAnswer,
    ProduceConnection,
    TargetPartition,
    connection_index,
)
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_kafka.messages.message_versions import EncodedRequest, load_message
from lockstep_kafka.messages.metadata_codec import PartitionLeader
from lockstep_kafka.messages.produce_codec import ProduceAnswer
from lockstep_kafka.messages.request_size import SMALL_BYTES, RequestSize
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_state.kafka.kafka_apis import APIS
from tests.support.batch_bytes import batch, record, records
from tests.support.eventually import eventually
from tests.support.written_frames import WrittenFrames
from tests.unit.data_plane.partition_steps import ROW, admit, append, launch, resumed

LEADER = PartitionLeader(1, 0, UUID(int=7))


def produce_connection() -> tuple[ProduceConnection, WrittenFrames]:
    connection = Connection("broker", 9092, client_id="client")
    stream = WrittenFrames()
    connection._writer = stream
    connection._versions = {APIS["produce"].key: (0, 13)}
    return ProduceConnection(connection, timedelta(seconds=30), lambda *_: None, RequestSize()), stream


def waiting(number: int, batches: int) -> PartitionState:
    """A partition with so many large batches to send; its first append was acknowledged."""
    p = resumed(replace(ROW, partition=number))
    large = [batch(records(i, 1)) for i in range(batches + 1)]
    admit(p, large[0])
    append(p, 0)
    admit(p, *large[1:])
    p.step(TopicChanged(TargetLimits(max_bytes=1), "", "", 1))  # nothing is merged
    return p


def to_target(partition: PartitionState) -> TargetPartition:
    return TargetPartition(partition, partition.number)


def asked(frame: bytes) -> Any:
    read = entity_reader(load_message("produce", 13, "request").ProduceRequest)
    header = 4 + 2 + 2 + 4 + 2 + len("client") + 1
    request, _ = read(frame, header)
    return request


def answer_first(made: ProduceConnection, *parts: tuple[int, ErrorCode, int]) -> asyncio.Future[Any]:
    """Show an answer to what sees it as soon as it is read: number, code and base offset of each partition.

    Returns:
        The future of the request, which is not done yet.
    """
    _, request, future = made.connection._requests.popleft()
    m = load_message("produce", 13, "response")
    partitions = tuple(
        m.PartitionProduceResponse(index=number, error_code=code, base_offset=base_offset, record_errors=())
        for number, code, base_offset in parts
    )
    topics = (m.TopicProduceResponse(topic_id=LEADER.topic_id, partition_responses=partitions),) if parts else ()
    assert request.on_response is not None
    request.on_response(m.ProduceResponse(responses=topics, throttle_time=timedelta(0)))
    return future


async def test_a_request_carries_one_batch_of_a_partition_and_wants_all_replicas() -> None:
    made, stream = produce_connection()
    for number in (0, 1):
        made._ready[to_target(waiting(number, 3))] = LEADER
    made.pump()
    assert len(stream.frames) >= 3
    for frame in stream.frames:
        request = asked(frame)
        assert request.acks == -1
        assert request.transactional_id is None
        numbers = [part.index for topic in request.topic_data for part in topic.partition_data]
        assert len(numbers) == len(set(numbers))


async def test_requests_that_are_to_be_small_divide_what_is_ready() -> None:
    """Partitions with a batch of 400 kB each: two in a request, and each once."""
    made, stream = produce_connection()
    for number in range(5):
        partition = resumed(replace(ROW, partition=number))
        admit(partition, batch([record(0, b"v" * 400_000)]))
        made._ready[to_target(partition)] = LEADER
    made._request_size.is_small = True
    made.pump()
    requests = [asked(frame) for frame in stream.frames]
    sizes = [
        [len(part.records) for topic in request.topic_data for part in topic.partition_data] for request in requests
    ]
    assert [len(each) for each in sizes] == [2, 2, 1]
    assert all(sum(each) <= SMALL_BYTES for each in sizes)
    assert not made._ready


async def test_paused_connection_sends_nothing_and_resumes_by_itself() -> None:
    made, stream = produce_connection()
    made._ready[to_target(waiting(0, 3))] = LEADER
    made.connection.resting_until = time.monotonic() + 0.3  # longer than a busy machine stops between these lines
    made.pump()
    made.pump()
    assert stream.frames == []
    await eventually(lambda: len(stream.frames) >= 1)
    assert time.monotonic() >= made.connection.resting_until


async def test_paused_connection_is_not_stuck() -> None:
    made, _ = produce_connection()
    made._ready[to_target(waiting(0, 1))] = LEADER
    made.pump()
    now = time.monotonic()
    assert made.is_stuck(now + 50, 40.0)
    made.connection.resting_until = now + 30
    assert not made.is_stuck(now + 50, 40.0)
    assert made.is_stuck(now + 71, 40.0)


async def test_a_far_broker_has_more_requests_unanswered() -> None:
    sent = []
    for round_trip_s in (0.001, 0.080):
        made, stream = produce_connection()
        made.connection.round_trip_s = round_trip_s
        for number in range(4):
            made._ready[to_target(waiting(number, 5))] = LEADER
            made.pump()
        sent.append(len(stream.frames))
    assert sent == [AHEAD, 20]


def unanswered_at(made: ProduceConnection) -> int:
    """Of one partition, with 50 batches waiting."""
    partition = waiting(0, 50)
    made._ready[to_target(partition)] = LEADER
    made.pump()
    return partition.routing.appends_to(0).unanswered


async def test_connection_to_a_far_broker_has_more_batches_than_the_window() -> None:
    near, far = produce_connection()[0], produce_connection()[0]
    near.connection.round_trip_s, far.connection.round_trip_s = 0.001, 0.080
    assert unanswered_at(near) == WINDOW
    assert unanswered_at(far) == 50


async def test_connection_bytes_in_flight_cover_one_round_trip() -> None:
    made, _ = produce_connection()
    made.connection.round_trip_s = 0.080
    made._under_way = 8_000_000 - 1
    assert unanswered_at(made) == WINDOW


async def test_connection_bytes_in_flight_end_with_any_answer() -> None:
    made, _ = produce_connection()
    made.connection.round_trip_s = 0.080
    assert unanswered_at(made) == 50
    assert made._under_way > 0
    made._ready.clear()
    for _, _, answer in made.connection._requests:
        answer.set_exception(BrokerUnreachable("the connection ended"))
    await eventually(lambda: made._under_way == 0)
    made.connection._writer = None
    unanswered_at(made)
    assert made._under_way == 0, "a closed connection takes nothing"


def test_produce_answer_with_another_append_time_rewrote_timestamps() -> None:
    newest = launch(waiting(0, 1)).outgoing.max_timestamp
    assert not ProduceAnswer(0, 1).rewrote_times(newest)
    assert not ProduceAnswer(0, 1, append_time_ms=newest).rewrote_times(newest), "a duplicate, wherever it lies"
    assert ProduceAnswer(0, 1, append_time_ms=newest + 1).rewrote_times(newest)


async def test_answered_request_is_handled_whole_before_its_future_is_awaited() -> None:
    made, _ = produce_connection()
    answered: list[Sequence[AnsweredBatch]] = []
    made._on_answers = answered.append
    partitions = [waiting(number, 1) for number in range(3)]
    for partition in partitions:
        made._ready[to_target(partition)] = LEADER
    made.pump()
    future = answer_first(made, (1, ErrorCode.none, 1), (0, ErrorCode.none, 0))
    ((first, second, third),) = answered
    assert [first[0], second[0], third[0]] == partitions
    assert (first[2], second[2]) == (ProduceAnswer(0, 0), ProduceAnswer(0, 1))
    assert isinstance(third[2], NoProduceAnswer), "the answer says nothing of it"
    assert made._under_way == 0
    future.set_result(None)
    await asyncio.sleep(0)
    assert len(answered) == 1


@pytest.mark.parametrize(
    ("code", "rests"),
    [
        (ErrorCode.policy_violation, True),
        (ErrorCode.throttling_quota_exceeded, True),
        (ErrorCode.not_leader_or_follower, False),
    ],
)
async def test_connection_with_an_answer_over_a_limit_pauses(code: ErrorCode, rests: bool) -> None:
    made, _ = produce_connection()
    made._ready[to_target(waiting(0, 3))] = LEADER
    made.pump()
    answer_first(made, (0, code, -1))
    assert (made.connection.throttled_for > 0) == rests


async def test_mistake_in_handling_an_answer_is_no_lost_connection() -> None:
    made, _ = produce_connection()
    answered: list[Sequence[AnsweredBatch]] = []
    mistake = KeyError("a transition that does not exist")

    def handle(batches: Sequence[AnsweredBatch]) -> None:
        answered.append(batches)
        raise mistake

    made._on_answers = handle
    made._ready[to_target(waiting(0, 1))] = LEADER
    made.pump()
    future = made.connection._requests[0][2]
    with pytest.raises(KeyError):
        answer_first(made)
    raised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context["exception"]))
    future.set_exception(mistake)
    await asyncio.sleep(0)
    assert (raised, len(answered)) == ([mistake], 1)


def placed(partitions: int, *, alone: bool = False) -> list[int]:
    taken = [0, 0]
    for _ in range(partitions):
        taken[connection_index(taken, alone=alone)] += 1
    return taken


def test_connections_are_several_for_many_partitions_or_without_common_requests() -> None:
    assert placed(SHARED) == [SHARED, 0]
    assert placed(3 * SHARED) == [1.5 * SHARED, 1.5 * SHARED]
    assert placed(4, alone=True) == [2, 2]


def test_a_place_that_became_free_is_taken_again() -> None:
    assert connection_index([SHARED - 1, SHARED], alone=False) == 0
    assert connection_index([SHARED, 2], alone=False) == 1


async def test_partition_that_waits_for_its_turn_is_lost_with_the_connection() -> None:
    """Else it waits on a connection that is replaced and never used again."""
    lost: list[PartitionState] = []
    made, stream = produce_connection()
    made._on_answers = lambda answers: lost.extend(partition for partition, _, answer in answers if answer)
    partitions = [waiting(number, 1) for number in range(AHEAD + 1)]
    for partition in partitions:
        made.mark_ready(to_target(partition), LEADER)
        made.pump()
    assert len(stream.frames) == AHEAD
    requests, made.connection._requests, made.connection._writer = made.connection._requests, deque(), None
    for _, _, future in requests:
        future.set_exception(BrokerUnreachable("the connection ended"))
    await eventually(lambda: len(lost) == len(partitions))
    assert set(map(id, lost)) == set(map(id, partitions))


async def test_request_that_cannot_be_written_leaves_no_error_behind() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    class Broken(WrittenFrames):
        def write(self, frame: bytes | memoryview) -> None:
            raise OSError("broken pipe")

        def close(self) -> None:
            return

    connection = Connection("broker", 9092, client_id="client")
    stream: Any = Broken()
    connection._writer = stream
    with pytest.raises(BrokerUnreachable, match="broken pipe"):
        connection.send(EncodedRequest(APIS["produce"].key, 13, (b"",)))
    gc.collect()
    await asyncio.sleep(0)
    assert reported == []


async def test_topic_without_an_id_is_named_in_request_and_answer() -> None:
    """The cluster knows Produce 13, and no metadata that has ids."""
    made, stream = produce_connection()
    answered: list[AnsweredBatch] = []
    made._on_answers = answered.extend
    partition = waiting(0, 1)
    made._ready[to_target(partition)] = replace(LEADER, topic_id=None)
    made.pump()
    (frame,) = stream.frames
    assert int.from_bytes(frame[6:8]) == 12
    m = load_message("produce", 12, "response")
    rest = {"log_append_time": None, "log_start_offset": 0, "record_errors": (), "error_message": None}
    part = m.PartitionProduceResponse(index=0, error_code=ErrorCode.none, base_offset=1, **rest)
    topic = m.TopicProduceResponse(name=partition.target_topic, partition_responses=(part,))
    made._answered(made._sent[0], m.ProduceResponse(responses=(topic,), throttle_time=timedelta(0)))
    assert [answer for _, _, answer in answered] == [ProduceAnswer(0, 1)]
