"""A verification is summed up by topic, and is equal only if everything was compared."""

from dataclasses import replace

import pytest

from lockstep_cli.rendering.verification_shown import as_markdown, verdict
from lockstep_ops.exit_codes import Exit
from lockstep_ops.verify.record_pair import RecordPair, ShownRecord, pair_lines, record_places
from lockstep_ops.verify.verification_report import build_verification
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, Row, VerifiedPartition
from tests.support.reasons import reported

FLOW = Flow("A", "B")
TOPIC = MirroredTopic(source_topic="orders", target_topic="A.orders", partitions=2, target_partitions=2)
TOPIC = replace(TOPIC, source_topic_id="s", target_topic_id="t")
PROGRESS = PartitionProgress(topic="orders", partition=0, upstream=99, downstream=99, sequence=99, open_run=(0, 0, 100))
PROGRESS = replace(PROGRESS, source_topic_id="s", target_topic_id="t")
ROW = replace(
    VerifiedPartition(topic="orders", partition=0, first=0, upstream=99, downstream=99, records=100, bytes=5000),
    source_topic_id="s",
    target_topic_id="t",
)
OLD = replace(ROW, upstream=999, differences=(("offset", 1),), found=(("offset", 7, 6),))
"""A difference that was found in the logs of before."""


def rows(*more: Row) -> dict[str, Row]:
    every = (*(TOPIC, PROGRESS, replace(PROGRESS, partition=1), ROW, replace(ROW, partition=1)), *more)
    return {row.key(): row for row in every}


def test_topic_whose_partitions_are_all_equal_is_fine() -> None:
    report = build_verification(FLOW, rows())
    assert report.exit_code is Exit.FINE
    assert report.topics[0].records == 200
    assert verdict(report) == "A->B: equal, 200 records verified by bytes"


def test_difference_of_any_kind_is_trouble_and_is_listed() -> None:
    wrong = replace(ROW, differences=(("missing", 2), ("value", 1)), found=(("missing", 5, -1), ("value", 7, 6)))
    report = build_verification(FLOW, rows(wrong))
    assert report.exit_code is Exit.TROUBLE
    assert (report.topics[0].missing, report.topics[0].differ, report.topics[0].extra) == (2, 1, 0)
    assert [(difference.kind, difference.source_offset) for difference in report.differences] == [
        ("missing", 5),
        ("value", 7),
    ]
    assert "orders-0  value  source 7, target 6" in as_markdown(report)


def test_partition_that_is_not_compared_to_its_end_is_not_verified() -> None:
    report = build_verification(FLOW, rows(replace(PROGRESS, upstream=149)))
    assert report.exit_code is Exit.NOT_VERIFIED
    assert report.topics[0].behind == 50


def test_request_that_is_carried_out_is_equal_though_the_copy_has_grown() -> None:
    asked = replace(ROW, request="r", done=True, source_end=100)
    every = rows(replace(PROGRESS, upstream=149), asked, replace(asked, partition=1))
    report = build_verification(FLOW, every, request="r")
    assert (report.exit_code, report.topics[0].behind) == (Exit.FINE, 0)
    assert build_verification(FLOW, every).topics[0].behind == 50, "a report is about all that is copied"
    assert build_verification(FLOW, every, request="other").topics[0].behind == 50
    short = replace(asked, source_end=160)
    assert build_verification(FLOW, rows(short), request="r").topics[0].behind == 60, "the copy is not there"


def test_records_beyond_the_copy_are_trouble_and_named_with_their_count() -> None:
    report = build_verification(FLOW, rows(replace(ROW, beyond=3, beyond_first=100)))
    assert report.exit_code is Exit.TROUBLE
    assert verdict(report) == "A->B: 3 differences in 200 records"
    assert "orders-0  beyond the copy  3 records from target 100 on" in as_markdown(report)
    assert report.as_json()["beyond"] == [{"topic": "orders", "partition": 0, "records": 3, "target_offset": 100}]


