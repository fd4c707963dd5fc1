"""What is gone, deleted, re-created or refused is named, and handled as the file says (`no-silent-loss.md`)."""

import time
from collections.abc import Callable
from functools import partial

import pytest

from lockstep_state.names import quarantine_topic
from tests.conftest import Pair
from tests.support.clusters import (
    Record,
    create_topic,
    delete_records,
    delete_topic,
    end_offsets,
    produce,
    read_topic,
    set_configs,
    unique_name,
)
from tests.support.eventually import wait_until
from tests.support.metrics import wait_for_value
from tests.support.mirror import Mirror, MirroredFlow

SOON = 60.0


def numbered(count: int, stem: bytes = b"r", first: int = 0, key: bytes | None = b"k") -> list[Record]:
    return [Record(key=key, value=b"%s %d" % (stem, first + n)) for n in range(count)]


def values(flow: MirroredFlow, topic: str) -> list[bytes | None]:
    return [r.value for r in read_topic(flow.target, flow.remote(topic))]


def wait_values(flow: MirroredFlow, topic: str, wanted: list[Record]) -> None:
    expected = [r.value for r in wanted]

    def there() -> bool:
        assert values(flow, topic) == expected
        return True

    wait_until(there, within=SOON, every=0.25)


def copied(flow: MirroredFlow, stem: str, records: list[Record]) -> str:
    """A topic whose first records are copied and written down."""
    topic = create_topic(flow.source, unique_name(f"there-{stem}"))
    produce(flow.source, topic, records)
    flow.wait_copied(topic)
    wait_until(lambda: flow.progress(topic)[0].upstream == len(records) - 1, within=SOON, every=0.25)
    return topic


def while_the_source_is_away(pair: Pair, do: Callable[[], None]) -> None:
    assert pair.a.proxy is not None
    pair.a.proxy.refuse()
    try:
        do()
    finally:
        pair.a.proxy.heal()


@pytest.mark.parametrize("policy", ["halt", "skip", pytest.param("restart", marks=pytest.mark.long)])
def test_records_deleted_before_they_were_copied(pair: Pair, mirror: Mirror, there: MirroredFlow, policy: str) -> None:
    topic = copied(there, policy, numbered(50))

    def lose() -> None:
        produce(there.source, topic, numbered(100, first=50))
        delete_records(there.source, topic, 90)

    while_the_source_is_away(pair, lose)
    gap = there.wait_event("GapFound", f"{topic}-0", within=SOON)
    assert {k: gap.detail[k] for k in ("case", "wanted", "source_start")} == {
        "case": "records-gone",
        "wanted": 50,
        "source_start": 90,
    }
    if policy == "halt":
        there.wait_event("PartitionHalted", f"{topic}-0", within=SOON)
        wait_until(lambda: there.progress(topic)[0].phase == "halted", within=SOON, every=0.25)
        row = there.progress(topic)[0]
        assert (row.case, row.upstream, row.given_up) == ("records-gone", 49, 0)
        assert "offsets 50 to 89" in row.reason
        assert values(there, topic) == [r.value for r in numbered(50)]
        assert wait_for_value(mirror.data_plane, 1, "lockstep_partition_halted", topic=topic) == 1
        wait_for_value(mirror.data_plane, 1, "lockstep_halted_partitions", flow=str(there), case="records-gone")
        return
    wait_values(there, topic, [*numbered(50), *numbered(60, first=90)])
    went_on = {"skip": "GapSkipped", "restart": "CopyRestarted"}[policy]
    skipped = there.wait_event(went_on, f"{topic}-0", within=SOON)
    assert (skipped.detail["lost"], skipped.detail["begin"]) == ([50, 89], 90)
    there.wait_written_down(topic)
    row = there.progress(topic)[0]
    assert (row.given_up, row.producer_epoch, row.downstream, row.upstream) == (40, 1, 109, 149)
    assert wait_for_value(mirror.data_plane, 40, "lockstep_given_up_offsets_total", topic=topic) == 40
    wait_for_value(mirror.data_plane, 1, "lockstep_gaps_total", flow=str(there), case="records-gone")
    produce(there.source, topic, numbered(10, first=150))
    wait_values(there, topic, [*numbered(50), *numbered(70, first=90)])


@pytest.mark.long
def test_retention_overtakes_the_copy(pair: Pair, mirror: Mirror, there: MirroredFlow) -> None:
    topic = copied(there, "skip", numbered(50))

    def lose() -> None:
        produce(there.source, topic, numbered(100, first=50))
        set_configs(there.source, topic, {"retention.ms": "1"})
        wait_until(lambda: not read_topic(there.source, topic), within=SOON, every=0.25, what="retention took all")
        set_configs(there.source, topic, {"retention.ms": "-1"})
        produce(there.source, topic, numbered(20, first=150))

    while_the_source_is_away(pair, lose)
    gap = there.wait_event("GapFound", f"{topic}-0", within=SOON)
    assert (gap.detail["case"], gap.detail["wanted"], gap.detail["source_start"]) == ("records-gone", 50, 150)
    assert there.wait_event("GapSkipped", f"{topic}-0", within=SOON).detail["lost"] == [50, 149]
    wait_values(there, topic, [*numbered(50), *numbered(20, first=150)])
    assert wait_for_value(mirror.data_plane, 100, "lockstep_given_up_offsets_total", topic=topic) == 100


