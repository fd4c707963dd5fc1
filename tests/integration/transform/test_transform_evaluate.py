"""Record batches through a transform, compared with Python that shares no code with it."""

# ruff: noqa: S608  # Spark has no data here but the record's

import asyncio
import hashlib
import hmac
import json
import os
import time
from dataclasses import replace
from typing import Any

import pytest

from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.transform.compiled_transform import TransformVersion
from lockstep_data_plane.transform.evaluation_answer import (
    AnswerEnd,
    EvaluationOptions,
    Filtered,
    Tombstones,
    TransformRefused,
    TransformTimedOut,
    TransformVersionDiffers,
)
from lockstep_data_plane.transform.jvm_socket import find_server
from tests.support.batch_bytes import (
    CONTROL,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    SNAPPY,
    ZSTD,
    batch_bytes,
    crc_is_right,
    record,
)
from tests.support.transform_jvm import PATIENT, TransformJvm, records_of
from tools.bench.orders import Orders

SALT = b"a salt that nobody may see"
FILTER = "SELECT * FROM records WHERE json_int(value, '$.items[0].price_cents') > 12600"
FILTER_AND_MASK = FILTER.replace("*", "json_mask(value, '$.customer.name', 'hash_salted') AS value")
IDENTITY = "SELECT * FROM records"


def orders(first: int, count: int) -> list[PlainRecord]:
    made = Orders.drawn()
    return [
        record(n, made.value(n), key=made.key(n), timestamp=1_700_000_000_000 + n, headers=[("n", b"%d" % n)])
        for n in range(first, first + count)
    ]


def masked(value: bytes) -> bytes:
    """An order with its customer's name replaced, by Python's own JSON, HMAC and text."""
    name = json.loads(value)["customer"]["name"]
    token = hmac.new(SALT, name.encode(), hashlib.sha256).hexdigest()
    return value.replace(f'"name":"{name}"}},"ship_to"'.encode(), f'"name":"{token}"}},"ship_to"'.encode())


def is_dear(value: bytes) -> bool:
    return bool(json.loads(value)["items"][0]["price_cents"] > 12600)


@pytest.mark.parametrize("codec", [0, GZIP, SNAPPY, LZ4, ZSTD])
async def test_orders_are_filtered_and_masked_in_every_codec(jvm: TransformJvm, codec: int) -> None:
    content = orders(1000, 700)
    batches = [batch_bytes(content[at : at + 35], codec=codec) for at in range(0, 700, 35)]
    answer = await jvm.answer(FILTER_AND_MASK, *batches, start=1003, secrets={"salt": SALT})
    kept = [r._replace(value=masked(r.value)) for r in content[3:] if r.value and is_dear(r.value)]
    assert records_of(answer) == kept
    assert (answer.covers, answer.end, answer.records_read) == (1699, AnswerEnd.WHOLE, 697)
    assert crc_is_right(answer.batch)
    assert answer.batch[22] & 7 == codec
    assert len(answer.offsets.stretches) > 1
    outgoing = answer.outgoing()
    assert outgoing is not None
    assert (outgoing.count, outgoing.producer_id) == (len(kept), -1)
    assert (outgoing.base_timestamp, outgoing.max_timestamp) == (kept[0].timestamp, kept[-1].timestamp)


async def test_a_raw_snappy_block_is_read(jvm: TransformJvm) -> None:
    import cramjam

    plain = batch_bytes(orders(0, 5))
    import struct

    from google_crc32c import value as crc32c

    body = bytes(cramjam.snappy.compress_raw(plain[61:]))
    covered = struct.pack(">h", SNAPPY) + plain[23:61] + body
    raw = plain[:8] + struct.pack(">i", len(covered) + 9) + plain[12:17] + struct.pack(">I", crc32c(covered)) + covered
    assert records_of(await jvm.answer(IDENTITY, raw)) == orders(0, 5)


async def test_what_is_not_read_passes_as_it_is(jvm: TransformJvm) -> None:
    content = [
        record(0, None, key=None, timestamp=-1),
        record(1, b"", key=b"", timestamp=5, headers=[("", None), ("ü", b"\xff\xfe"), ("a", b"")]),
        record(9, b"\xff\xfe", key=b"\0", timestamp=2**40),
    ]
    answer = await jvm.answer(IDENTITY, batch_bytes(content, last_offset=20))
    assert records_of(answer) == content
    assert answer.covers == 20


async def test_control_batches_and_records_before_the_start_are_left_out(jvm: TransformJvm) -> None:
    marker = batch_bytes([record(3, b"\0\0\0\0", key=b"\0\0\0\1")], attributes=CONTROL)
    batches = [batch_bytes(orders(0, 3)), marker, batch_bytes(orders(4, 3)), batch_bytes(orders(7, 2))[:-1]]
    answer = await jvm.answer(IDENTITY, *batches, start=2)
    assert [r.offset for r in records_of(answer)] == [2, 4, 5, 6]
    assert answer.covers == 6, "a batch that is cut off is not decided"
    only = await jvm.answer(IDENTITY, marker)
    assert (only.batch, only.covers, only.outgoing()) == (b"", 3, None)


