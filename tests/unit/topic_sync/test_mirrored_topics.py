"""Rows and events of mirrored topics."""

from dataclasses import replace

import pytest

from lockstep_kafka.common.admin_types import TopicDescription
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import MirroredTopic
from lockstep_topic_sync.mirrored_topics import (
    TOPIC_PHASES,
    SelectedTopic,
    count_by_phase,
    creating_row,
    gone_rows,
    mirrored_row,
    topic_events,
    unseen_row,
)
from lockstep_topic_sync.retry_schedule import RetrySchedule
from tests.support.reasons import reported

SOURCE = TopicDescription("orders", "id-s", 4)
TARGET = TopicDescription("A.orders", "id-t", 4)
CONFIGS = {"max.message.bytes": "9", "cleanup.policy": "compact", "unknown": "x"}
ROW = MirroredTopic(
    source_topic="orders",
    target_topic="A.orders",
    source_topic_id="id-s",
    target_topic_id="id-t",
    partitions=4,
    target_partitions=4,
    target_configs=(("cleanup.policy", "compact"), ("max.message.bytes", "9")),
)
NO_ROOM, DENIED = reported("no room"), reported("not permitted")


@pytest.mark.parametrize(
    ("seen", "before", "row"),
    [
        (SelectedTopic(SOURCE, "A.orders", TARGET, CONFIGS), None, ROW),
        (SelectedTopic(SOURCE, "A.orders", TARGET, CONFIGS, NO_ROOM), None, ROW),  # an old failure is not shown
        (SelectedTopic(SOURCE, "A.orders", TARGET, None), ROW, ROW),  # configs that were not read stay
        (
            SelectedTopic(SOURCE, "A.orders", replace(TARGET, partitions=9), CONFIGS),
            ROW,
            replace(ROW, target_partitions=9),
        ),
        (SelectedTopic(SOURCE, "A.orders", None, None), ROW, None),  # to be listed again
        (SelectedTopic(SOURCE, "A.orders", replace(TARGET, partitions=3), None), ROW, None),
    ],
)
def test_topic_on_both_clusters_is_mirrored(
    seen: SelectedTopic, before: MirroredTopic | None, row: MirroredTopic | None
) -> None:
    assert mirrored_row(seen, before) == row


def test_topic_whose_copy_is_being_created_has_the_name() -> None:
    row = creating_row("orders", "eu.orders", None)
    assert (row.phase, row.target_topic, row.earlier_names) == ("creating", "eu.orders", ())
    assert topic_events(None, row) == []
    done = mirrored_row(SelectedTopic(SOURCE, "eu.orders", replace(TARGET, name="eu.orders"), CONFIGS), row)
    assert done == replace(ROW, target_topic="eu.orders")


def test_names_of_earlier_copies_stay_in_the_row() -> None:
    renamed = creating_row("orders", "eu.orders", ROW)
    assert (renamed.earlier_names, renamed.target_topic_id) == (("A.orders",), "")
    assert unseen_row("orders", "eu.orders", DENIED, renamed).earlier_names == ("A.orders",)
    failed = mirrored_row(SelectedTopic(SOURCE, "eu.orders", None, None, NO_ROOM), renamed)
    assert failed is not None
    assert failed.earlier_names == ("A.orders",)
    back = mirrored_row(SelectedTopic(SOURCE, "A.orders", TARGET, CONFIGS), failed)
    assert back == replace(ROW, earlier_names=("eu.orders",))


@pytest.mark.parametrize("count", [1, 4, 9])
def test_every_source_partition_is_copied_where_counts_are_kept(count: int) -> None:
    seen = SelectedTopic(SOURCE, "A.orders", replace(TARGET, partitions=count), CONFIGS, keeps_count=True)
    row = mirrored_row(seen, None)
    assert row == replace(ROW, target_partitions=count)
    assert row.copied(by_key=True) == 4
    assert row.copied(by_key=False) == min(4, count)


def test_topic_that_cannot_be_created_is_failed_and_lacks_everything() -> None:
    row = mirrored_row(SelectedTopic(SOURCE, "A.orders", None, None, NO_ROOM), None)
    assert row is not None
    assert (row.phase, row.reason, row.target_partitions, row.partitions) == ("failed", "no room", 0, 4)
    assert row.missing == 0
    assert topic_events(None, row)[0].detail == {"cause": NO_ROOM}


def test_partitions_that_cannot_be_added_leave_the_others_mirrored() -> None:
    row = mirrored_row(SelectedTopic(SOURCE, "A.orders", replace(TARGET, partitions=3), CONFIGS, NO_ROOM), ROW)
    assert row is not None
    assert (row.phase, row.reason, row.partitions, row.target_partitions) == ("mirrored", "no room", 3, 3)
    assert row.missing == 1
    (failed,) = topic_events(ROW, row)
    assert failed.detail == {"cause": NO_ROOM, "partitions": [3]}
    assert "partition 3 is not copied" in failed.text
    assert mirrored_row(SelectedTopic(SOURCE, "A.orders", TARGET, CONFIGS), row) == ROW


