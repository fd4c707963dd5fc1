"""What is gone, re-created or refused while records and their progress go in transactions: the policies hold as they do
without (`docs/reference/no-silent-loss.md`), whatever was under way and wherever it broke off."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lockstep_state.names import progress_topic, state_topic
from tests.conftest import Pair
from tests.integration.transactional import (
    LATE,
    SOON,
    numbered,
    quarantined,
    topic_of,
    topic_that_refuses,
    transactional,
    wait_committed,
)
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
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.proxy import Proxy

pytestmark = [pytest.mark.long]

ALONE = {"linger.ms": "0", "batch.num.messages": "1"}


@pytest.fixture(scope="module")
def troubled(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    """Its transactions stay open for three seconds, so that there is something to break off."""
    mark = unique_name("t")
    lines = (
        "lockstep.on.gap = .*-skip-.*=skip",
        "lockstep.on.recreate = .*-skip-.*=skip, .*-restart-.*=restart",
        "lockstep.on.refused = .*-quarantine-.*=quarantine",
        f"s{mark}->t{mark}.transaction.boundary = interval",
        f"s{mark}->t{mark}.transaction.boundary.interval.ms = 3000",
    )
    with transactional(tmp_path_factory.mktemp("troubled"), pair, *lines, mark=mark, behind_proxies=True) as mirror:
        yield mirror


def copied(flow: MirroredFlow, stem: str, count: int = 50) -> tuple[str, list[Record]]:
    """A topic of which so many records are copied and written down, and those records."""
    topic = topic_of(flow, stem)
    produce(flow.source, topic, numbered(count))
    wait_committed(flow, topic)
    flow.wait_written_down(topic)
    return topic, read_topic(flow.source, topic)


@contextmanager
def away(proxy: Proxy) -> Iterator[None]:
    proxy.refuse()
    try:
        yield
    finally:
        proxy.heal()


@contextmanager
def closed(flow: MirroredFlow, topic: str) -> Iterator[None]:
    """The target refuses whatever is said in that topic. It takes transactions' markers, which are smaller."""
    set_configs(flow.target, topic, {"max.message.bytes": "100"})
    try:
        yield
    finally:
        set_configs(flow.target, topic, {"max.message.bytes": None})


@pytest.mark.parametrize("policy", ["halt", "skip", "restart"])
def test_a_source_topic_created_again(troubled: Mirror, proxy_a: Proxy, policy: str) -> None:
    flow = troubled.flow
    topic, first = copied(flow, f"{policy}-source")
    with away(proxy_a):
        delete_topic(flow.source, topic)
        create_topic(flow.source, topic)
        if policy == "skip":
            produce(flow.source, topic, numbered(80, first=1_000))
    gap = flow.wait_event("GapFound", f"{topic}-0", within=SOON)
    assert (gap.detail["case"], gap.detail["wanted"]) == ("source-recreated", 50)
    if policy == "halt":
        flow.wait_event("PartitionHalted", f"{topic}-0", within=SOON)
        flow.wait_holds(topic, first)
        assert flow.mm2_progress(topic) == {0: 49}
        return
    flow.wait_event({"skip": "GapSkipped", "restart": "CopyRestarted"}[policy], f"{topic}-0", within=SOON)
    if policy == "restart":  # else the first records of the new topic would count as copied
        assert flow.mm2_progress(topic) == {0: None}
        produce(flow.source, topic, numbered(80, first=1_000))
    wait_until(lambda: flow.progress(topic)[0].upstream == 79, within=SOON, every=0.25)
    produce(flow.source, topic, numbered(5, first=2_000))
    second = read_topic(flow.source, topic)
    flow.wait_holds(topic, [*first, *(second if policy == "restart" else second[80:])])
    row = flow.wait_written_down(topic)[0]
    assert (row.upstream, row.given_up, row.transactional) == (84, 80 if policy == "skip" else 0, True)
    assert flow.mm2_progress(topic) == {0: 84}


