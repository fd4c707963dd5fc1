"""A flow whose records a Python function filters and changes: through kills of its process and of the slot the target
has what a computation of this test's own leaves of the source, each record once and in order."""

import hashlib
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, produce, read_topic
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.services import COPY_ONLY
from tests.support.traffic import Traffic

MODULE = "lockstep_example_transforms"
TEXT = """
import hashlib
import hmac

import pyarrow as pa


def mask(table, secrets):
    salt = secrets["salt"].encode()
    rows = []
    for row in table.to_pylist():
        if row["value"] == b"bad":
            raise ValueError(f"no such value: {row['value']}")
        digest = hashlib.sha256(row["value"] or b"").digest()
        if row["value"] is not None and digest[0] % 3 == 0:
            continue
        value = None if row["value"] is None else hmac.digest(salt, row["value"], "sha256").hex().encode()
        rows.append({"offset": row["offset"], "value": value})
    return pa.Table.from_pylist(rows, schema=pa.schema([("offset", pa.int64()), ("value", pa.binary())]))


def restless(table):
    import os
    value = pa.array([str(os.getpid())] * table.num_rows, pa.string())
    return table.select(["offset"]).append_column("value", value)
"""
SALT = "no pepper"
WITHIN = 120.0

Start = Callable[..., Mirror]
Content = tuple[int | None, bytes | None, bytes | None, int | None, object]
"""Partition, key, value, timestamp and headers of a record."""


@pytest.fixture
def start(broker_a: Broker, broker_b: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    (tmp_path / f"{MODULE}.py").write_text(TEXT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv("EXAMPLE_SALT", SALT)
    running: list[Mirror] = []

    def started(function: str, *lines: str) -> Mirror:
        mark = f"py{uuid.uuid4().hex[:6]}"
        mirror = Mirror.one_flow(
            tmp_path,
            mark,
            (broker_a.bootstrap, broker_a.bootstrap),
            (broker_b.bootstrap, broker_b.bootstrap),
            "config.providers = env",
            "config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider",
            f"lockstep.transform.example.topics = {mark}-masked.*",
            f"lockstep.transform.example.python = {MODULE}:{function}",
            "lockstep.transform.example.salt = ${env:EXAMPLE_SALT}",
            *COPY_ONLY,
            *lines,
        )
        running.append(mirror)
        mirror.__enter__()
        return mirror

    yield started
    for mirror in running:
        mirror.__exit__(None, None, None)


def masked(records: list[Record]) -> list[Content]:
    """What should be left, computed without the code under test and without the function's own modules."""
    expected: list[Content] = []
    for each in records:
        value = each.value
        if value is not None:
            if hashlib.sha256(value).digest()[0] % 3 == 0:
                continue
            value = _hmac(SALT.encode(), value).hex().encode()
        expected.append((each.partition, each.key, value, each.timestamp_ms, each.headers))
    return expected


def _hmac(key: bytes, message: bytes) -> bytes:
    """RFC 2104, step by step."""
    padded = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in padded) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in padded) + inner).digest()


def copied(flow: MirroredFlow, topic: str) -> list[Content]:
    return [(r.partition, r.key, r.value, r.timestamp_ms, r.headers) for r in flow.copy_of(topic)]


def wait_masked(flow: MirroredFlow, topic: str) -> None:
    expected = masked(read_topic(flow.source, topic))

    def equal() -> bool:
        assert by_partition(copied(flow, topic)) == by_partition(expected)
        return True

    wait_until(equal, within=WITHIN, every=0.5, what=f"{topic} is copied as the function leaves it")


def by_partition(
    records: list[Content],
) -> dict[object, list[object]]:
    parts: dict[object, list[object]] = {}
    for partition, *rest in records:
        parts.setdefault(partition, []).append(rest)
    return parts


def function_processes(mirror: Mirror) -> list[psutil.Process]:
    processes = []
    for worker in mirror.workers():
        with suppress(psutil.NoSuchProcess):
            processes += [
                child for child in worker.children() if any("python_child" in part for part in child.cmdline())
            ]
    return processes


