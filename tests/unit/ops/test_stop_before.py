"""The ends of copies for `lockstep stop --before`: which partitions, at which offsets, and why not."""

from datetime import UTC, datetime

import pytest

from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.stop_before import EndPlan, end_scope, parse_before, plan_ends
from lockstep_rules.offsets.copy_end import CopyEnd, EndProblem, NoCopyEnd
from lockstep_runtime.state.desired_state import CopyEnds
from lockstep_state.commands.command_vocabulary import Scope
from lockstep_state.rows.state_rows import (
    DesiredState,
    MirroredTopic,
    PartitionProgress,
    Row,
    SeenEnds,
    SourceEnds,
)
from tests.support.plan_facts import NOW_MS, settings_for

FLOW = Scope.parse("connector:MirrorSourceConnector")
DELAYED = settings_for("lockstep.delay = 30m")
BEFORE = 5_000


def topic(name: str, partitions: int = 1, phase: str = "mirrored") -> MirroredTopic:
    return MirroredTopic(
        source_topic=name, target_topic=f"A.{name}", partitions=partitions, target_partitions=partitions, phase=phase
    )


def seen(name: str, partition: int, *ends: tuple[int, int], released: int = 0, whole: bool = True) -> SeenEnds:
    return SeenEnds(
        topic=name, partition=partition, released=released, ends=tuple((end, at_ms, whole) for end, at_ms in ends)
    )


def plan(*rows: Row, scope: Scope = FLOW, settings: object = DELAYED, checked_ms: int = 9_000) -> EndPlan:
    by_key = {row.key(): row for row in (SourceEnds(asked_ms=checked_ms), *rows)}
    return plan_ends(settings, by_key, scope, BEFORE)  # type: ignore[arg-type]  # `settings_for` is cached by its lines


TWO = (topic("orders", 2), seen("orders", 0, (7, 1_000), (9, 6_000)), seen("orders", 1, (3, 4_999)))


def test_each_partition_of_the_flow_gets_its_end() -> None:
    found = plan(*TWO, topic("gone", phase="deleted"), topic("heartbeats"))
    assert found.ends == {("orders", 0): CopyEnd(7, 1_000, 2), ("orders", 1): CopyEnd(3, 4_999)}
    assert found.require_ends() == CopyEnds(BEFORE, (("orders", 0, 7), ("orders", 1, 3)))
    assert list(found.as_lines()) == [
        "orders-0  ends at 7, as seen at 1970-01-01T00:00:01.000+00:00; 2 offsets behind it were first seen later, and "
        "may have been there before",
        "orders-1  ends at 3, as seen at 1970-01-01T00:00:04.999+00:00",
    ]
    assert found.as_json()["ends"][0] == {
        "topic": "orders",
        "partition": 0,
        "offset": 7,
        "seen_ms": 1_000,
        "doubtful": 2,
    }


def test_one_topic_ends_without_the_others() -> None:
    found = plan(*TWO, topic("payments"), scope=Scope.parse("topic:orders"))
    assert set(found.ends) == {("orders", 0), ("orders", 1)}
    assert found.problems == {}


def test_whole_flow_is_refused_for_one_partition_without_an_end() -> None:
    found = plan(*TWO, topic("payments", 2))
    assert found.problems == dict.fromkeys([("payments", 0), ("payments", 1)], NoCopyEnd(EndProblem.NOT_SEEN))
    with pytest.raises(CannotUse, match=r"payments-0: when its records came .* So it is with 1 other partition"):
        found.require_ends()


def test_topic_without_a_delay_has_no_end() -> None:
    settings = settings_for("lockstep.delay = orders=30m")
    with pytest.raises(CannotUse, match=r"payments-0: it is copied without a delay"):
        plan(*TWO, topic("payments"), settings=settings).require_ends()
    assert plan(*TWO, topic("payments"), settings=settings, scope=Scope.parse("topic:orders")).require_ends().ends


@pytest.mark.parametrize(
    ("rows", "checked_ms", "sentence"),
    [
        ((seen("t", 0, (7, 6_000)),), 9_000, "the oldest check that is remembered is of 1970-01-01T00:00:06"),
        ((seen("t", 0, (7, 1_000)),), 4_000, "the source was last checked at 1970-01-01T00:00:04"),
        ((seen("t", 0, (7, 1_000)),), 0, "the source was not checked yet"),
        ((seen("t", 0, (7, 1_000), released=8),), 9_000, "the copy is, or may be by now, 1 offset beyond its end"),
        (
            (seen("t", 0, (7, 1_000)), PartitionProgress(topic="t", partition=0, upstream=9)),
            *(9_000, "the copy is, or may be by now, 3 offsets beyond its end"),
        ),
    ],
)
def test_partition_without_an_end_is_refused_with_the_reason(
    rows: tuple[Row, ...], checked_ms: int, sentence: str
) -> None:
    with pytest.raises(CannotUse, match=sentence):
        plan(topic("t"), *rows, checked_ms=checked_ms).require_ends()


def test_paused_copy_may_end_before_what_is_released() -> None:
    paused = DesiredState(scope="topic:t", phase="paused")
    rows = topic("t"), seen("t", 0, (7, 1_000), (8, 6_000), released=8)
    assert plan(*rows).problems
    assert plan(*rows, paused).ends == {("t", 0): CopyEnd(7, 1_000, 1)}


def test_flow_of_committed_records_ends_between_transactions() -> None:
    committed = settings_for("lockstep.delay = 30m", "A.consumer.isolation.level = read_committed")
    opened = topic("t"), seen("t", 0, (7, 1_000), whole=False)
    assert plan(*opened).ends
    with pytest.raises(CannotUse, match="a transaction was open at each check"):
        plan(*opened, settings=committed).require_ends()


def test_nothing_to_end_is_refused() -> None:
    with pytest.raises(CannotUse, match="no mirrored topic of the flow is meant"):
        plan().require_ends()


@pytest.mark.parametrize(
    ("text", "ago_ms"), [("10m ago", 600_000), (" 90s ago ", 90_000), ("0 ago", 0), (str(NOW_MS - 7), 7)]
)
def test_time_is_read(text: str, ago_ms: int) -> None:
    assert parse_before(text, NOW_MS) == NOW_MS - ago_ms


def test_time_with_a_zone_is_read() -> None:
    assert parse_before(datetime.fromtimestamp(NOW_MS // 1000, UTC).isoformat(), NOW_MS) == NOW_MS // 1000 * 1000


@pytest.mark.parametrize("text", ["", "soon", "10m", "10 minutes ago", "2026-01-31T12:00:00", str(NOW_MS + 1), "-5"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(CannotUse, match="--before"):
        parse_before(text, NOW_MS)


def test_scopes_that_have_copies_can_end() -> None:
    assert end_scope(Scope.parse("flow")) == FLOW
    for text in ("topic:orders", "connector:MirrorSourceConnector"):
        assert str(end_scope(Scope.parse(text))) == text
    for text in ("slot:0", "group:g", "partition:t-0", "connector:MirrorCheckpointConnector"):
        with pytest.raises(CannotUse, match="and not for"):
            end_scope(Scope.parse(text))
