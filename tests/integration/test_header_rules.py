"""Records are filtered and headers changed on brokers: under kills, in transactions, and when the rules change.

What should be on the target is computed here from the source's records, without the code of the rules."""

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lockstep_rules.offsets.offset_runs import RunMap
from lockstep_state.offsets import UpstreamOffset
from lockstep_state.rows.state_rows import OffsetRuns
from tests.conftest import Pair
from tests.integration.test_verify import lockstep as verify
from tests.integration.transactional import transactional
from tests.support.clusters import Record, create_topic, end_offsets, produce, read_topic, unique_name
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow

pytestmark = pytest.mark.timeout(600)

WITHIN = 120.0

ODD, DEBUG, VIA = "odd", "x-debug-a", ("via", b"A")
HEADERS = "drop x-debug-* ; add via=A"

Wanted = Callable[[Record], Record | None]


def changed(record: Record) -> Record:
    """What `HEADERS` makes of a record."""
    headers = tuple(header for header in record.headers if not header[0].startswith("x-debug-"))
    return Record(record.key, record.value, (*headers, VIA), record.timestamp_ms, record.partition, record.offset)


def without_odd(record: Record) -> Record | None:
    return None if any(name == ODD for name, _ in record.headers) else changed(record)


FILTERS: dict[str, tuple[str, Wanted]] = {
    "none": ("header never", changed),
    "every second": (f"header {ODD}", without_odd),
    "all": (f"header {ODD} ; not header {ODD}", lambda record: None),
}


def numbered(first: int, count: int) -> list[Record]:
    """Numbered records, of which every second one has the header `odd`, every third one `x-debug-a`, a few no value."""
    return [
        Record(
            b"key-%d" % (number % 7),
            None if number % 11 == 0 else b"value-%d" % number,
            tuple(
                (name, b"%d" % number) for name, divisor in ((DEBUG, 3), (ODD, 2), ("own", 1)) if number % divisor == 0
            ),
            partition=number // 2 % 2,
        )
        for number in range(first, first + count)
    ]


@contextmanager
def writing(flow: MirroredFlow, topic: str, first: int = 0) -> Iterator[list[int]]:
    """Write numbered records until it is left. The list has the number of the next one."""
    stopping, sent, dice = threading.Event(), [first], random.Random(first)

    def write() -> None:
        while not stopping.is_set():
            count = dice.randint(1, 60)
            produce(flow.source, topic, numbered(sent[0], count), codec="lz4")
            sent[0] += count
            stopping.wait(0.05)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield sent
    finally:
        stopping.set()
        thread.join(30)


def contents(records: Sequence[Record]) -> dict[int, list[tuple[Any, ...]]]:
    """What is to be equal of records, by partition and in order."""
    by_partition: dict[int, list[tuple[Any, ...]]] = {0: [], 1: []}
    for record in records:
        by_partition[record.partition or 0].append(record.same_as())
    return by_partition


def wanted_of(flow: MirroredFlow, topic: str, rule: Wanted) -> dict[int, list[tuple[Any, ...]]]:
    source = read_topic(flow.source, topic)
    return contents([left for record in source if (left := rule(record)) is not None])


def wait_as_wanted(flow: MirroredFlow, topic: str, rule: Wanted) -> None:
    """Wait until all of the source is decided, and require each wanted record once, in order, and no other."""
    flow.wait_written_down(topic, within=WITHIN)
    assert contents(flow.copy_of(topic)) == wanted_of(flow, topic, rule)


def ruled(folder: Path, pair: Pair, *lines: str, mark: str = "") -> Mirror:
    mark = mark or unique_name("hr").replace("-", "")
    return Mirror.of_records(folder, mark, pair.a, pair.b, *lines)


def topic_of(flow: MirroredFlow) -> str:
    return create_topic(flow.source, unique_name(f"{flow.flow.source[1:]}-orders"), partitions=2)


@pytest.mark.long
@pytest.mark.parametrize("name", FILTERS)
def test_each_wanted_record_is_there_once_after_kills(pair: Pair, tmp_path: Path, name: str) -> None:
    filter_text, rule = FILTERS[name]
    with ruled(tmp_path, pair, f"lockstep.filter = {filter_text}", f"lockstep.headers = {HEADERS}") as mirror:
        flow = mirror.flow
        topic = topic_of(flow)
        with writing(flow, topic):
            flow.wait_mirrored(topic, partitions=2)
            flow.wait_for_more(topic, 500, within=WITHIN)
            mirror.copying_worker().kill()
            flow.wait_for_more(topic, 500, within=WITHIN)
            mirror.kill_data_plane()
            mirror.data_plane.start()
            flow.wait_for_more(topic, 500, within=WITHIN)
        wait_as_wanted(flow, topic, rule)
        assert flow.events("PartitionHalted", topic) == flow.events("GapFound", topic) == []
        if name == "all":
            assert set(end_offsets(flow.target, flow.remote(topic)).values()) == {0}
        code, report = verify(mirror, str(mirror.config), "--topic", topic)
        assert (code, report["equal"]) == (0, True), report
        (line,) = report["topics"]
        assert line["records"] == sum(map(len, wanted_of(flow, topic, rule).values()))
        assert line["transforms"] == [flow.progress(topic)[0].transform]