async def test_log_append_time_is_the_time_of_each_record(jvm: TransformJvm) -> None:
    batch = batch_bytes(orders(0, 3), attributes=LOG_APPEND_TIME, max_timestamp=77_000)
    statement = "SELECT CAST(timestampType AS STRING) AS key FROM records WHERE timestamp = timestamp_millis(77000)"
    kept = records_of(await jvm.answer(statement, batch))
    assert [(r.timestamp, r.key) for r in kept] == [(77_000, b"1")] * 3


async def test_key_headers_and_timestamp_are_made_anew(jvm: TransformJvm) -> None:
    statement = """
        SELECT concat(topic, '/', partition, '/', offset) AS key, timestamp + INTERVAL 1 HOUR AS timestamp,
            concat(
                filter(headers, h -> h.key != 'drop'),
                array(named_struct('key', 'from', 'value', CAST('eu' AS BINARY)))
            ) AS headers
        FROM records
    """
    content = [record(7, b"v", timestamp=1234, headers=[("drop", b"1"), ("keep", None)])]
    [kept] = records_of(await jvm.answer(statement, batch_bytes(content)))
    assert kept == record(7, b"v", key=b"orders/0/7", timestamp=3_601_234, headers=[("keep", None), ("from", b"eu")])


async def test_no_timestamp_stays_none(jvm: TransformJvm) -> None:
    batch = batch_bytes([record(0, timestamp=-1)])
    for statement in ("SELECT timestamp FROM records WHERE timestamp IS NOT NULL",
                      "SELECT timestamp + INTERVAL 0 HOURS AS timestamp FROM records",
                      "SELECT CAST(NULL AS TIMESTAMP) AS timestamp FROM records"):  # fmt: skip
        [kept] = records_of(await jvm.answer(statement, batch))
        assert kept.timestamp == -1, statement


async def test_tombstones_pass_a_filter_unless_asked(jvm: TransformJvm) -> None:
    batch = batch_bytes([record(0, None, key=b"a"), record(1, b'{"n": 1}', key=b"b"), record(2, b'{"n": 9}', key=b"c")])
    statement = (
        "SELECT upper(CAST(key AS STRING)) AS key, 'text' AS value FROM records WHERE json_int(value, '$.n') > 5"
    )

    async def kept(**more: Any) -> list[tuple[bytes | None, bytes | None]]:
        answer = await jvm.answer(statement, batch, options=replace(PATIENT, **more))
        return [(r.key, r.value) for r in records_of(answer)]

    assert await kept() == [(b"A", None), (b"C", b"text")]
    assert await kept(tombstones=Tombstones.FILTER) == [(b"C", b"text")]
    assert await kept(filtered=Filtered.TOMBSTONE) == [(b"A", None), (b"B", None), (b"C", b"text")]


async def test_a_filtered_record_becomes_a_tombstone_although_its_value_cannot_be_made(jvm: TransformJvm) -> None:
    """A statement may count on its condition: what it makes of other values is not asked."""
    batch = batch_bytes([record(0, b"7", key=b"a"), record(1, b"no number", key=b"b")])
    statement = (
        "SELECT CAST(CAST(CAST(value AS STRING) AS INT) + 1 AS STRING) AS value FROM records "
        "WHERE CAST(value AS STRING) RLIKE '^[0-9]+$'"
    )
    for filtered, left in ((Filtered.DROP, []), (Filtered.TOMBSTONE, [(b"b", None)])):
        answer = await jvm.answer(statement, batch, options=replace(PATIENT, filtered=filtered))
        assert not answer.failures
        assert [(r.key, r.value) for r in records_of(answer)] == [(b"a", b"8"), *left]


async def test_a_filter_that_drops_all_moves_on(jvm: TransformJvm) -> None:
    for condition in ("false", "key IS NULL AND key IS NOT NULL", "json_has(value, '$.nothing')"):
        answer = await jvm.answer(f"SELECT value FROM records WHERE {condition}", batch_bytes(orders(0, 9)))
        assert (answer.batch, answer.covers, len(answer.offsets)) == (b"", 8, 0)


async def test_a_record_that_cannot_be_evaluated_is_named_without_its_value(jvm: TransformJvm) -> None:
    batch = batch_bytes([record(n, value) for n, value in enumerate((b"1", b"private", b"3", b"secret", b"5"))])
    statement = "SELECT CAST(CAST(CAST(value AS STRING) AS INT) + 1 AS STRING) AS value FROM records"
    first = await jvm.answer(statement, batch)
    assert [r.value for r in records_of(first)] == [b"2"]
    assert (first.covers, first.end) == (1, AnswerEnd.FAILURES)
    assert "private" not in repr(first)
    every = await jvm.answer(statement, batch, options=replace(PATIENT, failures=100))
    assert [r.value for r in records_of(every)] == [b"2", b"4", b"6"]
    assert [(f.offset, f.condition) for f in every.failures] == [(1, "CAST_INVALID_INPUT"), (3, "CAST_INVALID_INPUT")]
    assert every.failures[0].fragment == "CAST(CAST(value AS STRING) AS INT)"


