"""`json_text`, `json_int`, `json_has` and `json_mask`, held against documents written beside what they become."""

import hashlib
import hmac
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.support.batch_bytes import batch_bytes, record
from tests.support.transform_jvm import PATIENT, TransformJvm

SALT = b"a salt that nobody may see"
NAMES = ("a", "b", "c", "ä", 'q"', "n\n", "😀")
CHARACTERS = 'abcXYZ019 -.,@/"\\\n\tüß漢😀'
SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
NUMBERS = ("0", "-0", "1.10", "12600", "-7", "1e3", "1E-2", "0.50", "123456789012345678901234567890")


def sql(masking: str, *paths: str) -> str:
    value = "value"
    for path in paths:
        quoted = path.replace("'", "\\'")
        value = f"json_mask({value}, '{quoted}', '{masking}')"
    return f"SELECT {value} AS value FROM records"  # noqa: S608


@dataclass
class Writer:
    """Writes a random document, and beside it the one that a masking makes of it."""

    draw: random.Random
    scalar: Callable[[str, list[tuple[str, str]]], str]
    """What becomes of a scalar: of its text, and, for a string, of its characters and how each is written."""

    def space(self) -> str:
        return self.draw.choice(("", "", "", " ", "\n  ", "\t\r\n"))

    def character(self, one: str) -> str:
        forms = [SHORT[one]] if one in SHORT else [one]
        forms.append("".join(f"\\u{unit:04x}" for unit in _units(one)))
        return self.draw.choice(forms)

    def string(self, text: str) -> tuple[str, list[tuple[str, str]]]:
        characters = [(one, self.character(one)) for one in text]
        return '"' + "".join(form for _, form in characters) + '"', characters

    def leaf(self, masked: bool) -> tuple[str, str]:
        kind = self.draw.randrange(4)
        characters: list[tuple[str, str]] = []
        if kind == 0:
            text = self.draw.choice(NUMBERS)
        elif kind == 1:
            text = self.draw.choice(("true", "false", "null"))
        else:
            content = "".join(self.draw.choices(CHARACTERS, k=self.draw.randrange(12)))
            text, characters = self.string(content)
        return text, self.scalar(text, characters) if masked else text

    def value(self, depth: int, path: tuple[str | int, ...] | None) -> tuple[str, str]:
        """A value and its masked form; `path`: what leads from here to what is masked; None: nothing is."""
        kind = self.draw.randrange(3) if depth < 5 else 2
        if path and self.draw.random() < 0.9 and depth < 5:
            kind = 0 if isinstance(path[0], str) else 1
        if kind == 2:
            return self.leaf(path == ())
        members, openings = [], "{}" if kind == 0 else "[]"
        for index in range(self.draw.randrange(4)):
            front = ""
            rest: tuple[str | int, ...] | None = path if path == () else None
            if kind == 0:
                is_step = path and isinstance(path[0], str) and self.draw.random() < 0.4
                name = str(path[0]) if path and is_step else self.draw.choice(NAMES)
                front = self.string(name)[0] + self.space() + ":" + self.space()
                if path and path[0] == name:
                    rest = path[1:]
            elif path and path[0] in (index, -1):
                rest = path[1:]
            text, masked = self.value(depth + 1, rest)
            before, behind = self.space(), self.space()
            members.append((before + front + text + behind, before + front + masked + behind))
        inside = ",".join(text for text, _ in members), ",".join(masked for _, masked in members)
        space = "" if members else self.space()
        return openings[0] + space + inside[0] + openings[1], openings[0] + space + inside[1] + openings[1]

    def document(self, path: tuple[str | int, ...]) -> tuple[bytes, bytes]:
        text, masked = self.value(0, path)
        before, behind = self.space(), self.space()
        return (before + text + behind).encode(), (before + masked + behind).encode()


def _units(one: str) -> list[int]:
    raw = one.encode("utf-16-be")
    return [int.from_bytes(raw[at : at + 2], "big") for at in range(0, len(raw), 2)]


def star(text: str, characters: list[tuple[str, str]]) -> str:
    if text == "null":
        return text
    return '"***"' if text[0] == '"' else "false" if text in ("true", "false") else "0"


def salted(text: str, characters: list[tuple[str, str]]) -> str:
    if text == "null":
        return text
    content = "".join(one for one, _ in characters) if text[0] == '"' else text
    return '"' + hmac.new(SALT, content.encode(), hashlib.sha256).hexdigest() + '"'


def truncated(text: str, characters: list[tuple[str, str]]) -> str:
    if text[0] == '"':
        return '"' + "".join(form for _, form in characters[:3]) + '"'
    return text if len(text) <= 3 or text == "null" else f'"{text[:3]}"'