@pytest.mark.parametrize("policy", ["halt", "skip", "restart"])
def test_a_target_topic_created_again(troubled: Mirror, policy: str) -> None:
    flow = troubled.flow
    topic, _ = copied(flow, f"{policy}-target")
    delete_topic(flow.target, flow.remote(topic))
    gap = flow.wait_event("GapFound", f"{topic}-0", within=SOON)
    # A marker stands behind the records, and the next record was to be appended behind that.
    details = (gap.detail["case"], gap.detail["target_wanted"], gap.detail["gone"])
    assert details == ("target-recreated", 51, [0, 50])
    if policy == "halt":
        flow.wait_event("PartitionHalted", f"{topic}-0", within=SOON)
        assert flow.copy_of(topic) == []
        assert flow.mm2_progress(topic) == {0: 49}
        return
    flow.wait_event({"skip": "GapSkipped", "restart": "CopyRestarted"}[policy], f"{topic}-0", within=SOON)
    produce(flow.source, topic, numbered(20, first=50))
    every = read_topic(flow.source, topic)
    flow.wait_holds(topic, every if policy == "restart" else every[50:])
    assert flow.wait_written_down(topic)[0].upstream == 69
    assert flow.mm2_progress(topic) == {0: 69}


def test_appended_records_are_committed_when_the_source_goes_away(troubled: Mirror, proxy_a: Proxy) -> None:
    """The source may not have it any more when it comes back; then the gap begins behind it."""
    flow = troubled.flow
    topic, first = copied(flow, "skip-open")
    produce(flow.source, topic, numbered(20, first=50))
    ends = len(first) + 1 + 20
    wait_until(lambda: end_offsets(flow.target, flow.remote(topic))[0] == ends, within=SOON, every=0.02)
    with away(proxy_a):
        there = read_topic(flow.source, topic)
        produce(flow.source, topic, numbered(100, first=70))
        delete_records(flow.source, topic, 120)
    skipped = flow.wait_event("GapSkipped", f"{topic}-0", within=SOON)
    assert skipped.detail["lost"] == [70, 119]
    flow.wait_holds(topic, [*there, *read_topic(flow.source, topic)])
    row = flow.wait_written_down(topic)[0]
    assert (row.upstream, row.given_up) == (169, 50)
    assert flow.mm2_progress(topic) == {0: 169}
    appended = read_topic(flow.target, flow.remote(topic), isolation="read_uncommitted")
    assert len(appended) == 120, "nothing was appended twice"


def test_a_decision_counts_only_once_it_is_written_down(troubled: Mirror, proxy_a: Proxy) -> None:
    """Killed where the decision could not be written down: whoever comes next takes it, says it and counts it."""
    flow = troubled.flow
    topic, first = copied(flow, "skip-unwritten")
    with closed(flow, state_topic(flow.flow)):
        with away(proxy_a):
            produce(flow.source, topic, numbered(100, first=50))
            delete_records(flow.source, topic, 90)
        wait_until(lambda: len(flow.events("GapFound", f"{topic}-0")) > 1, within=SOON, every=0.25)
        assert flow.mm2_progress(topic) == {0: 49}
        flow.wait_holds(topic, first)
        troubled.kill_data_plane()
    assert flow.events("GapSkipped", f"{topic}-0") == []
    troubled.data_plane.start()
    skipped = flow.wait_event("GapSkipped", f"{topic}-0", within=SOON)
    assert (skipped.detail["lost"], skipped.detail["begin"]) == ([50, 89], 90)
    flow.wait_holds(topic, [*first, *read_topic(flow.source, topic)])
    row = flow.wait_written_down(topic)[0]
    assert (row.upstream, row.given_up, row.gaps) == (149, 40, (("records-gone", 1),))
    assert flow.mm2_progress(topic) == {0: 149}


