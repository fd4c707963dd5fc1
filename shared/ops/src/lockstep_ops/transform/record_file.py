"""Records in a file, one JSON object a line, for `lockstep transform try --records`."""

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from lockstep_ops.exit_codes import CannotUse
from lockstep_state.codecs.strict_json import parse_json
from lockstep_state.codecs.transform_trial import Header, TrialPartition, TrialRecord

_DECODER = json.JSONDecoder()
FIELDS = ("key", "value", "headers", "timestamp", "offset", "partition", "key_base64", "value_base64")


def read_record_file(path: Path, topic: str, limit: int) -> tuple[TrialPartition, ...]:
    """Return the first `limit` records of the file by their partitions.

    Raises:
        CannotUse: The file cannot be read, or a line is no record. The message names the line.
    """
    try:
        with path.open("rb") as lines:
            return partitions_of(path, topic, islice((line for line in lines if line.strip()), limit))
    except OSError as exc:
        raise CannotUse(f"{path} cannot be read: {exc.strerror}") from exc


def partitions_of(path: Path, topic: str, lines: Iterable[bytes]) -> tuple[TrialPartition, ...]:
    """Return records by their partitions. Without an offset a record follows the one before it in its partition.

    Raises:
        CannotUse: A line is no record, or an offset does not ascend.
    """
    records: dict[int, list[TrialRecord]] = {}
    for number, line in enumerate(lines, 1):
        try:
            body = parse_json(line)
        except ValueError as exc:
            raise CannotUse(f"{path}: record {number}: is no JSON: {exc}") from exc
        try:
            partition = _integer(body, "partition", 0)
            earlier = records.setdefault(partition, [])
            record = _record(body, line.decode(), earlier[-1].offset + 1 if earlier else 0)
        except ValueError as exc:
            raise CannotUse(f"{path}: record {number}: {exc}") from exc
        if earlier and record.offset <= earlier[-1].offset:
            raise CannotUse(f"{path}: record {number}: offset {record.offset} comes after {earlier[-1].offset}")
        earlier.append(record)
    return tuple(TrialPartition(topic, partition, tuple(added)) for partition, added in sorted(records.items()))


def _record(body: Any, line: str, offset: int) -> TrialRecord:
    """Return the record of a line, whose JSON is `body`. Raises ValueError with what is wrong."""
    if not isinstance(body, dict):
        raise ValueError('a line is an object, such as {"key": "k", "value": "text"}')
    if unknown := [name for name in body if name not in FIELDS]:
        raise ValueError(f"{unknown[0]!r} is none of {', '.join(FIELDS)}")
    texts = _member_texts(line)
    return TrialRecord(
        _integer(body, "offset", offset),
        _integer(body, "timestamp", -1, least=-1),
        _part(body, texts, "key"),
        _part(body, texts, "value"),
        tuple(_headers(body.get("headers") or {})),
    )


def _integer(body: Any, name: str, default: int, least: int = 0) -> int:
    number = body.get(name, default) if isinstance(body, dict) else default
    if type(number) is not int or not least <= number < 1 << 62:
        raise ValueError(f"{name} is no number from {least} on")
    return number


def _member_texts(line: str) -> dict[str, str]:
    """Return the members of a JSON object by name, each as it is written: a transform keeps numbers and spaces."""
    texts: dict[str, str] = {}
    position = _next(line, line.index("{") + 1)
    while line[position] != "}":
        name, end = _DECODER.raw_decode(line, position)
        start = _next(line, end)
        _, end = _DECODER.raw_decode(line, start)
        texts[name] = line[start:end]
        position = _next(line, end)
    return texts


def _next(line: str, position: int) -> int:
    """Return the position of what follows the spaces and separators here."""
    return len(line) - len(line[position:].lstrip(" \t\r\n:,"))


def _part(body: Mapping[str, Any], texts: Mapping[str, str], name: str) -> bytes | None:
    encoded = body.get(f"{name}_base64")
    if encoded is not None and name in body:
        raise ValueError(f"{name} and {name}_base64 exclude each other")
    if encoded is None:
        value = body.get(name)
        return _as_bytes(value) if value is None or isinstance(value, str) else texts[name].encode()
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError) as exc:
        raise ValueError(f"{name}_base64 is no base64") from exc


def _headers(headers: Any) -> Iterator[Header]:
    pairs = headers.items() if isinstance(headers, dict) else headers
    try:
        for name, value in pairs:
            yield str(name), _as_bytes(value)
    except TypeError as exc:
        raise ValueError('headers are {"NAME": "text"}, or [["NAME", "text"], ...]') from exc


def _as_bytes(value: Any) -> bytes | None:
    """Return a text as UTF-8, and any other value as the JSON that it is."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode()