def test_topic_with_more_missing_partitions_has_another_event() -> None:
    few = replace(ROW, partitions=2, target_partitions=2, missing=2, cause=NO_ROOM)
    seen = SelectedTopic(replace(SOURCE, partitions=7), "A.orders", replace(TARGET, partitions=2), CONFIGS, NO_ROOM)
    row = mirrored_row(seen, few)
    assert row == replace(few, missing=5)
    (failed,) = topic_events(few, row)
    assert failed.detail["partitions"] == [2, 3, 4, 5, 6]
    assert failed.text.startswith("orders -> A.orders: partitions 2 to 6 are not copied")
    assert topic_events(row, row) == []


def test_topics_are_counted_by_phase_with_failing_ones_apart() -> None:
    few = replace(ROW, source_topic="few", cause=NO_ROOM, missing=2)
    failed = replace(ROW, source_topic="none", phase="failed", cause=NO_ROOM)
    newer = replace(ROW, source_topic="newer", phase="unheard-of")
    assert count_by_phase([ROW, few, failed, replace(ROW, phase="deleted"), newer]) == {
        "mirrored": 1, "failing": 1, "creating": 0, "failed": 1, "deleted": 1, "excluded": 0, "left-out": 0,
    }  # fmt: skip
    assert count_by_phase([]) == dict.fromkeys(TOPIC_PHASES, 0)


def test_mm2_120_topic_with_failed_configs_stays_mirrored_with_the_reason() -> None:
    row = mirrored_row(SelectedTopic(SOURCE, "A.orders", TARGET, CONFIGS, configs_failure=DENIED), ROW)
    assert row == replace(ROW, cause=ReasonCode.TOPIC_CONFIGS.because(DENIED))
    (failed,) = topic_events(ROW, row)
    assert (failed.kind, failed.text) == ("TopicFailed", "orders -> A.orders: its configs: not permitted")
    assert topic_events(row, row) == []
    assert mirrored_row(SelectedTopic(SOURCE, "A.orders", TARGET, CONFIGS), row) == ROW
    both = mirrored_row(SelectedTopic(SOURCE, "A.orders", None, None, NO_ROOM, DENIED), None)
    assert both is not None
    assert both.reason == "no room"


def test_deleted_and_excluded_topics_have_one_event() -> None:
    other = replace(ROW, source_topic="pay", target_topic="A.pay")
    (deleted,) = gone_rows([ROW, other], selected=["pay"], on_source=["pay"])
    assert deleted == replace(ROW, phase="deleted")
    (excluded,) = gone_rows([ROW, other], selected=["pay"], on_source=["pay", "orders"])
    assert excluded == replace(ROW, phase="excluded")
    assert gone_rows([deleted], selected=[], on_source=[]) == []
    assert gone_rows([replace(ROW, cause=NO_ROOM, missing=1)], selected=[], on_source=[]) == [deleted]
    assert gone_rows([excluded], selected=[], on_source=[])[0].phase == "deleted"


def kinds(before: MirroredTopic | None, after: MirroredTopic) -> list[str]:
    return [happened.kind for happened in topic_events(before, after)]


FAILED, DELETED, EXCLUDED = (
    replace(ROW, phase="failed", cause=NO_ROOM),
    replace(ROW, phase="deleted"),
    replace(ROW, phase="excluded"),
)


@pytest.mark.parametrize(
    ("before", "after", "events"),
    [
        (None, ROW, []),
        (None, FAILED, ["TopicFailed"]),
        (FAILED, FAILED, []),
        (FAILED, replace(FAILED, cause=DENIED), ["TopicFailed"]),
        (FAILED, ROW, []),
        (ROW, DELETED, ["TopicDeleted"]),
        (ROW, EXCLUDED, ["TopicExcluded"]),
        (EXCLUDED, ROW, ["TopicIncluded"]),
        (EXCLUDED, FAILED, ["TopicFailed", "TopicIncluded"]),
        (EXCLUDED, DELETED, ["TopicDeleted"]),
        (DELETED, ROW, []),
        (ROW, replace(ROW, partitions=5), []),
    ],
)
def test_topic_events_follow_from_row_changes(
    before: MirroredTopic | None, after: MirroredTopic, events: list[str]
) -> None:
    assert kinds(before, after) == events


def test_a_topic_that_came_back_under_another_id_was_recreated() -> None:
    deleted = replace(ROW, phase="deleted")
    (source,) = topic_events(deleted, replace(ROW, source_topic_id="id-2"))
    assert (source.kind, source.detail) == ("TopicRecreated", {"side": "source", "before": "id-s", "after": "id-2"})
    (target,) = topic_events(ROW, replace(ROW, target_topic_id="id-3"))
    assert (target.kind, target.detail["side"]) == ("TopicRecreated", "target")
    assert kinds(replace(ROW, target_topic_id=""), ROW) == []  # a broker without topic ids, or a first creation


def test_each_topic_is_retried_at_its_own_time() -> None:
    retries = RetrySchedule()
    retries.failed_for("a", reported("no"), 0.0)
    retries.failed_for("b", reported("no"), 0.0)
    retries.failed_for("b", reported("still no"), 1.0)
    assert retries.reasons == {"a": reported("no"), "b": reported("still no")}
    assert retries.waiting(0.5) == {"a", "b"}
    assert retries.ready(0.5) == frozenset()
    assert retries.waiting(1.5) == {"b"}
    assert retries.ready(1.5) == {"a"}
    assert retries.waiting(3.0) == frozenset()
    retries.succeeded("a")
    assert list(retries.reasons) == ["b"]
    retries.keep_only([])
    assert not retries.reasons
    assert retries.ready(100.0) == frozenset()
