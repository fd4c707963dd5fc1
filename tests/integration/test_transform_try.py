"""`lockstep transform try` on topics of a real cluster: right before and after, and nothing is written anywhere."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from lockstep_config import load
from lockstep_ops.transform.source_records import read_source_records
from lockstep_state.names import Flow
from tests.support.batch_bytes import batch_bytes, record
from tests.support.broker import Broker
from tests.support.clusters import (
    Record,
    create_topic,
    end_offsets,
    group_names,
    produce,
    produce_transaction,
    topic_names,
)
from tests.support.command_line import lockstep
from tests.support.services import two_cluster_file
from tests.support.wire import append_batch

OF_CONSUMERS = {"__consumer_offsets"}
"""The cluster's own topic, which it creates when the first consumer asks."""

STATEMENT = (
    "SELECT json_mask(value, '$.name', 'truncate(1)') AS value FROM records WHERE json_int(value, '$.n') % 2 = 0"
)


@pytest.fixture
def file(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> Path:
    return two_cluster_file(
        tmp_path,
        ("A", broker_a.bootstrap),
        ("B", broker_b.bootstrap),
        "A->B.enabled = true",
        "lockstep.transform.pii.topics = .*",
        f"lockstep.transform.pii.sql = {STATEMENT}",
    )


def value(n: int) -> bytes:
    return b'{"n":%d, "name" : "Erika %d"}' % (n, n)


def tried(file: Path, topic: str, *options: object) -> dict[str, Any]:
    result = lockstep("transform", "try", file, "--topic", topic, "--values", "--output", "json", *options)
    assert result.exit_code == 0, (result.output, result.exception)
    body: dict[str, Any] = json.loads(result.stdout)
    return body


def values_after(body: dict[str, Any]) -> dict[tuple[int, int], bytes | None]:
    return {
        (each["partition"], each["offset"]): base64.b64decode(each["after"]["value"]["base64"])
        for each in body["records"]
        if each["after"] is not None
    }


def test_records_before_and_after_and_nothing_is_written(
    file: Path, broker_a: Broker, broker_b: Broker, topic_name: str
) -> None:
    create_topic(broker_a.bootstrap, topic_name, partitions=3)
    produce(
        broker_a.bootstrap,
        topic_name,
        [
            Record(
                key=b"k", value=value(n), partition=n % 3, timestamp_ms=1_700_000_000_000 + n, headers=(("h", b"x"),)
            )
            for n in range(300)
        ],
        codec="lz4",
    )

    def present() -> list[object]:
        names = [
            (topic_names(address) - OF_CONSUMERS, group_names(address))
            for address in (broker_a.bootstrap, broker_b.bootstrap)
        ]
        return [*names, end_offsets(broker_a.bootstrap, topic_name)]

    before = present()
    settings = load(file, {}).flow(Flow("A", "B"))
    first = tried(file, topic_name, "--limit", 300)
    assert first["counts"] == {"changed": 150, "unchanged": 0, "dropped": 150, "failed": 0}
    expected = {(n % 3, n // 3): value(n).replace(b"Erika %d" % n, b"E") for n in range(300) if n % 2 == 0}
    assert values_after(first) == expected

    last = read_source_records(settings, topic_name, 7, from_end=True, silent_s=30)
    times = [record.timestamp - 1_700_000_000_000 for partition in last for record in partition.records]
    assert sorted(times) == list(range(293, 300))
    few = read_source_records(settings, topic_name, 5, from_end=False, silent_s=30)
    assert sum(len(partition.records) for partition in few) == 5

    assert present() == before


def test_a_topic_that_does_not_exist_is_not_created(file: Path, broker_a: Broker, topic_name: str) -> None:
    result = lockstep("transform", "try", file, "--topic", topic_name)
    assert result.exit_code == 2
    assert f"cluster A has no topic {topic_name}" in result.stderr
    assert topic_name not in topic_names(broker_a.bootstrap)


def test_gaps_and_an_empty_topic(file: Path, broker_a: Broker, topic_name: str) -> None:
    create_topic(broker_a.bootstrap, topic_name, partitions=2)
    result = lockstep("transform", "try", file, "--topic", topic_name)
    assert result.exit_code == 4
    assert f"0 records of {topic_name}" in result.stdout
    for n in range(4):
        produce_transaction(broker_a.bootstrap, topic_name, [Record(value=value(n), partition=0)], commit=n != 1)
    body = tried(file, topic_name)
    assert [each["offset"] for each in body["records"]] == [0, 2, 4, 6]
    assert set(values_after(body)) == {(0, 0), (0, 4)}


def test_a_header_whose_name_is_no_utf_8_is_named(file: Path, broker_a: Broker, topic_name: str) -> None:
    create_topic(broker_a.bootstrap, topic_name)
    append_batch(broker_a.bootstrap, topic_name, batch_bytes([record(0, b'{"n":2}', headers=[("\udcff", b"x")])]))
    result = lockstep("transform", "try", file, "--topic", topic_name)
    assert result.exit_code == 2
    assert f"{topic_name}-0: a header of the record at offset 0 has a name that is no UTF-8" in result.stderr


def test_a_source_that_is_away_is_no_answer(tmp_path: Path, broker_b: Broker) -> None:
    lines = ["A->B.enabled = true", "lockstep.transform.pii.topics = .*", f"lockstep.transform.pii.sql = {STATEMENT}"]
    file = two_cluster_file(tmp_path, ("A", "127.0.0.1:1"), ("B", broker_b.bootstrap), *lines)
    result = lockstep("transform", "try", file, "--topic", "orders", "--timeout", 1)
    assert result.exit_code == 3, result.output
    assert "A" in result.stderr


FUNCTION = """
import pyarrow as pa
import pyarrow.compute as pc


def halved(table):
    if b"bad" in table["value"].to_pylist():
        raise ValueError("a value that nobody may see")
    even = table.filter(pc.equal(pc.bit_wise_and(table["offset"], 1), 0))
    return pa.table({"offset": even["offset"], "value": pc.binary_join_element_wise(even["value"], b"!", b"")})


def returns_nothing(table):
    return None
"""


@pytest.fixture
def functions(tmp_path: Path, broker_a: Broker, broker_b: Broker, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lockstep_tried.py").write_text(FUNCTION)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    begin = "lockstep.transform"
    return two_cluster_file(
        tmp_path,
        ("A", broker_a.bootstrap),
        ("B", broker_b.bootstrap),
        "A->B.enabled = true",
        f"{begin}.half.topics = half.*",
        f"{begin}.half.python = lockstep_tried:halved",
        f"{begin}.nothing.topics = nothing.*",
        f"{begin}.nothing.python = lockstep_tried:returns_nothing",
        f"{begin}.gone.topics = gone.*",
        f"{begin}.gone.python = lockstep_nowhere:mask",
    )


def test_functions_in_python_are_tried_and_checked(functions: Path, broker_a: Broker, topic_name: str) -> None:
    topic = create_topic(broker_a.bootstrap, f"half-{topic_name}")
    produce(broker_a.bootstrap, topic, [Record(value=b"bad" if n == 4 else b"%d" % n) for n in range(7)])
    result = lockstep("transform", "try", functions, "--topic", topic, "--values", "--output", "json")
    assert result.exit_code == 1, (result.output, result.exception)
    body = json.loads(result.stdout)
    assert body["counts"] == {"changed": 3, "unchanged": 0, "dropped": 3, "failed": 1}
    assert values_after(body) == {(0, n): b"%d!" % n for n in (0, 2, 6)}
    (failed,) = (each for each in body["records"] if each["state"] == "failed")
    assert (failed["offset"], failed["condition"]) == (4, "ValueError")
    assert "halved (lockstep_tried.py, line 8)" in failed["fragment"]
    assert "nobody may see" not in result.output
    checked = lockstep("transform", "check", functions, "--output", "json")
    assert checked.exit_code == 1, (checked.output, checked.exception)
    transforms = {each["name"]: each for each in json.loads(checked.stdout)["transforms"]}
    assert (transforms["half"]["mistakes"], transforms["half"]["version"]) == ([], body["version"])
    assert transforms["half"]["cost"]["records_per_s"] > 0
    codes = {name: [each["code"] for each in transforms[name]["mistakes"]] for name in ("gone", "nothing")}
    assert codes == {"gone": ["FUNCTION_NOT_IMPORTED"], "nothing": ["NO_TABLE"]}