@pytest.mark.long
@pytest.mark.timeout(600)
def test_records_are_masked_and_filtered_through_kills(start: Start) -> None:
    mirror = start("mask")
    flow = mirror.flow
    topic = create_topic(flow.source, f"{flow.flow.source[1:]}-masked", partitions=3)
    plain = create_topic(flow.source, f"{flow.flow.source[1:]}-plain")
    odd = [
        Record(b"k", None, headers=(("a", b"1"), ("a", None)), partition=0),
        Record(None, b"", partition=1),
        Record(b"\xff", bytes(range(256)), headers=(("schl\u00fcssel", b"\xff"),), partition=2),
    ]
    produce(flow.source, topic, odd, codec="zstd")
    with Traffic(flow.source, topic, partitions=3, rate=400) as traffic:
        flow.wait_mirrored(topic, partitions=3, within=WITHIN)
        flow.wait_for_more(topic, 200, within=WITHIN)
        for _ in range(3):
            killed = wait_until(
                lambda: function_processes(mirror), within=WITHIN, every=0.1, what="a function's process"
            )
            for process in killed:
                process.kill()
            traffic.wait_for_more(200)
            flow.wait_for_more(topic, 200, within=WITHIN)
        mirror.kill_while_copying(traffic, topic, within=WITHIN)
        produce(flow.source, plain, [Record(b"k", b"%d" % n) for n in range(200)])
    wait_masked(flow, topic)
    assert len(flow.wait_copied(plain)) == 200
    rows = flow.progress(topic)
    assert {row.transform for row in rows.values()} not in ({""}, set())
    assert not any(SALT in line for line in mirror.data_plane.log.read_text(errors="replace").splitlines())


def test_a_record_that_fails_halts_its_partition_without_its_value(start: Start) -> None:
    mirror = start("mask")
    flow = mirror.flow
    topic = create_topic(flow.source, f"{flow.flow.source[1:]}-masked", partitions=2)
    good = [Record(b"k", b"%d" % n, partition=n % 2) for n in range(40)]
    produce(flow.source, topic, [*good, Record(b"k", b"bad", partition=1), *good])
    halted = flow.wait_event("PartitionHalted", within=WITHIN)
    said = str(halted.to_json() if hasattr(halted, "to_json") else halted)
    assert "ValueError" in said
    assert f"{MODULE}:mask" in said
    assert "b'bad'" not in said
    source = read_topic(flow.source, topic)
    expected = by_partition(masked([r for r in source if r.value != b"bad"]))
    left = len(masked([r for r in source if r.partition == 1 and (r.offset or 0) < 20]))
    expected[1] = expected[1][:left]
    wait_until(
        lambda: by_partition(copied(flow, topic)) == expected, within=WITHIN, what="all but what waits is copied"
    )
    assert "no such value" not in mirror.data_plane.log.read_text(errors="replace")


def is_halted(flow: MirroredFlow) -> bool:
    return bool(flow.events("PartitionHalted"))


def wait_halted_or_copied(flow: MirroredFlow, topic: str, kill: Callable[[], object]) -> None:
    """Wait after a kill until the partition is halted, or 400 records further on."""
    wanted = flow.progress(topic)[0].upstream + 400
    kill()
    wait_until(lambda: is_halted(flow) or flow.progress(topic)[0].upstream > wanted, within=WITHIN, every=0.5)


@pytest.mark.long
def test_a_function_that_is_not_deterministic_ends_in_doubt(start: Start) -> None:
    mirror = start("restless")
    flow = mirror.flow
    topic = create_topic(flow.source, f"{flow.flow.source[1:]}-masked")
    with Traffic(flow.source, topic, rate=400) as traffic:
        flow.wait_for_more(topic, 200, within=WITHIN)
        for _ in range(3):  # nearly always its last records are behind the row
            wait_halted_or_copied(flow, topic, mirror.copying_worker(within=WITHIN).kill)
            if is_halted(flow):
                break
            traffic.wait_for_more(400)
    halted = flow.wait_event("PartitionHalted", within=WITHIN)
    assert "in-doubt" in str(halted)