@pytest.mark.long
def test_a_source_topic_that_is_deleted_and_not_created_again_is_let_go(there: MirroredFlow) -> None:
    topic = copied(there, "deleted", numbered(50))
    assert any(there.assigned(topic).values())
    delete_topic(there.source, topic)

    def let_go() -> bool:
        row = there.mirrored(topic)
        assert row is not None
        return row.phase == "deleted" and not any(there.assigned(topic).values())

    wait_until(let_go, within=SOON, every=0.25, what="no slot has it any more")
    assert values(there, topic) == [r.value for r in numbered(50)], "the copy stays as it is"
    for kind in ("GapFound", "PartitionHalted"):
        assert there.events(kind, topic) == []


@pytest.mark.parametrize("policy", [pytest.param("skip", marks=pytest.mark.long), "restart"])
def test_a_source_topic_created_again(pair: Pair, there: MirroredFlow, policy: str) -> None:
    topic = copied(there, policy, numbered(50, b"first life"))

    def again() -> None:
        delete_topic(there.source, topic)
        create_topic(there.source, topic)
        produce(there.source, topic, numbered(80, b"second life"))

    while_the_source_is_away(pair, again)
    gap = there.wait_event("GapFound", f"{topic}-0", within=SOON)
    assert gap.detail["case"] == "source-recreated"
    there.wait_event({"skip": "GapSkipped", "restart": "CopyRestarted"}[policy], f"{topic}-0", within=SOON)
    produce(there.source, topic, numbered(5, b"second life", 80))
    new = numbered(85, b"second life")
    wait_values(there, topic, [*numbered(50, b"first life"), *(new if policy == "restart" else new[80:])])
    row = there.wait_written_down(topic)[0]
    assert row.given_up == (80 if policy == "skip" else 0)

    def seen() -> bool:  # topic-sync may look later than the slot
        return there.wait_mirrored(topic).source_topic_id == row.source_topic_id

    wait_until(seen, within=SOON, what="topic-sync has seen the topic that is there now")


@pytest.mark.long  # that it halts by default is in test_data_plane_topics
@pytest.mark.parametrize("policy", ["skip", "restart"])
def test_a_target_topic_created_again(there: MirroredFlow, policy: str) -> None:
    topic = copied(there, policy, numbered(50))
    delete_topic(there.target, there.remote(topic))
    gap = there.wait_event("GapFound", f"{topic}-0", within=SOON)
    assert gap.detail["case"] == "target-recreated"
    assert (gap.detail["target_wanted"], gap.detail["target_end"], gap.detail["gone"]) == (50, 0, [0, 49])
    went_on = there.wait_event({"skip": "GapSkipped", "restart": "CopyRestarted"}[policy], f"{topic}-0", within=SOON)
    assert went_on.detail["gone"] == ([0, 49] if policy == "skip" else None)
    produce(there.source, topic, numbered(20, first=50))
    wait_values(there, topic, numbered(70) if policy == "restart" else numbered(20, first=50))


def test_records_refused_by_the_target_are_quarantined_others_copied(mirror: Mirror, there: MirroredFlow) -> None:
    topic = unique_name("there-quarantine")
    create_topic(there.target, there.remote(topic), configs={"cleanup.policy": "compact", "max.message.bytes": "20000"})
    create_topic(there.source, topic)
    one_batch = {"linger.ms": "200", "batch.num.messages": "1000"}
    refused = Record(key=None, value=b"no key", headers=(("own", b"1"),), timestamp_ms=1_700_000_000_000)
    produce(there.source, topic, [*numbered(5), refused, *numbered(5, first=5)], settings=one_batch)
    produce(there.source, topic, [Record(key=b"big", value=b"x" * 30_000)], settings=one_batch)
    produce(there.source, topic, numbered(5, first=10), settings=one_batch)
    wait_values(there, topic, numbered(15))
    there.wait_written_down(topic)
    kept = read_topic(there.target, quarantine_topic(there.flow))
    kept = [r for r in kept if dict(r.headers)["lockstep.topic"] == topic.encode()]
    assert [(r.key, r.value) for r in kept] == [(None, b"no key"), (b"big", b"x" * 30_000)]
    headers = dict(kept[0].headers)
    assert (headers["lockstep.offset"], headers["lockstep.timestamp"], headers["own"]) == (b"5", b"1700000000000", b"1")
    row = there.progress(topic)[0]
    assert (row.quarantined, row.phase, row.producer_epoch, row.skips) == (2, "copying", 2, ())
    ranges = [event.detail["ranges"] for event in there.events("BatchQuarantined", f"{topic}-0")]
    assert ranges == [[[5, 5]], [[11, 11]]]
    assert wait_for_value(mirror.data_plane, 2, "lockstep_quarantined_total", topic=topic) == 2
    assert wait_for_value(mirror.data_plane, 15, "lockstep_records_total", topic=topic) == 15


def test_a_limit_of_bytes_a_second_holds_and_nothing_is_lost(there: MirroredFlow) -> None:
    topic = create_topic(there.source, unique_name("there-slow"))
    there.wait_mirrored(topic)
    began = time.monotonic()
    for part in range(1, 4):  # 80,000 bytes each: one fetch may bring all of it, and the next one waits for two seconds
        produce(there.source, topic, numbered(50, b"v" * 1_600), settings={"batch.size": "8000"})
        wait_until(partial(arrived, there, topic, 50 * part), within=SOON, every=0.1)
    assert time.monotonic() - began > 2, "they came as if there were no limit"
    there.wait_copied(topic)


def arrived(flow: MirroredFlow, topic: str, records: int) -> bool:
    return end_offsets(flow.target, flow.remote(topic))[0] == records