async def test_bad_json_is_a_failed_record_and_not_null(jvm: TransformJvm) -> None:
    batch = batch_bytes([record(0, b"{oops")])
    for statement, condition in (
        ("SELECT json_mask(value, '$.a', 'mask') AS value FROM records", "JSON_MALFORMED"),
        ("SELECT value FROM records WHERE json_int(value, '$.a') > 1", "JSON_MALFORMED"),
        ("SELECT value FROM records WHERE from_json(CAST(value AS STRING), 'a INT').a > 1", "MALFORMED_RECORD"),
    ):  # fmt: skip
        [failure] = (await jvm.answer(statement, batch)).failures
        assert failure.condition.startswith(condition), failure


async def test_an_answer_is_no_larger_than_asked(jvm: TransformJvm) -> None:
    content = orders(0, 400)
    batch = batch_bytes(content, codec=LZ4)
    evaluator = await jvm.connect(IDENTITY, options=replace(PATIENT, batch_bytes=20_000))
    kept: list[PlainRecord] = []
    answers, start = 0, 0
    try:
        while start < 400:
            answer = await evaluator.evaluate([batch], start, 0, "orders")
            assert 0 < len(answer.batch) <= 20_000
            assert answer.end is (AnswerEnd.WHOLE if answer.covers == 399 else AnswerEnd.BYTES)
            kept += records_of(answer)
            start, answers = answer.covers + 1, answers + 1
    finally:
        await evaluator.close()
    assert kept == content
    assert answers > 3


async def test_requests_are_answered_in_their_order(jvm: TransformJvm) -> None:
    evaluator = await jvm.connect(IDENTITY)
    try:
        asked = [evaluator.evaluate([batch_bytes(orders(n, 20))], n, 0, "orders") for n in range(0, 1000, 20)]
        answers = await asyncio.gather(*asked)
        assert [answer.covers for answer in answers] == list(range(19, 1000, 20))
    finally:
        await evaluator.close()


async def test_damage_is_refused_and_the_connection_stays(jvm: TransformJvm) -> None:
    good = batch_bytes(orders(0, 5), codec=LZ4)
    evaluator = await jvm.connect(IDENTITY)
    try:
        for bad in (good[:80] + bytes([good[80] ^ 1]) + good[81:], good[:16] + b"\1" + good[17:]):
            with pytest.raises(TransformRefused) as refused:
                await evaluator.evaluate([bad], 0, 0, "orders")
            assert refused.value.code in ("BATCH_CORRUPT", "BATCH_FORMAT")
        assert (await evaluator.evaluate([good], 0, 0, "orders")).covers == 4
    finally:
        await evaluator.close()


async def test_a_secret_that_was_not_sent_is_named(jvm: TransformJvm) -> None:
    with pytest.raises(TransformRefused) as refused:
        await jvm.connect(FILTER_AND_MASK)
    assert (refused.value.code, "salt" in str(refused.value)) == ("SECRET_MISSING", True)


async def test_another_version_is_refused(jvm: TransformJvm) -> None:
    compiled = jvm.compile(IDENTITY)
    other = replace(compiled, version=TransformVersion("0", "4.3.0", compiled.version.java, "another jar"))
    with pytest.raises(TransformVersionDiffers):
        await jvm.connect(other)


async def test_a_request_that_hangs_hits_its_time_limit(jvm: TransformJvm) -> None:
    # Some seconds, not for ever: nothing can end the thread that evaluates it.
    numbers = "sequence(0, 1000 * length(value))"
    slow = f"aggregate({numbers}, 0L, (a, x) -> a + aggregate({numbers}, CAST(x AS BIGINT), (b, y) -> b + y))"
    statement = f"SELECT value FROM records WHERE {slow} > 0"
    evaluator = await jvm.connect(statement, options=EvaluationOptions(seconds=0.5))
    begun = time.monotonic()
    with pytest.raises(TransformTimedOut):
        await evaluator.evaluate([batch_bytes([record(0, b"a" * 10)])], 0, 0, "orders")
    assert time.monotonic() - begun < 30
    with pytest.raises(TransformTimedOut):
        await evaluator.evaluate([batch_bytes([record(0, b"b")])], 0, 0, "orders")
    await evaluator.close()


async def test_slow_records_end_an_answer_early(jvm: TransformJvm) -> None:
    batch = batch_bytes(orders(0, 4000))
    heavy = "SELECT value FROM records WHERE length(repeat(hex(value), 300)) > 0"
    answer = await jvm.answer(heavy, batch, options=EvaluationOptions(seconds=0.001, batch_bytes=1 << 30))
    assert answer.end is AnswerEnd.TIME
    assert 0 < len(answer.offsets) == answer.covers + 1 < 4000


async def test_a_slot_s_worker_finds_the_jvm_above_it(jvm: TransformJvm) -> None:
    [found] = await asyncio.to_thread(lambda: jvm.context.parallelize([0], 1).map(lambda _: find_server()).collect())
    assert found == jvm.server
    pid, path = found
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_uid == os.getuid()
    assert pid in (int(entry) for entry in os.listdir("/proc") if entry.isdigit())
