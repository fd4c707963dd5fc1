"""Copies of every kind are verified: rebuilt ones, those with records left out, and those that go both ways."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lockstep_state.rows.state_rows import VerifiedPartition
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, delete_records, produce, produce_transaction, unique_name
from tests.support.compaction import compacted_topic
from tests.support.eventually import wait_until
from tests.support.metrics import read_page
from tests.support.mirror import Mirror, MirroredFlow

pytestmark = pytest.mark.long

WITHIN = 120.0
MARK = "committed"


@pytest.fixture(scope="module")
def growing(broker_a: Broker, broker_b: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    """A mirror whose copies are verified as they grow."""
    lines = ("lockstep.verify.enabled = true", f"s{MARK}->t{MARK}.consumer.isolation.level = read_committed")
    with Mirror.of_records(tmp_path_factory.mktemp("growing"), MARK, broker_a, broker_b, *lines) as mirror:
        yield mirror


@pytest.fixture
def committed(growing: Mirror) -> MirroredFlow:
    return growing.flow


def verify(mirror: Mirror, flow: MirroredFlow, topic: str, *more: str) -> tuple[int, Any]:
    """The exit code, and what was printed as JSON."""
    command = [sys.executable, "-m", "lockstep_cli", "verify", "run", str(mirror.config), "--flow", str(flow)]
    command += ["--topic", topic, "--output", "json", *more]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=False)
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


def test_copies_of_both_directions_are_equal_by_origin(
    mirror: Mirror, same_names: tuple[MirroredFlow, MirroredFlow], topic_name: str
) -> None:
    onward, backward = same_names
    topic = f"same-{topic_name}"
    create_topic(onward.source, topic)
    onward.wait_mirrored(topic, partitions=1)
    for number in range(5):
        produce(onward.source, topic, [Record(b"k%d" % n, b"here %d-%d" % (number, n)) for n in range(20)])
        produce(backward.source, topic, [Record(b"k%d" % n, b"there %d-%d" % (number, n)) for n in range(30)])
        produce_transaction(backward.source, topic, [Record(b"k", b"together %d-%d" % (number, n)) for n in range(4)])
    for flow in same_names:
        flow.wait_written_down(topic)
    for flow, records in ((onward, 100), (backward, 170)):
        code, report = verify(mirror, flow, topic)
        assert (report["not_verified"], report["waiting"], report["differences"]) == ([], {}, [])
        assert (code, report["topics"][0]["records"], report["topics"][0]["behind"]) == (0, records, 0)


def test_copy_of_a_compacted_topic_is_equal_by_record(mirror: Mirror, there: MirroredFlow) -> None:
    """Its batches have gaps, so that each was rebuilt."""
    topic = unique_name("there-compacted")
    remaining = compacted_topic(there.source, topic)
    there.wait_written_down(topic)
    code, report = verify(mirror, there, topic)
    (line,) = report["topics"]
    assert (code, line["differ"], line["missing"], line["extra"]) == (0, 0, 0, 0), json.dumps(report)
    assert line["records"] >= len(remaining)


def test_quarantined_records_are_named_and_not_verified(mirror: Mirror, there: MirroredFlow) -> None:
    topic = unique_name("there-quarantine")
    create_topic(there.target, there.remote(topic), configs={"cleanup.policy": "compact"})
    create_topic(there.source, topic)
    keyed = [Record(key=b"%d" % n, value=b"%d" % n) for n in range(10)]
    produce(there.source, topic, [*keyed[:5], Record(key=None, value=b"no key"), *keyed[5:]])
    there.wait_written_down(topic)
    code, report = verify(mirror, there, topic)
    assert (code, report["topics"][0]["records"], report["differences"]) == (4, 10, [])
    assert report["not_verified"] == [
        {"topic": topic, "partition": 0, "reason": "passed-over", "first": 5, "last": 5, "records": 1}
    ]


def test_timestamps_that_the_target_sets_are_not_verified(mirror: Mirror, there: MirroredFlow) -> None:
    topic = unique_name("there-stamped")
    create_topic(there.target, there.remote(topic), configs={"message.timestamp.type": "LogAppendTime"})
    create_topic(there.source, topic)
    produce(there.source, topic, [Record(b"k", b"%d" % n, timestamp_ms=1_700_000_000_000) for n in range(20)])
    there.wait_written_down(topic)
    code, report = verify(mirror, there, topic)
    assert (code, report["topics"][0]["records"], report["differences"]) == (4, 20, [])
    assert [(part["reason"], part["records"]) for part in report["not_verified"]] == [("target-timestamps", 20)]


def test_records_that_one_log_has_removed_are_not_verified(mirror: Mirror, there: MirroredFlow) -> None:
    topic = unique_name("there-removed")
    create_topic(there.source, topic)
    produce(there.source, topic, [Record(b"k", b"%d" % n) for n in range(30)])
    there.wait_written_down(topic)
    delete_records(there.source, topic, before=10)
    code, report = verify(mirror, there, topic)
    assert (code, report["topics"][0]["records"], report["differences"]) == (4, 20, [])
    assert [(part["reason"], part["first"], part["last"]) for part in report["not_verified"]] == [
        ("removed-on-source", 0, 9)
    ]
    delete_records(there.target, there.remote(topic), before=15)
    code, report = verify(mirror, there, topic, "--again")
    assert [(part["reason"], part["first"], part["last"]) for part in report["not_verified"]] == [
        ("removed-on-target", 10, 14)
    ]


def test_copy_of_a_paused_topic_is_verified_to_where_it_is(mirror: Mirror, there: MirroredFlow) -> None:
    topic = unique_name("there-paused")
    create_topic(there.source, topic)
    produce(there.source, topic, [Record(value=b"%d" % n) for n in range(10)])
    there.wait_written_down(topic)
    there.ask("pause", f"topic:{topic}")
    wait_until(lambda: there.progress(topic)[0].phase == "paused", within=WITHIN, what="it is paused")
    produce(there.source, topic, [Record(value=b"later %d" % n) for n in range(5)])
    code, report = verify(mirror, there, topic)
    assert (code, report["topics"][0]["records"], report["topics"][0]["behind"]) == (4, 10, 5)
    there.ask("resume", f"topic:{topic}")
    code, report = verify(mirror, there, topic)
    assert (code, report["topics"][0]["records"]) == (0, 15), "it waits for the copy"


def test_flow_that_is_verified_as_it_grows_has_no_lag(
    growing: Mirror, committed: MirroredFlow, topic_name: str
) -> None:
    """`lockstep.verify.enabled`, under read_committed: an aborted transaction is no difference."""
    topic = f"committed-{topic_name}"
    create_topic(committed.source, topic)
    for number in range(3):
        produce(committed.source, topic, [Record(value=b"plain %d-%d" % (number, n)) for n in range(10)])
        produce_transaction(committed.source, topic, [Record(value=b"in %d" % number)] * 5)
        produce_transaction(committed.source, topic, [Record(value=b"out %d" % number)] * 5, commit=False)
    committed.wait_written_down(topic)

    def verified() -> VerifiedPartition | None:
        rows = [row for row in committed.rows(VerifiedPartition) if row.topic == topic]
        return rows[0] if rows and rows[0].upstream >= committed.progress(topic)[0].upstream else None

    row = wait_until(verified, within=WITHIN, what="all is verified")
    assert (row.records, row.differences, row.not_verified, row.reason) == (45, (), (), "")
    shown = {"lockstep_verified_lag_seconds", "lockstep_verify_differences", "lockstep_not_verified_records"}
    wait_until(
        lambda: shown <= read_page(growing.data_plane.page("/metrics")[1]).keys(),
        within=WITHIN,
        what="the metrics of verification are shown",
    )


def test_following_ends_with_a_report_at_an_interrupt(growing: Mirror, committed: MirroredFlow, tmp_path: Path) -> None:
    topic = unique_name("committed-follow")
    create_topic(committed.source, topic)
    produce(committed.source, topic, [Record(value=b"%d" % n) for n in range(10)])
    committed.wait_written_down(topic)
    command = [
        sys.executable,
        "-m",
        "lockstep_cli",
        "verify",
        str(growing.config),
        "--follow",
        "--flow",
        str(committed),
    ]
    command += ["--topic", topic]
    shown = tmp_path / "shown.txt"
    with shown.open("w") as output:
        following = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            wait_until(lambda: is_verified(committed, topic), within=WITHIN, what="all is verified")
            produce(committed.target, committed.remote(topic), [Record(value=b"foreign")])
            produce(committed.source, topic, [Record(value=b"last")])
            line = f"{topic}-0  foreign  target 10\n"
            wait_until(lambda: line in shown.read_text(), within=WITHIN, what="the difference is shown")
            following.send_signal(signal.SIGINT)
            assert following.wait(WITHIN) == 1
        finally:
            following.kill()
    assert f"{committed}: 1 difference in 11 records" in shown.read_text()


def is_verified(flow: MirroredFlow, topic: str) -> bool:
    progress = flow.progress(topic)[0]
    return any(row.topic == topic and row.upstream >= progress.upstream for row in flow.rows(VerifiedPartition))