def token(text: str, characters: list[tuple[str, str]]) -> str:
    if text in ("null", "true", "false"):
        return "null" if text == "null" else "false"
    is_string = text[0] == '"'
    content = "".join(one for one, _ in characters) if is_string else text
    stream = _stream(content.encode())
    out, exponent = [], False
    for index, one in enumerate(content):
        exponent |= not is_string and one in "eE"
        if exponent:
            out.append(one)
        elif "0" <= one <= "9":
            digit = next(stream)
            leads = not is_string and (index == 0 or (index == 1 and content[0] == "-"))
            out.append(str((0 if one == "0" else 1 + digit % 9) if leads else digit % 10))
        elif "A" <= one <= "Z":
            out.append(chr(65 + next(stream) % 26))
        elif "a" <= one <= "z" or one > "\x7f":
            out.append(chr(97 + next(stream) % 26))
        else:
            out.append(" " if one < " " else "\\" + one if one in '"\\' else one)
    return f'"{"".join(out)}"' if is_string else "".join(out)


def _stream(content: bytes) -> Any:
    for block in range(1000):
        yield from hmac.new(SALT, block.to_bytes(4, "big") + content, hashlib.sha256).digest()


@pytest.mark.parametrize(
    ("masking", "scalar"),
    [("mask", star), ("hash_salted", salted), ("truncate(3)", truncated), ("tokenise", token)],
)
async def test_only_what_is_at_the_path_changes(jvm: TransformJvm, masking: str, scalar: Any) -> None:
    for seed, (path, steps) in enumerate(
        [("$.a", ("a",)), ("$.a.b", ("a", "b")), ("$.b[*].a", ("b", -1, "a")), ("$.c[1]", ("c", 1)), ("$[*]", (-1,)),
         ("$['ä']", ("ä",)), ("$['q\"']", ('q"',))]
    ):  # fmt: skip
        writer = Writer(random.Random(seed), scalar)
        documents = [writer.document(steps) for _ in range(500)]
        assert sum(before != after for before, after in documents) > 50
        made = await jvm.values(sql(masking, path), *(before for before, _ in documents), secrets={"salt": SALT})
        for (before, after), now in zip(documents, made, strict=True):
            assert now == after, before


async def test_what_is_removed_leaves_the_others(jvm: TransformJvm) -> None:
    writer = Writer(random.Random(1), star)
    documents = [writer.document(("a", "b"))[0] for _ in range(1500)]
    made = await jvm.values(sql("remove", "$.a.b"), *documents)

    def removed(value: Any) -> Any:
        """Of a document as lists of pairs."""
        if not _is_object(value):
            return value
        return ("o", [(n, _without(v, "b") if n == "a" else v) for n, v in value[1]])

    for before, now in zip(documents, made, strict=True):
        assert now is not None
        assert _pairs(now) == removed(_pairs(before)), before
    assert sum(before != now for before, now in zip(documents, made, strict=True)) > 100


async def test_commas_and_spaces_go_with_what_is_removed(jvm: TransformJvm) -> None:
    cases = {
        b'{"a":1}': b"{}",
        b'{ "a" : 1 , "b" : 2 }': b'{ "b" : 2 }',
        b'{"b":2,"a":1}': b'{"b":2}',
        b'{"b":2, "a":1, "c":3}': b'{"b":2, "c":3}',
        b'{"a":1,"a":2,"b":3,"\\u0061":4,"a":5}': b'{"b":3}',
        b'{"a":1,"a":2}': b"{}",
    }
    assert await jvm.values(sql("remove", "$.a"), *cases) == list(cases.values())
    assert await jvm.values(sql("remove", "$[1]"), b"[1, 2, 3]", b"[1]", b"[]") == [b"[1, 3]", b"[1]", b"[]"]
    assert await jvm.values(sql("remove", "$[*]"), b"[1, 2, 3]", b"[ ]") == [b"[]", b"[ ]"]


def _is_object(value: Any) -> bool:
    return isinstance(value, tuple) and value[0] == "o"


def _pairs(document: bytes) -> Any:
    return json.loads(document, object_pairs_hook=lambda pairs: ("o", pairs), parse_float=str, parse_int=str)


def _without(value: Any, name: str) -> Any:
    return ("o", [(n, v) for n, v in value[1] if n != name]) if _is_object(value) else value


@pytest.mark.parametrize(
    ("value", "text", "has"),
    [
        (b'{"a": "x"}', "x", True),
        (b'{"a": "\\u00fc\\n\\ud83d\\ude00\\ud83d"}', "ü\n😀\ufffd", True),
        (b'{"a": 1.10}', "1.10", True),
        (b'{"a": {"b" : [1, 2]}}', '{"b" : [1, 2]}', True),
        (b'{"a": null}', None, True),
        (b'{"b": 1}', None, False),
        (b'{"a": "first", "a": "second"}', "first", True),
        (b'{"\\u0061": "escaped"}', "escaped", True),
        (b"[1]", None, False),
        (b'"a"', None, False),
        (b"7", None, False),
    ],
)
async def test_reading(jvm: TransformJvm, value: bytes, text: str | None, has: bool) -> None:
    read = (
        "SELECT concat_ws('|', coalesce(json_text(value, '$.a'), 'NULL'), json_has(value, '$.a')) AS value FROM records"
    )
    [made] = await jvm.values(read, value)
    assert made == f"{'NULL' if text is None else text}|{str(has).lower()}".encode()


