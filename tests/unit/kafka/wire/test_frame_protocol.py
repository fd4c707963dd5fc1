"""A request is one frame, an answer is read by its API and version alone, and frames come whole however they arrive."""

import asyncio
import random
import struct
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_kafka.messages.message_versions import EncodedRequest, load_message
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_kafka.wire.frame_protocol import KEPT_BYTES, READ_BYTES, FrameProtocol
from lockstep_kafka.wire.request_framing import ANSWER_BYTES
from lockstep_state.kafka.kafka_apis import APIS
from tests.support.eventually import eventually
from tests.support.written_frames import WrittenFrames, describe_producers

CLIENT = b"client"
DESCRIBE_PRODUCERS = 61
FETCH = APIS["fetch"].key
LARGEST = 2 * KEPT_BYTES
"""How long a frame may be."""


def connection(versions: dict[int, tuple[int, int]] | None = None) -> tuple[Connection, WrittenFrames]:
    """A connection that was never opened, with a stream that only keeps."""
    made = Connection("broker", 9092, client_id=CLIENT.decode())
    stream = WrittenFrames()
    made._writer = stream
    made._versions = versions or {}
    return made, stream


async def test_a_request_is_a_length_a_header_and_the_message() -> None:
    made, stream = connection()
    made.send(describe_producers("ab"))
    (frame,) = stream.frames
    header = struct.pack(">hhi", DESCRIBE_PRODUCERS, 0, made._requests[0][0])
    header += struct.pack(">h", len(CLIENT)) + CLIENT + b"\0"
    body = b"\x02\x03ab\x02\0\0\0\x05\0\0"
    assert frame == struct.pack(">i", len(header + body)) + header + body
    assert made.unanswered == 1


async def test_each_request_has_a_number_of_its_own_and_waits_in_order() -> None:
    made, stream = connection()
    made.send(describe_producers("a"))
    made.send(describe_producers("b"))
    numbers = [struct.unpack_from(">i", frame, 8)[0] for frame in stream.frames]
    assert len(set(numbers)) == 2
    assert [number for number, _, _ in made._requests] == numbers


async def test_records_are_in_the_frame_byte_by_byte() -> None:
    made, stream = connection()
    m = load_message("produce", 13, "request")
    records = bytes(range(256)) * 4
    part = m.PartitionProduceData(index=0, records=records)
    made.send(
        m.ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout=timedelta(seconds=30),
            topic_data=(m.TopicProduceData(topic_id=UUID(int=7), partition_data=(part,)),),
        )
    )
    (frame,) = stream.frames
    assert records in frame
    assert UUID(int=7).bytes in frame
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4


def producers_answer(number: int, tagged: bool = False, throttle_ms: int = 0) -> memoryview:
    producer = struct.pack(">qiiqiq", 4000, 1, 41, 1000, -1, -1) + b"\0"
    body = struct.pack(">i", throttle_ms) + b"\x02\x03ab\x02" + struct.pack(">ih", 5, 0) + b"\0\x02" + producer
    return memoryview(struct.pack(">ib", number, tagged) + body + b"\0\0\0")


async def test_an_answer_is_read_by_its_api_and_version() -> None:
    made, _ = connection()
    waiting = made.send(describe_producers("ab"))
    made._answered(producers_answer(made._requests[0][0]))
    (partition,) = (await waiting).topics[0].partitions
    assert [(p.producer_id, p.producer_epoch, p.last_sequence) for p in partition.active_producers] == [(4000, 1, 41)]
    assert made.unanswered == 0


async def test_answer_of_a_cancelled_request_is_dropped() -> None:
    made, _ = connection()
    seen: list[Any] = []
    made.send(describe_producers("ab"), seen.append).cancel()
    made._answered(producers_answer(made._requests[0][0]))
    assert made.unanswered == 0
    assert seen == []


async def test_answer_callback_runs_before_tasks_that_wait_for_the_answer() -> None:
    made, _ = connection()
    seen: list[Any] = []
    waiting = made.send(describe_producers("ab"), seen.append)
    made._answered(producers_answer(made._requests[0][0]))
    assert seen == [waiting.result()]


async def test_answer_callback_that_raises_fails_its_request_only() -> None:
    made, _ = connection()
    waiting = made.send(describe_producers("ab"), lambda answer: {}[answer])
    made._answered(producers_answer(made._requests[0][0]))
    with pytest.raises(KeyError):
        await waiting
    assert not made.closed


