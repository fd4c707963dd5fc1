"""The log of a target is damaged on its disk in every way, and verification locates each damage."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lockstep_data_plane.record_batch.layout import Batch, scan
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import read_records
from tests.support.batch_bytes import batch_bytes
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, produce, unique_name
from tests.support.mirror import Mirror

WITHIN = 120.0
COUNT, BATCH = 60, 10

Found = tuple[str, int, int]
Damage = Callable[[list[Batch]], bytes]


def stored(content: Sequence[PlainRecord], batch: Batch, shift: int = 0, **more: Any) -> bytes:
    """The batch with other records, as our producer would have appended it, so many offsets later."""
    moved = [record._replace(offset=record.offset + shift) for record in content]
    header = {
        "base_offset": batch.base_offset + shift,
        "last_offset": batch.last_offset + shift,
        "producer": (batch.producer_id, batch.producer_epoch, batch.base_sequence),
        "leader_epoch": batch.leader_epoch,
    }
    return batch_bytes(moved, **{**header, **more})


def changed(at: int, **parts: Any) -> Damage:
    """One record has other parts."""

    def damage(batches: list[Batch]) -> bytes:
        whole = b""
        for batch in batches:
            content = [record._replace(**parts) if record.offset == at else record for record in read_records(batch)]
            whole += stored(content, batch)
        return whole

    return damage


def exchanged(batches: list[Batch]) -> bytes:
    """Two records are in each other's place."""
    whole = b""
    for batch in batches:
        content = list(read_records(batch))
        places = {record.offset: index for index, record in enumerate(content)}
        if 25 in places:
            i, j = places[25], places[26]
            content[i], content[j] = content[j]._replace(offset=25), content[i]._replace(offset=26)
        whole += stored(content, batch)
    return whole


def lost(batches: list[Batch]) -> bytes:
    """A record is not there, and its offset is not used."""
    return b"".join(stored([r for r in read_records(batch) if r.offset != 25], batch) for batch in batches)


def added(batches: list[Batch], *, at: int, **more: Any) -> bytes:
    """A record stands in front of a batch, and all behind it have later offsets."""
    whole, shift = b"", 0
    for batch in batches:
        if batch.base_offset == at:
            strange = PlainRecord(at, 1_700_000_000_000, b"k", b"nobody wrote this to the source", ())
            whole += stored([strange], batch, base_offset=at, last_offset=at, **more)
            shift = 1
        whole += stored(list(read_records(batch)), batch, shift)
    return whole


def extra(batches: list[Batch]) -> bytes:
    return added(batches, at=20)


def foreign(batches: list[Batch]) -> bytes:
    return added(batches, at=30, producer=(-1, -1, -1))


def flipped(batches: list[Batch]) -> bytes:
    """A byte of a batch is another one, as a disk would have it: the CRC does not fit."""
    whole = bytearray(b"".join(bytes(batch.data) for batch in batches))
    at = sum(len(batch.data) for batch in batches[:2])
    whole[at + 100] ^= 0xFF
    return bytes(whole)


def truncated(batches: list[Batch]) -> bytes:
    """The target has lost what it acknowledged last."""
    return b"".join(bytes(batch.data) for batch in batches[:-1])


BEHIND = ("missing", 59, -1)
"""The last record has the offset behind the end of the copy, to which the target is compared."""

DAMAGES: dict[str, tuple[Damage, list[Found]]] = {
    "value": (changed(25, value=b"ordeR 25"), [("value", 25, 25)]),
    "key": (changed(25, key=None), [("key", 25, 25)]),
    "timestamp": (changed(25, timestamp=1_600_000_000_000), [("timestamp", 25, 25)]),
    "headers": (changed(25, headers=(("a", b"25"),)), [("headers", 25, 25)]),
    "header-order": (changed(25, headers=(("b", b"x"), ("a", b"25"))), [("header-order", 25, 25)]),
    "exchanged": (exchanged, [("order", 26, 25), ("order", 25, 26)]),
    "missing": (lost, [("missing", 25, -1)]),
    "extra": (extra, [("offset", 20, 21), ("extra", -1, 20), BEHIND]),
    "foreign": (foreign, [("foreign", -1, 30), ("offset", 30, 31), BEHIND]),
    "flipped": (flipped, [("unreadable", -1, 20)]),
    "truncated": (truncated, [("missing", at, -1) for at in range(50, 60)]),
    "whole": (lambda batches: b"".join(bytes(batch.data) for batch in batches), []),
}


