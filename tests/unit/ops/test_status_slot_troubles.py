"""Troubles of a slot are the reason of its partitions, and a trouble of the flow."""

from lockstep_state.rows.state_rows import Assignment, MirroredTopic, SlotStatus
from tests.support import reasons
from tests.support.reports import reported

WHY = "cluster A speaks no Fetch that this release knows"
CAUSES = (("t-0", reasons.reported(WHY)), ("x", reasons.reported("y")))


def test_partition_that_a_slot_cannot_begin_has_its_reason() -> None:
    report = reported(
        MirroredTopic(source_topic="t", target_topic="A.t", partitions=1, target_partitions=1),
        Assignment(slot=0, partitions=(("t", 0),)),
        SlotStatus(slot=0, phase="started", partitions=1, at_ms=1_000_000, causes=CAUSES),
        replicas={"topic-sync": 1},
    )
    (line,) = report.partitions
    assert (line.phase, line.why, line.trouble) == ("not begun", WHY, WHY)
    assert [trouble.why for trouble in report.troubles if trouble.what == "slot 0"] == [f"t-0: {WHY}, and 1 more"]


def test_slot_without_troubles_is_no_trouble() -> None:
    report = reported(
        MirroredTopic(source_topic="t", target_topic="A.t", partitions=1, target_partitions=1),
        Assignment(slot=0, partitions=(("t", 0),)),
        SlotStatus(slot=0, phase="started", partitions=1, at_ms=1_000_000),
        replicas={"topic-sync": 1},
    )
    assert not [trouble for trouble in report.troubles if trouble.what == "slot 0"]
