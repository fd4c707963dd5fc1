"""YAML read with lines: what it is, what is wrong with it, and that nothing in it can hang or break us."""

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_config.text.yaml_nodes import Leaf, ListNode, MapNode, Node, read_yaml

FILE = Path("x.yaml")


def plain(node: Node) -> object:
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return {key: plain(value) for key, value in node.items.items()}


def read(text: str) -> object:
    (document,), problems = read_yaml(text.encode(), FILE)
    assert problems == ()
    return plain(document)


def mistakes(text: str | bytes) -> list[str]:
    _, problems = read_yaml(text if isinstance(text, bytes) else text.encode(), FILE)
    return [f"{problem.line} {problem.key}: {problem.message}" for problem in problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-12", -12),
        ("1.5", 1.5),
        ("'1'", "1"),
        ('"true"', "true"),
        ("true", True),
        ("Yes", True),
        ("off", False),
        ("oFf", "oFf"),
        ("", None),
        ("~", None),
        ("''", ""),
        ("my-topic|other", "my-topic|other"),
        ("3.8.0", "3.8.0"),
        ("0x10", "0x10"),
        ("1_000", "1_000"),
        ("!!str 1", "1"),
        (">-\n  a\n  b", "a b"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_scalars_are_what_kubernetes_makes_of_them(text: str, value: object) -> None:
    assert read(f"a: {text}\n") == {"a": value}


def test_every_key_and_value_knows_its_line() -> None:
    (document,), _ = read_yaml(b"a:\n  b: 1\n  c:\n  - d\n  -\n    e: 2\n", FILE)
    assert isinstance(document, MapNode)
    inner = document.items["a"]
    assert isinstance(inner, MapNode)
    assert (document.lines, inner.lines) == ({"a": 1}, {"b": 2, "c": 3})
    listed = inner.items["c"]
    assert isinstance(listed, ListNode)
    assert [item.line for item in listed.items] == [4, 6]


def test_anchors_aliases_and_merges() -> None:
    assert read("base: &b {x: 1, y: 2}\nsame: *b\nmore:\n  <<: *b\n  y: 3\n") == {
        "base": {"x": 1, "y": 2},
        "same": {"x": 1, "y": 2},
        "more": {"y": 3, "x": 1},
    }
    assert read("a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}\n") == {
        "a": {"x": 1},
        "b": {"x": 2, "y": 2},
        "c": {"x": 1, "y": 2},
    }


def test_yaml_with_several_and_empty_documents_is_read() -> None:
    documents, problems = read_yaml(b"---\n---\na: 1\n---\n# nothing\n---\nb: 2\n", FILE)
    assert [plain(document) for document in documents] == [{"a": 1}, {"b": 2}]
    assert problems == ()
    assert read_yaml(b"", FILE) == ((), ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n", ["4 b.c: is set twice, first in line 3: keep one"]),
        ("a:\n- x: 1\n  x: 2\n", ["3 a[0].x: is set twice, first in line 2: keep one"]),
        ("a:\n\tb: 1\n", ["2 : is no YAML: found character that cannot start any token: indent with blanks"]),
        ("a: [1\n", ["2 : is no YAML: "]),
        ("a: 'x\n", [": is no YAML: found unexpected end of stream"]),
        ("a: b: c\n", ["1 : is no YAML: mapping values are not allowed"]),
        ("a: *nowhere\n", ["1 a: names the anchor 'nowhere', which is nowhere before it"]),
        ("a: &a [*a]\n", ["1 a[0]: contains itself by the anchor 'a'"]),
        ("a: !!python/object/apply:os.system [x]\n", ["1 a: has the tag tag:yaml.org,2002:python/object/apply"]),
        ("a: !vault x\n", ["1 a: has the tag !vault, which means nothing in a resource"]),
        ("? [1]\n: 2\n", ["1 : has a key that is no text"]),
        ("a: {<<: 1}\n", ["1 a.<<: merges something that is no mapping"]),
        (b"a: \xff\n", [": is no YAML: "]),
        (b"a: \x01\n", [": is no YAML: control characters are not allowed"]),
    ],
)
def test_mistakes_say_where(text: str | bytes, said: list[str]) -> None:
    messages = mistakes(text)
    assert all(any(part in mistake for mistake in messages) for part in said), messages


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 100_000,
        b"a: " + b"{a: " * 5_000,
        b"a0: &a0 [x]\n"
        + b"".join(b"a%d: &a%d [%s]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 10)) for i in range(1, 30)),
        b"[" + b"[1]," * 300_000 + b"]",
        b"x" * 3_000_000,
        b"a: &a {x: 1}\n" + b"b: &b {<<: *a}\n" * 100_000,
    ],
    ids=["brackets", "braces", "laughs", "many", "long", "merges"],
)
def test_oversized_yaml_is_refused_soon(text: bytes) -> None:
    began = time.monotonic()
    assert mistakes(text)
    assert time.monotonic() - began < 20


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab:-[]{}&*!|>'\"#?,%@`<~ \n\t\\1", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    documents, problems = read_yaml(text.encode(), FILE)
    assert all(problem.message for problem in problems)
    assert all(plain(document) is not NotImplemented for document in documents)
