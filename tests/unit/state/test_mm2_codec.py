"""MM2's records: golden vectors, round trips and malformed bytes (`mm2-behaviour.md` §1.2 to 1.7)."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_state.codecs import mm2_codec
from lockstep_state.codecs.mm2_codec import Checkpoint, Heartbeat, MalformedRecord, OffsetSync, UnsupportedRecordVersion
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset

strings = st.text(st.characters(codec="utf-8"), max_size=50)
int32 = st.integers(0, 2**31 - 1)
int64 = st.integers(0, 2**63 - 1)
times_ms = st.integers(0, mm2_codec.LATEST_MS)
upstream = int64.map(UpstreamOffset)
downstream = int64.map(DownstreamOffset)

SYNC = OffsetSync("t1", 2, UpstreamOffset(3), DownstreamOffset(4))
CHECKPOINT = Checkpoint("g1", "A.t1", 2, UpstreamOffset(10), DownstreamOffset(5))
HEARTBEAT = Heartbeat("A", "B", 1234567890)

GOLDEN: list[
    tuple[Callable[[Any], tuple[bytes, bytes]], Callable[[bytes | None, bytes | None], Any], Any, str, str]
] = [
    (
        mm2_codec.encode_offset_sync,
        mm2_codec.decode_offset_sync,
        SYNC,
        "0002743100000002",
        "00000000000000030000000000000004",
    ),
    (
        mm2_codec.encode_checkpoint,
        mm2_codec.decode_checkpoint,
        CHECKPOINT,
        "000267310004412e743100000002",
        "0000000000000000000a00000000000000050000",
    ),
    (mm2_codec.encode_heartbeat, mm2_codec.decode_heartbeat, HEARTBEAT, "000141000142", "0000" + "00000000499602d2"),
]
each_kind = pytest.mark.parametrize(
    ("encode", "decode", "record", "key", "value"), GOLDEN, ids=["sync", "checkpoint", "beat"]
)


@each_kind
def test_the_golden_vectors_hold_both_ways(encode: Any, decode: Any, record: Any, key: str, value: str) -> None:
    assert encode(record) == (bytes.fromhex(key), bytes.fromhex(value))
    assert decode(bytes.fromhex(key), bytes.fromhex(value)) == record


RECORDS = st.one_of(
    st.builds(OffsetSync, strings, int32, upstream, downstream),
    st.builds(Checkpoint, strings, strings, int32, upstream, downstream, strings),
    st.builds(Heartbeat, strings, strings, times_ms),
)


@given(RECORDS)
def test_mm2_020_021_022_record_survives_encoding_and_decoding(record: OffsetSync | Checkpoint | Heartbeat) -> None:
    encode, decode = next((encode, decode) for encode, decode, golden, *_ in GOLDEN if type(golden) is type(record))
    assert decode(*encode(record)) == record


@pytest.mark.parametrize("version", [1, 2, 255])
def test_mm2_023_a_checkpoint_of_another_version_is_refused_by_its_version(version: int) -> None:
    """What follows the version may be anything."""
    key, _ = mm2_codec.encode_checkpoint(CHECKPOINT)
    with pytest.raises(UnsupportedRecordVersion, match=f"checkpoint value: version {version}, this release reads"):
        mm2_codec.decode_checkpoint(key, version.to_bytes(2, "big", signed=True))


@pytest.mark.parametrize("value", [b"what somebody wrote", b'{"version":2}', b"\xff\xff", b"\x7f\xff" + bytes(20)])
def test_garbage_is_no_checkpoint_of_a_newer_version(value: bytes) -> None:
    key, _ = mm2_codec.encode_checkpoint(CHECKPOINT)
    with pytest.raises(MalformedRecord, match="there is no version"):
        mm2_codec.decode_checkpoint(key, value)
    with pytest.raises(MalformedRecord, match="checkpoint key"):
        mm2_codec.decode_checkpoint(b"rubbish", b"\0\1")


@pytest.mark.parametrize("timestamp", [2**63 - 1, 2**62, mm2_codec.LATEST_MS + 1, -1, -(2**63)])
def test_heartbeat_of_an_impossible_time_is_none(timestamp: int) -> None:
    key, value = mm2_codec.encode_heartbeat(HEARTBEAT)
    with pytest.raises(MalformedRecord, match=f"timestamp is {timestamp}, which it cannot be"):
        mm2_codec.decode_heartbeat(key, value[:2] + timestamp.to_bytes(8, "big", signed=True))


@pytest.mark.parametrize(("upstream", "downstream"), [(-1, 0), (0, -1), (-(2**63), 0)])
def test_negative_offsets_are_malformed(upstream: int, downstream: int) -> None:
    offsets = UpstreamOffset(upstream), DownstreamOffset(downstream)
    with pytest.raises(MalformedRecord, match="stream offset is -"):
        mm2_codec.decode_offset_sync(*mm2_codec.encode_offset_sync(OffsetSync("t", 0, *offsets)))
    with pytest.raises(MalformedRecord, match="stream offset is -"):
        mm2_codec.decode_checkpoint(*mm2_codec.encode_checkpoint(Checkpoint("g", "t", 0, *offsets)))


def test_mm2_024_a_heartbeat_of_another_version_is_refused_by_its_version() -> None:
    key, value = mm2_codec.encode_heartbeat(HEARTBEAT)
    with pytest.raises(UnsupportedRecordVersion, match="heartbeat value: version 1, this release reads version 0"):
        mm2_codec.decode_heartbeat(key, b"\0\1" + value[2:])


@each_kind
def test_trailing_bytes_are_ignored(encode: Any, decode: Any, record: Any, key: str, value: str) -> None:
    assert decode(bytes.fromhex(key) + b"more", bytes.fromhex(value) + b"\xff") == record


@each_kind
def test_every_cut_is_malformed(encode: Any, decode: Any, record: Any, key: str, value: str) -> None:
    whole_key, whole_value = bytes.fromhex(key), bytes.fromhex(value)
    for end in range(len(whole_key)):
        with pytest.raises(MalformedRecord, match=r"key: .* needs \d+ bytes at \d+, \d+ are left"):
            decode(whole_key[:end], whole_value)
    for end in range(len(whole_value)):
        with pytest.raises(MalformedRecord, match=r"value: .* needs \d+ bytes at \d+, \d+ are left"):
            decode(whole_key, whole_value[:end])


@each_kind
def test_tombstones_and_missing_keys_are_malformed(encode: Any, decode: Any, record: Any, key: str, value: str) -> None:
    with pytest.raises(MalformedRecord, match="value: missing"):
        decode(bytes.fromhex(key), None)
    with pytest.raises(MalformedRecord, match="key: missing"):
        decode(None, bytes.fromhex(value))


@pytest.mark.parametrize(
    ("decode", "key", "text"),
    [
        (mm2_codec.decode_offset_sync, b"\xff\xff\0\0\0\2", "topic has length -1, null is not allowed"),
        (mm2_codec.decode_heartbeat, b"\0\1\xff\0\1B", "source alias is not UTF-8"),
    ],
)
def test_string_that_is_null_or_not_utf8_is_malformed(decode: Callable[..., Any], key: bytes, text: str) -> None:
    with pytest.raises(MalformedRecord, match=text):
        decode(key, bytes(16))


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_codec_of_mm2_raises_only_its_own_errors_for_any_bytes(key: bytes, value: bytes) -> None:
    for _, decode, *_ in GOLDEN:
        with contextlib.suppress(MalformedRecord, UnsupportedRecordVersion):
            decode(key, value)


def test_the_longest_string_fits_and_one_byte_more_does_not() -> None:
    """`mm2-behaviour.md` §1.2: 0..32767 bytes, not characters."""
    fits = Heartbeat("a" * 32767, "é" * 16383, 0)
    assert mm2_codec.decode_heartbeat(*mm2_codec.encode_heartbeat(fits)) == fits
    with pytest.raises(ValueError, match="target takes 32768 bytes, the format holds at most 32767"):
        mm2_codec.encode_heartbeat(Heartbeat("A", "é" * 16384, 0))


def test_numbers_that_do_not_fit_are_refused_before_anything_is_written() -> None:
    with pytest.raises(ValueError, match="partition 2147483648 does not fit into 4 bytes"):
        mm2_codec.encode_offset_sync(OffsetSync("t", 2**31, UpstreamOffset(0), DownstreamOffset(0)))


@pytest.mark.parametrize(
    ("cluster", "topic", "partition", "offset", "key", "value"),
    [
        ("S", "t1", 0, 123, '["MirrorSourceConnector",{"cluster":"S","partition":0,"topic":"t1"}]', '{"offset":123}'),
        ("é", "t-2", 11, 0, '["MirrorSourceConnector",{"cluster":"é","partition":11,"topic":"t-2"}]', '{"offset":0}'),
        ('"\\/', "t", 0, 1, r'["MirrorSourceConnector",{"cluster":"\"\\/","partition":0,"topic":"t"}]', '{"offset":1}'),
        # The next two as Jackson's writeValueAsBytes gave them.
        (
            "\x01\x1f\x7f\t\n",
            "t",
            0,
            1,
            '["MirrorSourceConnector",{"cluster":"\\u0001\\u001F\x7f\\t\\n","partition":0,"topic":"t"}]',
            '{"offset":1}',
        ),
        (
            "😀",
            "t",
            0,
            1,
            r'["MirrorSourceConnector",{"cluster":"\uD83D\uDE00","partition":0,"topic":"t"}]',
            '{"offset":1}',
        ),
        (
            r"\u001f",
            "t",
            0,
            1,
            r'["MirrorSourceConnector",{"cluster":"\\u001f","partition":0,"topic":"t"}]',
            '{"offset":1}',
        ),
    ],
)
def test_progress_has_connects_exact_bytes(
    cluster: str, topic: str, partition: int, offset: int, key: str, value: str
) -> None:
    assert mm2_codec.encode_source_progress(cluster, topic, partition, offset) == (key.encode(), value.encode())


def test_a_reset_is_a_tombstone_of_the_same_key() -> None:
    key, _ = mm2_codec.encode_source_progress("S", "t", 3, 7)
    assert mm2_codec.encode_source_progress_reset("S", "t", 3) == (key, None)


def test_codec_of_mm2_refuses_offsets_that_connect_refuses() -> None:
    with pytest.raises(ValueError, match="offsets begin at 0"):
        mm2_codec.encode_source_progress("S", "t", 0, -1)
    with pytest.raises(ValueError, match="t has no partition -1"):
        mm2_codec.encode_source_progress("S", "t", -1, 0)
