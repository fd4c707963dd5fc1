"""Values, header names and topics that somebody made to break things, compared with Python that shares no code."""

import hashlib
import hmac
import json
import random
import re
from dataclasses import replace

import pytest

from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from tests.support.batch_bytes import ZSTD, batch_bytes, record
from tests.support.transform_jvm import PATIENT, TransformJvm, records_of

SALT = b"a salt that nobody may see"
MANY = replace(PATIENT, failures=1_000_000)
NAMES = ["", "\0", "'; DROP TABLE records; --", "x" * 30_000, "\udcff\udcfe", "a\udcc3", "😀\u202e", "same", "same"]
"""Names of headers. Some bytes of theirs are no UTF-8."""


def masking(how: str) -> str:
    return f"SELECT json_mask(value, '$.secret', '{how}') AS value FROM records"  # noqa: S608


def is_json(value: bytes) -> bool:
    """Whether bytes are one JSON document, whatever is in its strings."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        json.loads(value.decode("utf-8", "surrogateescape"), strict=False, parse_constant=refuse)
    except (ValueError, RecursionError):
        return False
    return not value.startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize("how", ["mask", "remove", "truncate(2)", "hash_salted", "tokenise"])
async def test_mutated_documents_fail_exactly_if_they_are_no_json(jvm: TransformJvm, how: str) -> None:
    draw = random.Random(7)
    base = b'{"id": 1.10, "secret": {"a": ["\\u00fc\\"x", -0, 1e3, true, null]}, "t": "\xc3\xbc\xff", "secret": "s"}'
    documents = []
    for _ in range(3000):
        text = bytearray(base)
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(len(text))
            match draw.randrange(4):
                case 0:
                    del text[at]
                case 1:
                    text[at] = draw.randrange(256)
                case 2:
                    text.insert(at, draw.choice(b'{}[],:"\\0-e\x00\xff'))
                case _:
                    text[at:at] = text[draw.randrange(len(text)) :][: draw.randrange(20)]
        documents.append(bytes(text))
    batch = batch_bytes([record(n, value) for n, value in enumerate(documents)])
    answer = await jvm.answer(masking(how), batch, options=MANY, secrets={"salt": SALT})
    failed = {failure.offset for failure in answer.failures}
    assert failed == {n for n, value in enumerate(documents) if not is_json(value)}
    assert 300 < len(failed) < 2900
    assert {failure.condition for failure in answer.failures} == {"JSON_MALFORMED"}
    assert all(is_json(kept.value or b"") for kept in records_of(answer))


async def test_a_value_of_10_mb_is_masked_as_any_other(jvm: TransformJvm) -> None:
    long = b"p" * 10_000_000
    value = b'{"x": 1.10,"secret":"' + long + b'","y":[]}'
    token = hmac.new(SALT, long, hashlib.sha256).hexdigest().encode()
    for how, kept in (("hash_salted", token), ("truncate(4)", b"pppp"), ("mask", b"***")):
        batch = batch_bytes([record(0, value)], codec=ZSTD)
        answer = await jvm.answer(masking(how), batch, secrets={"salt": SALT})
        assert [each.value for each in records_of(answer)] == [value.replace(long, kept)], how


async def test_bytes_that_are_no_utf_8_are_hashed_and_kept_as_they_are(jvm: TransformJvm) -> None:
    secret = b"M\xc3(\xff\x80ller"
    value = b'{"before":"\xff\xfe","secret":"' + secret + b'"}'
    token = hmac.new(SALT, secret, hashlib.sha256).hexdigest().encode()
    made = await jvm.values(masking("hash_salted"), value, secrets={"salt": SALT})
    assert made == [value.replace(secret, token)]
    assert await jvm.values(masking("truncate(1)"), value) == [value.replace(secret, b"M")]


async def test_equal_names_are_all_masked_and_the_first_is_read(jvm: TransformJvm) -> None:
    value = b'{"secret":"one","sec\\u0072et":"two","secret":{"secret":"three"}}'
    [made] = await jvm.values(masking("hash_salted"), value, secrets={"salt": SALT})
    assert made is not None
    assert not re.search(rb"one|two|three", made)
    assert await jvm.values("SELECT json_text(value, '$.secret') AS value FROM records", value) == [b"one"]


async def test_deep_documents(jvm: TransformJvm) -> None:
    def nested(depth: int) -> bytes:
        return b'{"a":' * depth + b'{"secret":"private"}' + b"}" * depth

    statement = masking("mask").replace("$.secret", "$.a.a.a.secret")
    shallow = nested(3)
    assert await jvm.values(statement, shallow, nested(998)) == [shallow.replace(b"private", b"***"), nested(998)]
    batch = batch_bytes([record(0, nested(1100)), record(1, b"[" * 2_000_000)])
    answer = await jvm.answer(statement, batch, options=MANY)
    assert [(each.offset, each.condition) for each in answer.failures] == [(0, "JSON_TOO_DEEP"), (1, "JSON_TOO_DEEP")]


async def test_header_names_of_any_bytes(jvm: TransformJvm) -> None:
    headers = [(name, b"%d" % index) for index, name in enumerate(NAMES)]
    content = [record(0, b"v", headers=headers), record(1, None, headers=[*headers, *headers])]
    for statement in ("SELECT value FROM records", "SELECT filter(headers, h -> true) AS headers FROM records"):
        assert records_of(await jvm.answer(statement, batch_bytes(content))) == content, statement
    statement = "SELECT filter(headers, h -> h.key != 'same' AND length(h.key) < 100) AS headers FROM records"

    def left(each: PlainRecord) -> PlainRecord:
        kept = tuple((name, value) for name, value in each.headers if name != "same" and len(name) < 100)
        return each._replace(headers=kept)

    made = records_of(await jvm.answer(statement, batch_bytes(content)))
    assert [each._replace(headers=tuple(each.headers)) for each in made] == [left(each) for each in content]


@pytest.mark.parametrize("topic", ["'; DROP TABLE records; --", "t" * 249, "a.b-c_D", "${env:HOME}", "\u202eü"])
async def test_topics_of_any_name(jvm: TransformJvm, topic: str) -> None:
    evaluator = await jvm.connect("SELECT topic AS key FROM records WHERE topic IS NOT NULL")
    try:
        answer = await evaluator.evaluate([batch_bytes([record(0)])], 0, 2**31 - 1, topic)
    finally:
        await evaluator.close()
    assert [each.key for each in records_of(answer)] == [topic.encode()]


async def test_keys_of_any_bytes(jvm: TransformJvm) -> None:
    keys = [b"", b"\xff\xfe", b"\0" * 100_000, "ü".encode(), None]
    content = [record(offset, b"{}", key=key) for offset, key in enumerate(keys)]
    made = records_of(await jvm.answer("SELECT sha2(key, 256) AS key FROM records", batch_bytes(content)))
    assert [each.key for each in made] == [
        None if key is None else hashlib.sha256(key).hexdigest().encode() for key in keys
    ]