@pytest.mark.parametrize(
    ("asked", "shift", "tagged", "text"),
    [
        (True, 0, True, "tagged fields"),
        (True, 1, False, "another question"),
        (False, 0, False, "a question that was not asked"),
    ],
)
async def test_answer_without_a_matching_request_is_not_read(asked: bool, shift: int, tagged: bool, text: str) -> None:
    made, _ = connection()
    if asked:
        made.send(describe_producers("ab"))
    number = made._requests[0][0] if asked else 7
    with pytest.raises(ConnectionError, match=text):
        made._answered(producers_answer(number + shift, tagged))


class Heard:
    """Stands behind `FrameProtocol`: keeps what it was told."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.lost: list[Exception | None] = []
        self.read = FrameProtocol(
            lambda frame: self.frames.append(bytes(frame)), self.lost.append, lambda: None, lambda: LARGEST
        )

    def arrives(self, data: bytes) -> None:
        while data:
            room = self.read.get_buffer(-1)
            assert len(room) > 0
            taken = min(len(room), len(data))
            room[:taken] = data[:taken]
            self.read.buffer_updated(taken)
            data = data[taken:]


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


SIZES = st.one_of(st.integers(4, 40), st.integers(READ_BYTES - 12, READ_BYTES + 12), st.integers(4, 2 * READ_BYTES))


@given(sizes=st.lists(SIZES, min_size=1, max_size=6), seed=st.integers(0, 2**32))
def test_frames_come_whole_and_in_order_however_they_arrive(sizes: list[int], seed: int) -> None:
    cuts = random.Random(seed)
    bodies = [cuts.randbytes(size) for size in sizes]
    stream, heard = b"".join(map(framed, bodies)), Heard()
    while stream:
        taken = cuts.choice((1, 50, 9000, READ_BYTES, 3 * READ_BYTES))
        heard.arrives(stream[:taken])
        stream = stream[taken:]
    assert heard.frames == bodies
    assert not heard.lost


def test_a_large_buffer_is_used_again_and_a_very_large_one_is_not_kept() -> None:
    heard = Heard()
    for size in (3 * READ_BYTES, 2 * READ_BYTES, KEPT_BYTES + 1, 5):
        heard.arrives(framed(bytes(size)))
        assert len(heard.read._large) == (0 if size > KEPT_BYTES or size == 5 else 3 * READ_BYTES)
    assert [len(frame) for frame in heard.frames] == [3 * READ_BYTES, 2 * READ_BYTES, KEPT_BYTES + 1, 5]


@pytest.mark.parametrize("size", [-1, 0, 3])
def test_a_length_that_cannot_be_one_ends_the_connection(size: int) -> None:
    heard = Heard()
    heard.arrives(framed(b"good") + struct.pack(">i", size))
    assert heard.frames == [b"good"]
    assert "says it is" in str(heard.lost[0])


@pytest.mark.parametrize("size", [LARGEST + 1, 2**31 - 1])
def test_a_frame_far_above_what_was_asked_ends_the_connection(size: int) -> None:
    heard = Heard()
    heard.arrives(framed(b"good") + struct.pack(">i", size) + bytes(50))
    assert heard.frames == [b"good"]
    assert f"says it is {size} bytes long, where at most {LARGEST} were asked for" in str(heard.lost[0])
    assert len(heard.read._large) == 0


async def test_an_answer_may_be_as_long_as_what_was_asked_and_one_batch() -> None:
    made, _ = connection({FETCH: (0, 13)})
    assert made._largest_answer() == ANSWER_BYTES
    made.send(EncodedRequest(FETCH, 13, [b""], 50_000_000))
    made.send(describe_producers("ab"))
    assert made._largest_answer() == ANSWER_BYTES + 50_000_000
    made._requests.popleft()
    assert made._largest_answer() == ANSWER_BYTES


def test_unreadable_answer_closes_the_connection() -> None:
    lost: list[Exception | None] = []

    def unreadable(frame: memoryview) -> None:
        raise ValueError("an array of -2 entries")

    read = FrameProtocol(unreadable, lost.append, lambda: None, lambda: LARGEST)
    frame = framed(b"anything")
    read.get_buffer(-1)[: len(frame)] = frame
    read.buffer_updated(len(frame))
    assert [str(cause) for cause in lost] == ["an array of -2 entries"]


async def test_closed_connection_refuses_a_request() -> None:
    made, _ = connection()
    made._writer = None
    assert made.closed
    with pytest.raises(BrokerUnreachable, match="broker:9092: the connection is closed"):
        made.send(describe_producers("ab"))


@pytest.mark.parametrize(
    ("api", "broker", "chosen"),
    [
        ("produce", (0, 13), 13),
        ("produce", (0, 9), 9),
        ("produce", (3, 99), 13),
        ("fetch", (4, 16), 16),
        ("fetch", (0, 12), 12),
    ],
)
async def test_the_newest_version_that_both_know_is_spoken(api: str, broker: tuple[int, int], chosen: int) -> None:
    made, _ = connection({APIS[api].key: broker})
    assert made.version(api) == chosen


@pytest.mark.parametrize(
    ("broker", "text"),
    [
        ((0, 2), "versions 0 to 2"),
        ((1, 1), "version 1"),
        ((14, 20), "versions 14 to 20"),
        ((-1, -1), "none"),
        (None, "none"),
    ],
)
async def test_broker_without_a_known_api_version_is_refused_by_name(broker: tuple[int, int] | None, text: str) -> None:
    made, _ = connection({0: broker} if broker else {})
    with pytest.raises(match=f"request Produce in common: broker broker:9092 knows {text}, and Lockstep versions 3 to"):
        made.version("produce")


async def test_oldest_version_that_serves_is_the_one_that_is_asked_for() -> None:
    made, _ = connection({APIS["list_offsets"].key: (0, 1)})
    assert made.version("list_offsets") == 1
    with pytest.raises(BrokerUnreachable, match="knows versions 0 to 1, and Lockstep versions 2 to 8"):
        made.version("list_offsets", 2)


KAFKA_2_1 = {"produce": 7, "fetch": 10, "list_offsets": 4, "metadata": 7, "find_coordinator": 2, "init_producer_id": 1}
KAFKA_2_1 |= {"offset_for_leader_epoch": 2, "add_partitions_to_txn": 1, "end_txn": 1}
KAFKA_2_8 = {"produce": 9, "fetch": 12, "list_offsets": 6, "metadata": 10, "find_coordinator": 3, "init_producer_id": 4}
KAFKA_2_8 |= {"offset_for_leader_epoch": 4, "add_partitions_to_txn": 3, "end_txn": 3, "describe_producers": 0}
"""The newest version of each API that a broker of 2.1.1 and of 2.8.2 speaks."""


@pytest.mark.parametrize("newest", [KAFKA_2_1, KAFKA_2_8])
async def test_old_broker_is_spoken_with_in_its_newest_versions(newest: dict[str, int]) -> None:
    made, _ = connection({APIS[api].key: (0, version) for api, version in newest.items()})
    assert {api: made.version(api) for api in newest} == newest


@pytest.mark.parametrize("api", sorted(APIS))
def test_api_versions_that_are_declared_have_their_messages(api: str) -> None:
    for version in range(APIS[api].oldest, APIS[api].newest + 1):
        for side in ("request", "response"):
            assert load_message(api, version, side)


async def test_no_answer_in_time_closes_the_connection() -> None:
    made, stream = connection()
    made.short_request_s = 0.01
    closed = asyncio.Event()
    made.close = lambda *_, **__: closed.set()  # type: ignore[method-assign, assignment]  # the real one would close a socket
    with pytest.raises(BrokerUnreachable, match=r"no answer within 0.01 s"):
        await made.request(describe_producers("ab"))
    assert closed.is_set()
    assert len(stream.frames) == 1


async def test_throttled_connection_pauses_for_the_time_in_the_answer() -> None:
    made, stream = connection()
    waits: list[float] = []
    made.on_throttled = lambda seconds, _: waits.append(seconds)
    made.send(describe_producers("a"))
    made._answered(producers_answer(made._requests[0][0], throttle_ms=0))
    assert (made.throttled_for, waits) == (0, [])
    made.send(describe_producers("a"))
    made._answered(producers_answer(made._requests[0][0], throttle_ms=50))
    assert 0 < made.throttled_for <= 0.05
    assert waits == [0.05]
    asked = asyncio.create_task(made.request(describe_producers("b")))
    await asyncio.sleep(0)
    assert len(stream.frames) == 2
    await made.wait_unthrottled()
    await eventually(lambda: len(stream.frames) == 3)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)


async def test_no_round_trip_is_longer_than_the_shortest_answer() -> None:
    made, _ = connection()
    made.round_trip_s = 30.0
    made.send(describe_producers("a"))
    made._answered(producers_answer(made._requests[0][0]))
    assert made.round_trip_s < 5.0