def orders() -> list[Record]:
    return [
        Record(b"k%d" % n, b"order %d" % n, headers=(("a", b"%d" % n), ("b", b"x")), timestamp_ms=1_700_000_000_000 + n)
        for n in range(COUNT)
    ]


def damage_log(folder: Path, damage: Damage) -> None:
    """Write the only segment of a partition anew. A broker makes the indexes again that it does not find, and cuts the
    log at a wrong CRC then."""
    (segment,) = folder.glob("*.log")
    segment.write_bytes(damage(list(scan(segment.read_bytes()))))
    if damage is flipped:
        return
    for index in (*folder.glob("*.index"), *folder.glob("*.timeindex")):
        index.unlink()


def lockstep(*arguments: str) -> tuple[int, Any]:
    """The exit code of `lockstep verify ...`, and what it printed as JSON."""
    command = [sys.executable, "-m", "lockstep_cli", "verify", *arguments, "--output", "json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=False)
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


@pytest.fixture(scope="module")
def verified(
    broker_a: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Mirror, dict[str, str], Any]]:
    """A mirror whose copies are damaged while it is stopped, the topic of each damage, and what was found."""
    folder = tmp_path_factory.mktemp("damage")
    with Broker("damaged") as target, Mirror.of_records(folder, "dmg", broker_a, target, slots=1) as mirror:
        flow = mirror.flow
        topics = {name: create_topic(flow.source, unique_name(f"dmg-{name}")) for name in DAMAGES}
        for at in range(0, COUNT, BATCH):
            for topic in topics.values():
                produce(flow.source, topic, orders()[at : at + BATCH])
            for topic in topics.values():
                flow.wait_copied(topic)  # or batches that wait would be merged
        for topic in topics.values():
            flow.wait_written_down(topic)
        assert flow.ask("stop", "flow").kind
        target.stop()
        for name, topic in topics.items():
            damage_log(target.folder / "data" / f"{flow.remote(topic)}-0", DAMAGES[name][0])
        target.start()
        yield mirror, topics, lockstep(str(mirror.config), "--topic", "dmg-.*")


@pytest.mark.long
@pytest.mark.parametrize("name", DAMAGES)
def test_damage_on_the_disk_of_the_target_is_located(verified: tuple[Mirror, dict[str, str], Any], name: str) -> None:
    _, topics, (code, report) = verified
    assert code == 1
    listed = [
        (d["kind"], d["source_offset"], d["target_offset"]) for d in report["differences"] if d["topic"] == topics[name]
    ]
    assert listed == DAMAGES[name][1]
    (line,) = [line for line in report["topics"] if line["topic"] == topics[name]]
    assert line["behind"] == 0
    lacking = sum(kind == "missing" for kind, _, _ in listed)
    left_out = 10 if name == "flipped" else 0
    assert line["not_verified"] == left_out
    assert line["records"] == COUNT - lacking - left_out - (2 if name == "exchanged" else 0)


@pytest.mark.long
def test_both_records_of_a_damage_are_shown(verified: tuple[Mirror, dict[str, str], Any]) -> None:
    mirror, topics, _ = verified
    code, pair = lockstep("show", str(mirror.config), f"{topics['value']}-0", "25")
    assert (code, pair["equal"], pair["target_offset"]) == (1, False, 25)
    assert pair["source"]["key"] == pair["target"]["key"]
    assert pair["source"]["value"]["sha256"] != pair["target"]["value"]["sha256"]
    assert "base64" not in pair["source"]["value"], "contents are masked"
    code, shown = lockstep("show", str(mirror.config), f"{topics['foreign']}-0", "30", "--target", "--values")
    assert (code, shown["source_offset"]) == (1, 30)


@pytest.mark.long
def test_report_needs_no_data_plane(verified: tuple[Mirror, dict[str, str], Any]) -> None:
    mirror, topics, (_, report) = verified
    mirror.kill_data_plane()
    code, shown = lockstep("report", str(mirror.config), "--topic", topics["value"])
    assert code == 1
    assert shown["differences"] == [d for d in report["differences"] if d["topic"] == topics["value"]]
