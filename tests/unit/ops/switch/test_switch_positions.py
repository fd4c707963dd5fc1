"""Records of a flow's partitions that are not copied, lost or diverged, by the rows of both flows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep_ops.switch.switch_positions import (
    PartitionLoss,
    RecordsKnown,
    diverged_records,
    known_ends,
    known_loss,
    known_source_ends,
    not_copied,
    records_by_partition,
    switched_topics,
    topic_rows,
)
from lockstep_rules.offsets.offset_runs import Run, encode_runs
from lockstep_state.offsets import TopicPartition
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import (
    MirroredTopic,
    OffsetRuns,
    PartitionProgress,
    Row,
    SourceEnds,
    SwitchTopic,
    progress_by_partition,
)
from tests.support.takeover_rows import progress, rows_of, topic

T0: TopicPartition = ("t", 0)
UNDESCRIBED = ReasonCode.UNKNOWN.to_reason(text="not permitted")


def named(name: str, **fields: Any) -> MirroredTopic:
    return topic(source_topic=name, target_topic=f"A.{name}", **fields)


def back(*runs: Run, name: str = "t", **fields: Any) -> dict[str, Row]:
    """The rows of the flow back, which has appended these runs to a topic of the same name."""
    chunk = OffsetRuns(topic=name, partition=0, chunk=0, upstream=0, downstream=0, runs=())
    if runs:
        chunk = replace(chunk, upstream=runs[0].upstream, downstream=runs[0].downstream, runs=encode_runs(runs))
    last = PartitionProgress(topic=name, partition=0, **fields)
    return rows_of(topic(source_topic=name, target_topic=name), chunk, last)


# -- topics -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topics", "names", "heartbeats", "switched"),
    [
        ([named("b"), named("a")], (), (), ["a", "b"]),
        ([named("a"), named("b")], ["b", "x"], (), ["b"]),
        *(([named("a", phase=phase)], (), (), []) for phase in ("deleted", "excluded", "left-out")),
        ([named("a", phase="failed", cause=UNDESCRIBED)], (), (), ["a"]),
        ([named("heartbeats"), named("a")], (), ["heartbeats"], ["a"]),
        ([named("heartbeats"), named("a")], ["heartbeats"], ["heartbeats"], []),
    ],
)
def test_switched_topics_are_mirrored_and_named_but_no_heartbeats(
    topics: list[MirroredTopic], names: Sequence[str], heartbeats: Sequence[str], switched: list[str]
) -> None:
    rows = rows_of(*topics, progress())
    assert [topic.source_topic for topic in switched_topics(rows, names, iter(heartbeats))] == switched


def test_progress_rows_are_found_by_partition() -> None:
    first, second = progress(0), progress(3)
    assert progress_by_partition(rows_of(topic(), first, second).values()) == {("t", 0): first, ("t", 3): second}


# -- what is to be copied ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "start", "row", "missing"),
    [
        (10, 0, progress(upstream=9), None),
        (11, 0, progress(upstream=9), 1),
        (100, 50, progress(upstream=9), 90),
        (5, 0, progress(upstream=9), None),
        (10, 0, progress(upstream=-1), 10),
        (10, 4, progress(upstream=-1), 6),
        (10, 10, progress(upstream=-1), None),
        (10, 0, None, 10),
        (10, 7, None, 3),
        (0, 0, None, None),
        (1, 0, progress(upstream=0), None),
    ],
)
def test_not_copied_of_a_partition_is_before_its_end(
    end: int, start: int, row: Row | None, missing: int | None
) -> None:
    rows = rows_of(*([] if row is None else [row]))
    assert not_copied({T0: end}, {T0: start}, rows) == ({} if missing is None else {T0: missing})


def test_not_copied_is_of_partitions_with_an_end_and_from_zero_without_a_start() -> None:
    assert not_copied({T0: 10}, {}, {}) == {T0: 10}
    assert not_copied({("u", 1): 5}, {}, rows_of(progress(upstream=1), topic())) == {("u", 1): 5}
    assert not_copied({}, {T0: 0}, rows_of(progress(upstream=1))) == {}
    created_anew = rows_of(topic(source_topic_id="new"), progress(upstream=999, source_topic_id="old"))
    assert not_copied({T0: 10}, {T0: 0}, created_anew) == {T0: 10}


@settings(max_examples=50)
@given(st.integers(0, 50), st.integers(0, 50), st.one_of(st.none(), st.integers(-1, 60)))
def test_not_copied_never_is_less_than_the_offsets_left(start: int, length: int, upstream: int | None) -> None:
    end = start + length
    rows = {} if upstream is None else rows_of(progress(upstream=upstream))
    copied = -1 if upstream is None else upstream
    remaining = sum(offset > copied for offset in range(start, end))
    assert not_copied({T0: end}, {T0: start}, rows).get(T0, 0) >= remaining


# -- what is lost -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "records"),
    [
        ({"upstream": 9, "source_end": 10}, 0),
        ({"upstream": 9, "source_end": 15}, 5),
        ({"upstream": 9, "source_end": 15, "lag_records": 9}, 9),
        ({"upstream": 9, "source_end": 15, "lag_records": 2}, 5),
        ({"upstream": 9, "source_end": -1, "lag_records": 4}, 4),
        ({"upstream": 9, "source_end": -1}, -1),
        ({"upstream": -1, "source_end": 3}, 3),
        ({"upstream": -1, "source_end": 0}, 0),
    ],
)
def test_known_loss_is_the_larger_of_lag_and_distance(fields: dict[str, Any], records: int) -> None:
    losses = known_loss(rows_of(progress(**fields)), [topic()])
    assert [loss.records for loss in losses] == ([records] if records else [])


@pytest.mark.parametrize(
    ("rows", "topics", "losses"),
    [
        (
            [progress(source_end=12, lag_records=2, lag_ms=3_000, at_ms=10_000)],
            [topic()],
            [PartitionLoss(T0, 2, 7_000)],
        ),
        ([progress(source_end=20), topic()], [named("u")], []),
        ([progress(source_end=20), topic()], [], []),
        (
            [progress(0, source_end=10)],
            [topic(partitions=1, missing=2, cause=UNDESCRIBED)],
            [PartitionLoss(("t", 1), -1, 0), PartitionLoss(("t", 2), -1, 0)],
        ),
        ([], [topic(phase="failed", cause=UNDESCRIBED)], [PartitionLoss(T0, -1, 0)]),
        ([progress(0, source_end=10)], [topic(partitions=2)], [PartitionLoss(("t", 1), -1, 0)]),
        (
            [progress(upstream=999, source_end=10, source_topic_id="old")],
            [topic(partitions=1, source_topic_id="new")],
            [PartitionLoss(T0, -1, 0)],
        ),
    ],
    ids=[
        *("since the oldest waits", "other topic", "no topic", "the target lacks partitions", "never described"),
        *("never begun", "log created anew"),
    ],
)
def test_known_loss_of_each_state_of_a_topic(
    rows: list[Row], topics: list[MirroredTopic], losses: list[PartitionLoss]
) -> None:
    """A topic that was never described has a row without a number of partitions, and at least one partition."""
    assert known_loss(rows_of(*rows), topics) == losses


def test_known_loss_of_a_partition_never_fetched_is_the_drivers() -> None:
    rows = rows_of(progress(upstream=-1, source_end=-1), SourceEnds(ends=(("t", 0, 4),)))
    assert [loss.records for loss in known_loss(rows, [topic()])] == [4]


def test_known_loss_counts_from_when_the_driver_saw_the_record() -> None:
    row, source_ends = progress(source_end=10, at_ms=10_000), SourceEnds(asked_ms=90_000, ends=(("t", 0, 15),))
    assert known_loss(rows_of(row, source_ends), [topic()]) == [PartitionLoss(T0, 5, 10_000)], "it was up to date then"
    source_ends = replace(source_ends, since_ms=(40_000,))
    assert known_loss(rows_of(row, source_ends), [topic()]) == [PartitionLoss(T0, 5, 40_000)]
    behind = replace(row, source_end=12, lag_records=2, lag_ms=3_000)
    assert known_loss(rows_of(behind, source_ends), [topic()]) == [PartitionLoss(T0, 5, 7_000)]


def test_known_loss_of_many_partitions_has_the_most_first() -> None:
    rows = rows_of(progress(2, source_end=20), progress(0, source_end=11), progress(1, source_end=20))
    assert [loss.partition for loss in known_loss(rows, [topic()])] == [("t", 1), ("t", 2), ("t", 0)]


@settings(max_examples=50)
@given(st.integers(-1, 50), st.integers(-1, 80), st.integers(0, 80))
def test_known_loss_never_is_less_than_the_rows_have(upstream: int, end: int, lag: int) -> None:
    row = progress(upstream=upstream, source_end=end, lag_records=lag)
    (lost,) = [loss.records for loss in known_loss(rows_of(row), [topic()])] or [0]
    assert lost >= max(lag, end - 1 - upstream, 0) or (lost == -1 and end == -1), "unknown where no end was heard"


# -- what only one cluster has ----------------------------------------------------------------------------------------


RETURNED = back(Run(0, 10, 5))
OPEN_RUN = back(upstream=4, open_run=(0, 10, 5), sequence=4, producer_epoch=0)


@pytest.mark.parametrize(
    ("end", "opposite", "missing"),
    [
        (15, {}, 5),
        (0, {}, 0),
        (9, {}, 0),
        (10, {}, 0),
        (15, RETURNED, 0),
        (15, back(Run(0, 10, 4)), 1),
        (15, back(Run(0, 12, 3)), 2),
        (15, back(Run(0, 8, 4)), 3),
        (15, back(Run(0, 0, 30)), 0),
        (15, back(Run(0, 10, 2), Run(2, 13, 2)), 1),
        (15, back(Run(0, 30, 5)), 5),
        (15, back(Run(0, 2, 5)), 5),
        pytest.param(15, OPEN_RUN, 0, id="open run"),
        pytest.param(15, RETURNED | rows_of(topic(source_topic="t", target_topic="B.t")), 5, id="copies are in B.t"),
        pytest.param(
            15, {key: row for key, row in RETURNED.items() if not isinstance(row, MirroredTopic)}, 5, id="no topic row"
        ),
        pytest.param(15, back(Run(0, 10, 5), producer_id=7), 5, id="another writer"),
        pytest.param(15, back(Run(0, 10, 5), target_topic_id="deleted"), 5, id="another target"),
    ],
)
def test_diverged_records_leave_out_what_came_back(end: int, opposite: dict[str, Row], missing: int) -> None:
    counts = diverged_records({T0: end}, rows_of(progress(upstream=9)), opposite)
    assert counts == ({T0: missing} if missing else {})


def test_diverged_records_of_a_partition_never_begun_are_all() -> None:
    assert diverged_records({T0: 50}, rows_of(topic()), {}) == {T0: 50}


@settings(max_examples=50)
@given(st.integers(-1, 20), st.lists(st.sampled_from(("ours", "back")), max_size=30), st.data())
def test_diverged_records_never_are_less_than_there_are(upstream: int, log: list[str], data: st.DataObject) -> None:
    """A log of records of our own writers, and of copies by the way back, of which rows are lost at random."""
    runs: list[Run] = []
    for offset, writer in enumerate(log):
        if writer == "back" and data.draw(st.booleans()):
            runs.append(Run(len(runs) * 2, offset, 1))
    truth = sum(writer == "ours" for offset, writer in enumerate(log) if offset > upstream)
    counts = diverged_records({T0: len(log)}, rows_of(progress(upstream=upstream)), back(*runs))
    assert counts.get(T0, 0) >= truth
    assert counts.get(T0, 0) <= max(0, len(log) - 1 - upstream)


@settings(max_examples=50)
@given(st.integers(-1, 20), st.lists(st.sampled_from(("ours", "back")), max_size=30))
def test_diverged_records_with_every_run_are_exact(upstream: int, log: list[str]) -> None:
    copies = [offset for offset, writer in enumerate(log) if writer == "back"]
    runs = [Run(number * 2, offset, 1) for number, offset in enumerate(copies)]
    truth = sum(writer == "ours" for offset, writer in enumerate(log) if offset > upstream)
    counts = diverged_records({T0: len(log)}, rows_of(progress(upstream=upstream)), back(*runs))
    assert counts == ({T0: truth} if truth else {})


# -- what is written down ---------------------------------------------------------------------------------------------


def test_topic_rows_have_every_partition_of_a_topic() -> None:
    rows = rows_of(progress(0, 9), progress(2, -1))
    losses = [PartitionLoss(("t", 0), 5, 77)]
    ends = {("t", 0): 15, ("t", 1): 3, ("t", 2): 0}
    (row,) = topic_rows([topic(partitions=3)], "1", ends, rows, {("A.t", 0): 21}, losses)
    assert row == SwitchTopic(
        topic="t",
        target_topic="A.t",
        switch="1",
        ends=(15, 3, 0),
        copied=(9, -1, -1),
        target_ends=(21, -1, -1),
        missing=(5, 0, 0),
        since_ms=(77, 0, 0),
    )


def test_topic_rows_have_partitions_that_the_target_lacks() -> None:
    losses = [PartitionLoss(("t", 1), -1, 0)]
    (row,) = topic_rows([topic(partitions=1, missing=1)], "1", {T0: 10}, rows_of(progress(0)), {("A.t", 0): 10}, losses)
    assert (row.ends, row.copied, row.target_ends, row.missing) == ((10, -1), (9, -1), (10, -1), (0, -1))


def test_topic_rows_have_nothing_that_is_not_known() -> None:
    assert topic_rows([], "1", {T0: 5}, {}, {}) == []
    assert topic_rows([topic()], "1", {}, {}, {}) == [SwitchTopic(topic="t", target_topic="A.t", switch="1")]
    (row,) = topic_rows([topic(partitions=1)], "1", {}, rows_of(progress(0, 9)), {})
    assert row.ends == (-1,), "an end that nobody told is unknown"


def test_known_ends_are_those_of_this_switch() -> None:
    own = SwitchTopic(topic="t", target_topic="A.t", switch="1", ends=(5, 0))
    earlier = SwitchTopic(topic="u", target_topic="A.u", switch="0", ends=(9,))
    assert known_ends(rows_of(own, earlier, progress()), "1") == {("t", 0): 5, ("t", 1): 0}


@settings(max_examples=30)
@given(st.dictionaries(st.tuples(st.sampled_from("tu"), st.integers(0, 2)), st.integers(0, 99), max_size=6))
def test_known_ends_are_what_topic_rows_wrote(ends: dict[TopicPartition, int]) -> None:
    written = topic_rows([topic(partitions=3), named("u", partitions=3)], "1", ends, {}, {})
    read = known_ends(rows_of(*written), "1")
    assert {tp: read[tp] for tp in ends} == ends


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({("orders", 3): 1}, "1 record: orders-3 (1)"),
        ({("orders", 1): 2, ("orders", 3): 10}, "12 records: orders-3 (10), orders-1 (2)"),
        ({("b", 0): 1_000, ("a", 0): 1_000}, "2,000 records: a-0 (1,000), b-0 (1,000)"),
        ({("t", n): n for n in range(1, 5)}, "10 records: t-4 (4), t-3 (3), t-2 (2) and 1 more"),
    ],
)
def test_records_by_partition_names_the_largest(counts: dict[TopicPartition, int], text: str) -> None:
    assert records_by_partition(counts) == text


def test_known_loss_of_a_partition_that_seldom_fetches_is_the_drivers() -> None:
    source_ends = SourceEnds(ends=(("t", 0, 40), ("t", 1, 5), ("u", 0, 9)))
    rows = rows_of(progress(0, source_end=12), progress(1, source_end=20), source_ends)
    assert [(loss.partition, loss.records) for loss in known_loss(rows, [topic()])] == [(T0, 30), (("t", 1), 10)]
    assert known_source_ends(rows) == {("t", 0): 40, ("t", 1): 20}


ASKED = SourceEnds(asked_ms=1_700_000_003_000)
COUNTED = "is counted only as far as slots had fetched it"


def test_records_known_is_when_the_driver_asked_for_all_ends() -> None:
    times = RecordsKnown.from_rows(rows_of(progress(0, at_ms=1_700_000_009_000), ASKED), [topic(partitions=2)])
    assert times.least_ms == 1_700_000_003_000
    assert times.sentence("A") == f"What A accepted after 2023-11-14T22:13:23.000+00:00 {COUNTED}"


@pytest.mark.parametrize("rows", [{}, rows_of(replace(ASKED, more=1))])
def test_records_known_has_no_moment_where_not_all_ends_are_known(rows: dict[str, Row]) -> None:
    times = RecordsKnown.from_rows(rows, [topic(partitions=2)])
    assert (times.least_ms, times.sentence("A")) == (0, f"What A accepted {COUNTED}")


@pytest.mark.parametrize(
    ("answered_ms", "since"), [(1_700_000_001_000, "after 2023-11-14T22:13:21.000+00:00 already"), (0, "at any time")]
)
def test_records_known_names_partitions_without_an_answer(answered_ms: int, since: str) -> None:
    rows = rows_of(replace(ASKED, unanswered=(("t", 1, answered_ms), ("u", 0, 1))))
    times = RecordsKnown.from_rows(rows, [topic(partitions=2)])
    assert times.by_partition == {("t", 0): 1_700_000_003_000, ("t", 1): answered_ms}
    assert times.least_ms == answered_ms
    assert times.sentence("A") == (
        f"What A accepted after 2023-11-14T22:13:23.000+00:00 {COUNTED}, and so is what it accepted {since} in t-1, "
        "about which it did not answer"
    )
