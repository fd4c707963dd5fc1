"""What the bench writes and how it takes batches apart."""

import json
import struct
from collections import deque
from functools import partial
from hashlib import sha256
from itertools import pairwise
from statistics import mean
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka import Message

from tests.support.mm2 import properties
from tests.support.systems import SYSTEMS
from tools.bench.arriving import gaps, longest_gap
from tools.bench.compare import sampled
from tools.bench.latency import by_slots
from tools.bench.limit import requests
from tools.bench.orders import Orders
from tools.bench.slot_path import measured
from tools.bench.throughput import key_of, left_of
from tools.bench.transforming import LEAST_CENTS, WAYS


def batch(base: int, records: int, payload: int = 100) -> bytes:
    """A header as a broker stores it, with room for records that nobody decodes."""
    after_length = (
        struct.pack(">iBIhi", 0, 2, 0, 0, records - 1) + bytes(30) + struct.pack(">i", records) + bytes(payload)
    )
    return struct.pack(">qi", base, len(after_length)) + after_length


def test_orders_are_json_of_about_470_bytes_and_always_the_same() -> None:
    orders = Orders.drawn()
    sizes = [len(orders.key(number)) + len(orders.value(number)) for number in range(0, 100_000, 97)]
    assert 460 <= mean(sizes) <= 480
    assert json.loads(orders.value(41))["order_id"] == "000000000041"
    assert Orders.drawn().value(12_345) == orders.value(12_345)


@pytest.mark.parametrize("records", [8, 31, 64, 1_000])
def test_records_left_by_compaction_are_the_keys_of_each_partition(records: int) -> None:
    partitions = 8
    keys = {(number % partitions, key_of(number, partitions)) for number in range(records)}
    assert left_of(records, partitions) == len(keys)


def test_longest_gap_includes_the_edges_and_ignores_what_is_outside() -> None:
    assert longest_gap([1.0, 2.0, 4.0, 5.0], 1.5, 5.5) == 2.0
    assert longest_gap([0.0, 9.0], 1.0, 4.0) == 3.0
    assert longest_gap([1.1, 1.2, 1.3], 1.0, 4.0) == pytest.approx(2.7)


def test_gap_ratio_is_the_longest_gap_over_the_longest_gap_before() -> None:
    longest = gaps([[1.0, 2.0, 3.0, 5.0], [1.0, 2.5, 3.0, 4.0]], 1.0, 3.0, 5.0)
    assert longest == {
        "longest_gap_before_ms": 1_500,
        "longest_gap_ms": 2_000,
        "longest_gap_over_before_ms": 500,
        "gap_ratio": 2 / 1.5,
    }


def test_requests_hold_every_batch_once_and_one_of_a_partition_at_most() -> None:
    batches = {partition: deque(batch(0, 1, 400_000) for _ in range(5)) for partition in range(8)}
    shares = requests("limit", batches)
    assert sum(frame.count(bytes(400_000)) for share in shares for frame in share) == 40
    assert all(len(frame) < 1_300_000 for share in shares for frame in share)
    assert all(len(share) >= 5 for share in shares)


@pytest.mark.parametrize("end", [0, 1, 899, 900, 901, 375_000])
def test_sample_places_cover_first_and_last_record_without_overlap(end: int) -> None:
    stretches = sampled(end)
    if not end:
        assert stretches == []
        return
    assert stretches[0][0] == 0
    assert stretches[-1][1] == end
    assert all(before[1] <= after[0] for before, after in pairwise(stretches))


def test_the_tuned_mm2_has_the_settings_of_the_comparison() -> None:
    file = properties("a:1", "b:2", "orders", SYSTEMS["mm2_tuned"].settings("lz4")).splitlines()
    assert "tasks.max = 4" in file
    assert "A.consumer.max.poll.records = 20000" in file
    assert "A.consumer.fetch.min.bytes = 1000000" in file
    assert "A.consumer.fetch.max.wait.ms = 100" in file
    assert "A.consumer.max.partition.fetch.bytes = 4000000" in file
    assert "B.producer.compression.type = lz4" in file
    assert "B.producer.batch.size = 524288" in file
    assert "B.producer.linger.ms = 50" in file
    assert "B.producer.buffer.memory = 134217728" in file
    assert "B.producer.max.request.size = 4000000" in file


def test_bench_systems_have_the_same_flow() -> None:
    files = [properties("a:1", "b:2", "orders", system.settings("lz4")).splitlines() for system in SYSTEMS.values()]
    plain = properties("a:1", "b:2", "orders", {}).splitlines()
    assert {"A->B.enabled = true", "A->B.topics = orders", "B->A.enabled = false"} < set(plain)
    assert all(set(plain) <= set(file) for file in files)
    assert SYSTEMS["mm2"].settings("lz4") == {}
    assert SYSTEMS["lockstep"].settings("lz4") == {"tasks.max": "2"}


def test_latency_is_measured_with_one_slot_and_with_two() -> None:
    settings = {system.name: system.settings("none") for system in by_slots(list(SYSTEMS.values()))}
    assert list(settings) == ["lockstep", "lockstep_two_slots", "mm2_tuned", "mm2"]
    assert settings["lockstep"]["tasks.max"] == "1"
    assert settings["lockstep_two_slots"]["tasks.max"] == "2"
    assert settings["mm2_tuned"] == SYSTEMS["mm2_tuned"].settings("none")
    assert by_slots([SYSTEMS["mm2"]]) == [SYSTEMS["mm2"]]


@pytest.mark.parametrize(
    ("payload", "records"), [("16k", 35), ("compacted_16k", 26), ("log_append_time_16k", 35), ("format_1_16k", 35)]
)
def test_slot_path_copies_every_batch_between_brokers_in_memory(payload: str, records: int) -> None:
    figures = measured(payload, 5, None)
    assert figures["sent"] == 4 * 5
    assert figures["records"] == records


@pytest.mark.parametrize(
    ("way", "kept", "name"), [("lockstep", 1.0, None), ("filtered", 0.5, None), ("masked", 0.5, "sha2")]
)
def test_way_says_what_is_left_of_an_order(way: str, kept: float, name: str | None) -> None:
    orders, made = Orders.drawn(), list[tuple[bytes, bytes]]()
    for number in range(0, 8_000):
        message = SimpleNamespace(
            key=partial(orders.key, number), value=partial(orders.value, number), headers=tuple, timestamp=tuple
        )
        content = WAYS[way].made(cast(Message, message))
        if content is not None:
            made.append((orders.value(number), content[1]))
    assert len(made) / 8_000 == pytest.approx(kept, abs=0.05)
    for before, after in made[:100]:
        order = json.loads(before)
        if name is not None:
            order["customer"]["name"] = sha256(order["customer"]["name"].encode()).hexdigest()
        assert json.loads(after) == order


def test_statements_ask_for_what_python_keeps() -> None:
    asked = [way.settings[key] for way in WAYS.values() for key in way.settings if key.endswith(".sql")]
    assert all(f"> {LEAST_CENTS}" in sql for sql in asked if "WHERE" in sql)
    assert sum("WHERE" in sql for sql in asked) == 3
