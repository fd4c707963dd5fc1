"""Copies are compared with their source by a running data plane: whole ones are equal, damage is found and located."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstep_state.rows.state_rows import Verification, VerifiedPartition
from tests.support.batch_bytes import batch_bytes, record
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, produce, produce_transaction, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.traffic import Traffic
from tests.support.wire import append_batch

WITHIN = 90.0


@pytest.fixture(scope="module")
def mirror(broker_a: Broker, broker_b: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    folder = tmp_path_factory.mktemp("verify")
    with Mirror.of_records(folder, "vfy", broker_a, broker_b, slots=1) as mirror:
        yield mirror


@pytest.fixture
def flow(mirror: Mirror) -> MirroredFlow:
    return mirror.flow


def lockstep(mirror: Mirror, *arguments: str) -> tuple[int, Any]:
    """The exit code of `lockstep verify ...`, and what it printed as JSON."""
    command = [sys.executable, "-m", "lockstep_cli", "verify", *arguments, "--output", "json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=False)
    return ended.returncode, json.loads(ended.stdout) if ended.stdout else ended.stderr


def copied(flow: MirroredFlow, records: int, **more: Any) -> str:
    """A topic of the flow that is copied whole."""
    topic = create_topic(flow.source, unique_name("vfy-orders"))
    produce(flow.source, topic, [Record(b"key-%d" % n, b"value-%d" % n) for n in range(records)], **more)
    flow.wait_copied(topic)
    flow.wait_written_down(topic)
    return topic


@pytest.mark.parametrize("depth", ["count", "crc", "bytes", "record"])
def test_verification_of_a_whole_copy_is_equal_at_each_depth(mirror: Mirror, flow: MirroredFlow, depth: str) -> None:
    topic = copied(flow, 2_000, codec="lz4")
    code, report = lockstep(mirror, str(mirror.config), "--topic", topic, "--depth", depth)
    assert (code, report["equal"], report["depth"]) == (0, True, depth)
    (line,) = report["topics"]
    assert (line["topic"], line["records"], line["behind"]) == (topic, 2_000, 0)
    assert flow.rows(Verification)[0].phase == "ended"


def test_verification_goes_on_from_what_is_verified(mirror: Mirror, flow: MirroredFlow) -> None:
    topic = copied(flow, 100)
    assert lockstep(mirror, str(mirror.config), "--topic", topic)[0] == 0
    produce(flow.source, topic, [Record(value=b"later-%d" % n) for n in range(50)])
    flow.wait_copied(topic)
    flow.wait_written_down(topic)
    code, report = lockstep(mirror, "report", str(mirror.config), "--topic", topic)
    assert (code, report["topics"][0]["behind"]) == (4, 50), "what was copied since is not verified yet"
    assert lockstep(mirror, str(mirror.config), "--topic", topic)[0] == 0
    (row,) = [row for row in flow.rows(VerifiedPartition) if row.topic == topic]
    assert (row.records, row.upstream) == (150, 149)


def test_foreign_record_in_the_copy_is_found_and_shown(mirror: Mirror, flow: MirroredFlow) -> None:
    topic = copied(flow, 100)
    produce(flow.target, flow.remote(topic), [Record(b"foreign", b"not from the source")])
    produce(flow.source, topic, [Record(b"last", b"record")])
    wait_until(lambda: len(flow.copy_of(topic)) == 102, within=WITHIN, what="the record behind is copied")
    wait_until(lambda: flow.progress(topic)[0].upstream == 100, within=WITHIN, what="its progress is written")
    code, report = lockstep(mirror, str(mirror.config), "--topic", topic)
    assert code == 1
    assert report["differences"] == [
        {"topic": topic, "partition": 0, "kind": "foreign", "source_offset": -1, "target_offset": 100}
    ]
    code, pair = lockstep(mirror, "show", str(mirror.config), f"{topic}-0", "100")
    assert (code, pair["target_offset"], pair["equal"]) == (0, 101, True)


def test_header_name_that_is_no_utf_8_is_refused_with_a_sentence(mirror: Mirror, flow: MirroredFlow) -> None:
    topic = create_topic(flow.source, unique_name("vfy-headers"))
    append_batch(flow.source, topic, batch_bytes([record(0, headers=[("\udcff", b"x")])]))
    wait_until(
        lambda: flow.progress(topic) and flow.progress(topic)[0].upstream == 0, within=WITHIN, what="it is copied"
    )
    code, report = lockstep(mirror, str(mirror.config), "--topic", topic)
    assert (code, report["equal"]) == (0, True)
    code, error = lockstep(mirror, "show", str(mirror.config), f"{topic}-0", "0")
    assert code == 2, error
    assert f"{topic}-0: a header of the record at offset 0 has a name that is no UTF-8" in error


def test_record_at_the_end_of_the_target_is_beyond_the_copy(mirror: Mirror, flow: MirroredFlow) -> None:
    topic = copied(flow, 100)
    assert lockstep(mirror, str(mirror.config), "--topic", topic)[0] == 0
    produce(flow.target, flow.remote(topic), [Record(b"key-%d" % n, b"value-%d" % n) for n in range(97, 100)])
    code, report = lockstep(mirror, str(mirror.config), "--topic", topic)
    assert (code, report["equal"], report["differences"]) == (1, False, [])
    assert report["beyond"] == [{"topic": topic, "partition": 0, "records": 3, "target_offset": 100}]


def test_verification_of_a_flow_that_runs_is_equal_to_its_ends(mirror: Mirror, flow: MirroredFlow) -> None:
    topic = copied(flow, 1_000)
    with Traffic(flow.source, topic, rate=200.0):
        flow.wait_for_more(topic)
        for _ in range(3):
            code, report = lockstep(mirror, str(mirror.config), "--topic", topic)
            assert (code, report["beyond"], report["topics"][0]["behind"]) == (0, [], 0), report


def test_transactions_of_the_source_leave_nothing_unverified(mirror: Mirror, flow: MirroredFlow) -> None:
    topic = create_topic(flow.source, unique_name("vfy-transactions"))
    for number in range(4):
        chunk = [Record(key=b"k", value=b"t%d-%d" % (number, i)) for i in range(20)]
        produce_transaction(flow.source, topic, chunk)
        produce(flow.source, topic, [Record(value=b"plain %d" % number)])
    flow.wait_copied(topic)
    flow.wait_written_down(topic)
    code, report = lockstep(mirror, str(mirror.config), "--topic", topic)
    assert (code, report["topics"][0]["records"]) == (0, 84), report


def test_verification_of_a_topic_that_is_not_mirrored_is_refused(mirror: Mirror) -> None:
    code, said = lockstep(mirror, str(mirror.config), "--topic", "nobody-has-it")
    assert code == 1
    assert "no topic that the flow mirrors is called nobody-has-it" in said


def test_verification_of_a_file_without_flows_is_unusable(tmp_path: Path) -> None:
    empty = tmp_path / "empty.properties"
    empty.write_text("clusters = A\nA.bootstrap.servers = 127.0.0.1:1\n")
    command = [sys.executable, "-m", "lockstep_cli", "verify", str(empty)]
    assert subprocess.run(command, capture_output=True, timeout=WITHIN, check=False).returncode == 2


@pytest.mark.long
def test_verification_under_kills_of_the_data_plane_ends_equal(mirror: Mirror, flow: MirroredFlow) -> None:
    """The slot that compares, its JVM and its driver end at any moment; the request stays, and is carried out."""
    topic = create_topic(flow.source, unique_name("vfy-kills"), partitions=4)
    records = [Record(b"k%d" % n, b"v" * 500 + b"%d" % n, partition=n % 4) for n in range(200_000)]
    produce(flow.source, topic, records, codec="lz4")
    flow.wait_copied(topic)
    flow.wait_written_down(topic)
    answer = flow.ask("verify", f"topic:{topic}", depth="record", max_bytes_per_s=5_000_000)
    assert answer.kind == "VerificationStarted", answer
    for strike in ("worker", "jvm", "driver"):
        wait_until(lambda: flow.rows(VerifiedPartition), within=WITHIN, what="something is compared")
        if strike == "worker":
            for worker in mirror.workers():
                worker.kill()
        elif strike == "jvm":
            mirror.jvm().kill()
        else:
            mirror.kill_data_plane()
        if not mirror.data_plane.running:
            mirror.data_plane.start()
    wait_until(lambda: flow.rows(Verification)[0].phase == "ended", within=WITHIN, what="the request is carried out")
    rows = [row for row in flow.rows(VerifiedPartition) if row.topic == topic]
    assert sum(row.records for row in rows) == 200_000
    assert not any(row.differences or row.not_verified for row in rows)
