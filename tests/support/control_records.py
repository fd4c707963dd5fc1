"""Rows, events and commands of any content, and records that are none: what hostile and careless writers append."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from lockstep_state.reasons.reason import Reason
from lockstep_state.rows.value_types import ANY_INTEGER, Bounds

texts = st.text(st.characters(codec="utf-8"), max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
details = st.dictionaries(texts, json_values, max_size=3)


reason_details = st.dictionaries(texts, st.integers(-(2**63), 2**63) | texts, max_size=2)


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Return every value that a field of this declared type takes."""
    extras: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        extras = tuple(rest)
    if hint is int:
        bounds = next((extra for extra in extras if isinstance(extra, Bounds)), ANY_INTEGER)
        return st.integers(bounds.least, bounds.most)
    if hint is str:
        return texts
    if hint is bool:
        return st.booleans()
    if hint is Reason:
        return st.builds(Reason.from_json, st.fixed_dictionaries({"code": texts, "details": reason_details}))
    if get_origin(hint) is dict:
        return details
    assert get_origin(hint) is tuple, hint
    elements = get_args(hint)
    if elements[-1] is not Ellipsis:
        return st.tuples(*map(values_of, elements))
    return st.lists(values_of(elements[0]), max_size=3).map(tuple)


def records_of(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Return every record of a class of rows, events or commands."""
    hints = get_type_hints(kind, include_extras=True)
    return st.builds(kind, **{field.name: values_of(hints[field.name]) for field in fields(kind) if field.init})


WRONG: tuple[Any, ...] = (
    None, True, "9", "\ud800", "x" * 50_000, -1, -7, 2**31, 2**62, 2**63, 10**400, 1.5, [], {}, {"a": 1},
    [1], [[]], [["t", 0, 1]], [[1, 2], [3]], [["t", None]], [{}], [[[[[[]]]]]],
)  # fmt: skip
"""What a field may hold by mistake. Each is wrong in most fields, and right in a few."""

GARBAGE: tuple[bytes, ...] = (
    b"", b"\0", b"\xff\xfe", b"garbage", b"null", b"true", b"7", b'"text"', b"[]", b"{}", b"[" * 200_000,
    b'{"a":' * 200_000, b'{"version":true}', b'{"version":"9"}', b'{"version":null}',
    b'{"version":-1}', b'{"version":1e400}', b'{"version":NaN}', b'{"version":' + b"9" * 30 + b"}",
    b'{"version":' + b"9" * 5_000 + b"}", b'{"version":{}}', b'{"version":[1]}', b'{"version":1,"term":NaN}',
    b'{"version":1,"topic":"\\ud800"}', b'{"version":1,"topic":"\xed\xa0\x80"}', b'{"version":1',
    '{"version":1}'.encode("utf-16"), b"\xef\xbb\xbf{}",
)  # fmt: skip
"""Values that are no record of any topic."""


def damaged(value: bytes) -> Iterator[bytes]:
    """Yield a value with each of its fields wrong in every way, and without each of its fields."""
    body: Mapping[str, Any] = json.loads(value)
    for name in body:
        if name != "version":
            yield json.dumps({other: kept for other, kept in body.items() if other != name}).encode()
            for wrong in WRONG:
                yield json.dumps({**body, name: wrong}).encode(errors="surrogatepass")


def example(kind: type[Any]) -> Any:
    """Return a record of a class with a value in each field that needs one."""
    hints = get_type_hints(kind, include_extras=True)
    needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}
    return kind(**{name: _plain(hints[name]) for name in sorted(needed)})


def _plain(hint: Any) -> Any:
    base = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    plain: Mapping[Any, Callable[[], Any]] = {int: lambda: 0, str: lambda: "x", bool: lambda: False}
    return plain[base]() if base in plain else ()