def test_a_group_on_a_dropped_record_goes_to_the_next_kept_one(pair: Pair, tmp_path: Path) -> None:
    with ruled(tmp_path, pair, f"lockstep.filter = header {ODD}", f"lockstep.headers = {HEADERS}") as mirror:
        flow = mirror.flow
        topic = topic_of(flow)
        produce(flow.source, topic, numbered(0, 4_000), codec="lz4")
        wait_as_wanted(flow, topic, without_odd)
        source = [r for r in read_topic(flow.source, topic) if r.partition == 0]
        kept = [r.offset or 0 for r in source if without_odd(r) is not None]
        progress = flow.progress(topic)[0]
        run_map = RunMap.build(
            progress, [row for row in flow.rows(OffsetRuns) if (row.topic, row.partition) == (topic, 0)]
        )
        for position in range(kept[0], kept[-1] + 2):
            translated = run_map.translate(UpstreamOffset(position))
            assert translated is not None
            assert translated.downstream == sum(offset < position for offset in kept), position


@pytest.mark.long
def test_records_in_transactions_are_filtered_once_after_a_kill(pair: Pair, tmp_path: Path) -> None:
    lines = (f"lockstep.filter = header {ODD}", f"lockstep.headers = {HEADERS}")
    with transactional(tmp_path, pair, *lines) as mirror:
        flow = mirror.flow
        topic = topic_of(flow)
        with writing(flow, topic):
            flow.wait_mirrored(topic, partitions=2)
            for _ in range(2):
                flow.wait_for_more(topic, 500, within=WITHIN)
                mirror.copying_worker().kill()
            flow.wait_for_more(topic, 500, within=WITHIN)
        wait_as_wanted(flow, topic, without_odd)
        assert all(row.transactional and row.transform for row in flow.progress(topic).values())


@pytest.mark.long
def test_other_rules_hold_from_the_offset_of_their_event(pair: Pair, tmp_path: Path) -> None:
    mark = unique_name("hr").replace("-", "")
    lines = {"first": ("lockstep.headers = add rules=first",), "second": ("lockstep.headers = add rules=second",)}
    folders = {}
    for name in (*lines, "none"):
        folders[name] = tmp_path / name
        folders[name].mkdir()
    with ruled(folders["first"], pair, *lines["first"], mark=mark) as mirror:
        flow = mirror.flow
        topic = topic_of(flow)
        with writing(flow, topic) as sent:
            flow.wait_mirrored(topic, partitions=2)
            flow.wait_for_more(topic, 300, within=WITHIN)
            assert mirror.data_plane.stop() == 0
    with ruled(folders["second"], pair, *lines["second"], mark=mark) as mirror:
        with writing(flow, topic, sent[0]) as sent:
            flow.wait_for_more(topic, 300, within=WITHIN)
            mirror.copying_worker().kill()
            flow.wait_for_more(topic, 300, within=WITHIN)
        flow.wait_written_down(topic, within=WITHIN)
        events = {event.subject: event.detail for event in flow.events("TransformChanged", topic)}
        first = {number: events[f"{topic}-{number}"]["first"] for number in (0, 1)}
        assert all(first[number] > 0 for number in first)

        def rule(record: Record) -> Record:
            word = b"first" if (record.offset or 0) < first[record.partition or 0] else b"second"
            return Record(
                record.key, record.value, (*record.headers, ("rules", word)), record.timestamp_ms, record.partition
            )

        wait_as_wanted(flow, topic, rule)
        code, report = verify(mirror, str(mirror.config), "--topic", topic)
        assert code == 4, report
        assert {entry["reason"] for entry in report["not_verified"]} == {"other-transform"}
        (line,) = report["topics"]
        assert (line["not_verified"], line["differ"], line["missing"], line["extra"]) == (sum(first.values()), 0, 0, 0)
        mirror.kill_data_plane()
    with ruled(folders["none"], pair, mark=mark) as mirror:
        produce(flow.source, topic, numbered(sent[0], 50))
        wait_until(
            lambda: flow.progress(topic)[0].transform == flow.progress(topic)[1].transform == "",
            within=WITHIN,
            every=0.25,
            what="records are copied as they are again",
        )
        flow.wait_written_down(topic, within=WITHIN)
        assert [r.same_as() for r in flow.copy_of(topic)][-1] == read_topic(flow.source, topic)[-1].same_as()


@pytest.mark.long
def test_verification_finds_what_the_rules_would_not_make(pair: Pair, tmp_path: Path) -> None:
    lines = (f"lockstep.filter = header {ODD}", f"lockstep.headers = {HEADERS}")
    with ruled(tmp_path, pair, *lines) as mirror:
        flow = mirror.flow
        topic = create_topic(flow.source, unique_name(f"{flow.flow.source[1:]}-damaged"))
        produce(flow.source, topic, [Record(r.key, r.value, r.headers) for r in numbered(0, 100)])
        flow.wait_mirrored(topic)
        flow.wait_written_down(topic, within=WITHIN)
        produce(flow.target, flow.remote(topic), [Record(b"key-0", b"value-0", ((ODD, b"0"),))])
        produce(flow.source, topic, [Record(b"last", b"record", (("own", b"1"),))])
        wait_until(lambda: flow.progress(topic)[0].upstream == 100, within=WITHIN, what="the last record is copied")
        code, report = verify(mirror, str(mirror.config), "--topic", topic)
        assert code == 1
        assert [(entry["kind"], entry["target_offset"]) for entry in report["differences"]] == [("foreign", 50)]