def test_partition_never_compared_is_not_verified() -> None:
    every = rows()
    del every["verify/orders/1"]
    report = build_verification(FLOW, every)
    assert (report.exit_code, report.topics[0].behind) == (Exit.NOT_VERIFIED, 100)


def test_records_that_could_not_be_compared_are_named() -> None:
    passed_over = replace(ROW, not_verified=(("passed-over", 3),), stretches=(("passed-over", 10, 12, 3),))
    report = build_verification(FLOW, rows(passed_over))
    assert report.exit_code is Exit.NOT_VERIFIED
    assert "source 10 to 12: quarantined or skipped by a policy (3)" in as_markdown(report)


@pytest.mark.parametrize("decisions", [0, 3], ids=["compared", "without topic ids yet"])
def test_partition_that_waits_is_not_verified(decisions: int) -> None:
    row = replace(ROW, decisions=decisions, cause=reported("cluster B: nobody answers"))
    report = build_verification(FLOW, rows(row))
    assert report.exit_code is Exit.NOT_VERIFIED
    assert report.waiting == {"orders-0": "cluster B: nobody answers"}


OTHER_LOG = pytest.mark.parametrize(
    ("progress", "topic"),
    [
        pytest.param(replace(PROGRESS, upstream=9, source_topic_id="new"), TOPIC, id="source created again"),
        pytest.param(replace(PROGRESS, upstream=9, target_topic_id="new"), TOPIC, id="target created again"),
        pytest.param(replace(PROGRESS, gaps=(("target-truncated", 1),)), TOPIC, id="a case decided since"),
        pytest.param(PROGRESS, replace(TOPIC, source_topic_id="new"), id="nothing copied of the new topic"),
        pytest.param(replace(PROGRESS, phase="halted", case="target-recreated"), TOPIC, id="halted"),
    ],
)


@OTHER_LOG
def test_comparison_of_a_log_that_is_gone_is_no_comparison(progress: PartitionProgress, topic: MirroredTopic) -> None:
    report = build_verification(FLOW, rows(OLD, progress, topic))
    assert report.exit_code is Exit.NOT_VERIFIED
    assert report.topics[0].behind == progress.upstream + 1 + 100 * (topic != TOPIC)
    assert (report.topics[0].differ, report.differences) == (0, ())


@OTHER_LOG
def test_place_of_a_record_is_not_that_in_a_log_that_is_gone(progress: PartitionProgress, topic: MirroredTopic) -> None:
    assert record_places(rows(OLD, progress, topic), ("orders", 0), 7) != (7, 6)


def test_flow_without_topics_is_not_verified() -> None:
    report = build_verification(FLOW, {})
    assert report.exit_code is Exit.NOT_VERIFIED
    assert "nothing is verified" in verdict(report)


def test_place_of_a_record_is_that_of_its_difference_or_run() -> None:
    wrong = replace(ROW, found=(("offset", 7, 6),))
    assert record_places(rows(wrong), ("orders", 0), 7) == (7, 6)
    assert record_places(rows(wrong), ("orders", 0), 6, is_target=True) == (7, 6)
    assert record_places(rows(), ("orders", 0), 8) == (8, 8)
    assert record_places(rows(), ("orders", 0), 100) == (100, -1)
    assert record_places(rows(), ("orders", 0), 100, is_target=True) == (-1, 100)


def test_pair_of_records_marks_what_differs_and_masks_values() -> None:
    record = ShownRecord(7, 5, b"key", b"secret", ())
    pair = RecordPair("orders", 0, "A.orders", 7, 6, record, replace(record, offset=6, value=b"other"))
    lines = list(pair_lines(pair, values=False))
    assert not pair.is_equal
    assert [line[:13] for line in lines if line.startswith("  - ")] == ["  - value    "]
    assert not any("secret" in line for line in lines)
    assert any("secret" in line for line in pair_lines(pair, values=True))
    assert "secret" not in str(pair.as_json(values=False))