async def test_whole_numbers(jvm: TransformJvm) -> None:
    read = "SELECT CAST(json_int(value, '$[0]') AS STRING) AS key FROM records"
    numbers = ["0", "-0", "12600", "-9223372036854775808", "9223372036854775807", "null"]
    answer = await jvm.answer(read, batch_bytes([record(n, f"[{text}]".encode()) for n, text in enumerate(numbers)]))
    assert not answer.failures
    bad = ["1.0", "1e3", '"1"', "true", "{}", "9223372036854775808", "-9223372036854775809", "99999999999999999999"]
    options = replace(PATIENT, failures=100)
    batch = batch_bytes([record(n, f"[{text}]".encode()) for n, text in enumerate(bad)])
    failures = (await jvm.answer(read, batch, options=options)).failures
    assert [failure.condition for failure in failures] == ["JSON_NOT_AN_INTEGER"] * len(bad)


async def test_what_is_no_json_to_its_end_fails_a_mask(jvm: TransformJvm) -> None:
    bad = [
        b"", b" ", b"{", b'{"a"', b'{"a":', b'{"a":1', b'{"a":1,', b'{"a":1,}', b'{"a" 1}', b"{a:1}", b"{'a':1}",
        b"[1 2]",
        b"[1,]", b"[", b"01", b"1.", b"-", b"1e", b"+1", b"NaN", b"tru", b"truex", b'"\\x"', b'"\\u12g4"', b'"open',
        b'{"a":1}{"a":2}', b'{"a":1} x', b'\xef\xbb\xbf{"a":1}', '{"a":1}'.encode("utf-16"), b"\x00", b"\xff",
        b'{"a":1]',
    ]  # fmt: skip
    batch = batch_bytes([record(n, value) for n, value in enumerate(bad)])
    answer = await jvm.answer(sql("mask", "$.zzz"), batch, options=replace(PATIENT, failures=1000))
    assert [failure.offset for failure in answer.failures] == list(range(len(bad)))
    assert {failure.condition for failure in answer.failures} == {"JSON_MALFORMED"}


async def test_hostile_documents(jvm: TransformJvm) -> None:
    deep = b"[" * 999 + b"1" + b"]" * 999
    assert await jvm.values(sql("mask", "$.a"), deep) == [deep]
    deeper = [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 5_000_000]
    batch = batch_bytes([record(n, value) for n, value in enumerate(deeper)])
    answer = await jvm.answer(sql("mask", "$.b"), batch, options=replace(PATIENT, failures=10))
    assert [failure.condition for failure in answer.failures] == ["JSON_TOO_DEEP"] * 2
    large = b'{"x":"' + b"x" * 10_000_000 + b'","a":"private"}'
    assert await jvm.values(sql("mask", "$.a"), large) == [large.replace(b"private", b"***")]
    invalid = b'{"x":"\xff\xfe","a":"\xc3(\x80","\xff":1}'
    assert await jvm.values(sql("mask", "$.a"), invalid) == [b'{"x":"\xff\xfe","a":"***","\xff":1}']
    many = b'{"a":1,"\\u0061":2,"a":{"a":3,"b":[4,"x"]}}'
    assert await jvm.values(sql("mask", "$.a"), many) == [b'{"a":0,"\\u0061":0,"a":{"a":0,"b":[0,"***"]}}']


async def test_null_stays_null_and_nothing_to_mask_changes_nothing(jvm: TransformJvm) -> None:
    values = [None, b'{"b" : 1.10 }', b" [ ] "]
    assert await jvm.values(sql("mask", "$.a", "$.b[*].c"), *values) == values


async def test_a_secret_is_in_no_plan_no_stage_and_no_error(jvm: TransformJvm) -> None:
    statement = sql("tokenise(pepper)", "$.a")
    compiled = jvm.compile(statement)
    evaluator = await jvm.connect(compiled, secrets={"pepper": SALT})
    try:
        failed = await evaluator.evaluate([batch_bytes([record(0, b'{"a":')])], 0, 0, "t")
    finally:
        await evaluator.close()
    for shown in (compiled.stages, repr(compiled).encode(), repr(failed).encode(), repr(evaluator).encode()):
        assert SALT not in shown
    text = jvm.compiler._java.compile(statement).getCanonicalText()
    assert "tokenise(pepper)" in text
    assert SALT.decode() not in text


def test_words_of_maskings_do_not_depend_on_the_locale(jvm: TransformJvm) -> None:
    """In Turkish the capital of i has a dot, and the small letter of I has none."""
    locales = jvm.context._jvm.java.util.Locale
    default = locales.getDefault()
    locales.setDefault(locales.forLanguageTag("tr-TR"))
    try:
        transform = jvm.compile("SELECT json_mask(value, '$.a', 'tokenise') AS value FROM records")
    finally:
        locales.setDefault(default)
    assert transform.secrets == ("salt",)