@pytest.mark.parametrize("ends", ["goes on", "is killed"])
def test_quarantined_record_without_its_row_is_never_lost(troubled: Mirror, ends: str) -> None:
    """Between the quarantine's record and the row that says so: whoever goes on need not put it there again, whoever
    comes next has to."""
    flow = troubled.flow
    topic = topic_that_refuses(flow, "quarantine")
    produce(flow.source, topic, numbered(10))
    wait_committed(flow, topic)
    flow.wait_written_down(topic)
    with closed(flow, state_topic(flow.flow)):
        produce(flow.source, topic, [*numbered(5, first=10), LATE, *numbered(5, first=15)])
        flow.wait_event("BatchQuarantined", f"{topic}-0", within=SOON)
        wait_until(lambda: f"{topic}-0 failing" in troubled.data_plane.log.read_text(), within=SOON, every=0.1)
        if ends == "is killed":
            troubled.kill_data_plane()
    if ends == "is killed":
        troubled.data_plane.start()
    wanted = [r for r in read_topic(flow.source, topic) if r.value != LATE.value]
    flow.wait_holds(topic, wanted)
    row = flow.wait_written_down(topic)[0]
    assert (row.upstream, row.quarantined, row.skips) == (20, 1, ())
    assert flow.mm2_progress(topic) == {0: 20}
    kept = quarantined(flow, topic)
    assert [(r.value, dict(r.headers)["lockstep.offset"]) for r in kept] == [(LATE.value, b"15")] * len(kept)
    assert len(kept) == (2 if ends == "is killed" else 1)
    assert flow.events("PartitionHalted", topic) == []


def test_quarantined_record_is_there_once_after_failed_transactions(troubled: Mirror) -> None:
    """What lies before it is appended, and then its progress is not: that transaction never counts, and is tried
    again from its first record on."""
    flow = troubled.flow
    topic = topic_that_refuses(flow, "quarantine")
    produce(flow.source, topic, numbered(10))
    before = wait_committed(flow, topic)
    with closed(flow, progress_topic(flow.flow)):
        produce(flow.source, topic, [*numbered(5, first=10), LATE, *numbered(5, first=15)])
        flow.wait_event("BatchQuarantined", f"{topic}-0", within=SOON)
        ends = 11 + 6 + 10  # ten and a marker, five and a marker at most, and once what is not refused
        wait_until(lambda: end_offsets(flow.target, flow.remote(topic))[0] > ends, within=SOON, every=0.1)
        flow.wait_holds(topic, before)
        assert flow.mm2_progress(topic) == {0: 9}
    wanted = [r for r in read_topic(flow.source, topic) if r.value != LATE.value]
    flow.wait_holds(topic, wanted)
    row = flow.wait_written_down(topic)[0]
    assert (row.upstream, row.quarantined, row.skips) == (20, 1, ())
    assert flow.mm2_progress(topic) == {0: 20}
    assert [dict(r.headers)["lockstep.offset"] for r in quarantined(flow, topic)] == [b"15"]
    appended = read_topic(flow.target, flow.remote(topic), isolation="read_uncommitted")
    assert len(appended) > len(wanted), "what was not committed lies there, and nobody sees it"


def test_refusal_without_an_answer_is_repeated_and_quarantined_once(troubled: Mirror, proxy_b: Proxy) -> None:
    """The connection ends before the target's answers: what they said of the batches around it nobody knows."""
    flow = troubled.flow
    topic = topic_that_refuses(flow, "quarantine")
    remote = flow.wait_mirrored(topic).target_topic
    produce(flow.source, topic, numbered(3), settings=ALONE)
    wait_until(lambda: end_offsets(flow.target, remote)[0] == 3, within=SOON, every=0.02, what="a transaction is open")
    proxy_b.hold(requests=False, answers=True)
    produce(flow.source, topic, [*numbered(2, first=3), LATE, *numbered(4, first=5)], settings=ALONE)
    wait_until(lambda: end_offsets(flow.target, remote)[0] == 5, within=SOON, every=0.02, what="two more are there")
    proxy_b.cut()
    proxy_b.heal()
    flow.wait_holds(topic, [r for r in read_topic(flow.source, topic) if r.value != LATE.value])
    assert flow.wait_written_down(topic)[0].quarantined == 1
    assert flow.mm2_progress(topic) == {0: 9}
    assert [dict(r.headers)["lockstep.offset"] for r in quarantined(flow, topic)] == [b"5"]
    appended = read_topic(flow.target, remote, isolation="read_uncommitted")
    assert len(appended) == 5 + 9, "the first five were appended twice, and count once"
