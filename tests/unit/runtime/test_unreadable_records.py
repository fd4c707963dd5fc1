"""What is passed over is said once, counted, and over when its key is written again."""

import logging

import pytest

from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.state.unreadable_records import LOGGED_AT_MOST, PRESENT_AT_MOST, UnreadableRecords
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_state.names import Flow

WHY = ValueError("odd")


def record(offset: int, key: bytes = b"k", value: bytes | None = b"v") -> Record:
    return Record("state", 0, offset, key, value, 0)


def reader(counted: list[str] | None = None) -> UnreadableRecords:
    topics = [] if counted is None else counted
    return UnreadableRecords(
        FlowLog("topic-sync", Flow("A", "B")), lambda topic, records: topics.extend([topic] * records)
    )


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [str(line.__dict__.get("text")) for line in caplog.records if line.levelno == logging.WARNING]


def test_unreadable_record_is_logged_once_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    counted: list[str] = []
    unreadable = reader(counted)
    for _ in range(3):  # each session replays the topic
        unreadable.begin("state")
        unreadable.pass_over(record(7), WHY, stays=True)
    assert warnings(caplog) == ["state partition 0 offset 7: odd"]
    assert unreadable.counts == {"state": 1}
    assert counted == ["state"]


@pytest.mark.parametrize("value", [b"right", None], ids=["row", "tombstone"])
def test_unreadable_key_is_over_when_it_is_written_again(value: bytes | None) -> None:
    unreadable = reader()
    unreadable.pass_over(record(7), WHY, stays=True)
    unreadable.pass_over(record(8, b"other"), WHY, stays=True)
    unreadable.was_read(record(9, value=value))
    assert unreadable.present == ("state partition 0 offset 8: odd",)
    assert unreadable.counts == {"state": 2}


def test_unreadable_record_of_a_log_that_forgets_is_only_counted() -> None:
    unreadable = reader()
    unreadable.pass_over(record(7), WHY, stays=False)
    assert (unreadable.present, unreadable.counts) == ((), {"state": 1})


def test_flood_of_unreadable_records_is_counted_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    unreadable = reader()
    for offset in range(LOGGED_AT_MOST + 50):
        unreadable.pass_over(record(offset), WHY, stays=False)
    assert len(warnings(caplog)) == LOGGED_AT_MOST + 1
    assert unreadable.counts == {"state": LOGGED_AT_MOST + 50}


def test_keys_that_cannot_be_read_are_named_up_to_a_bound() -> None:
    unreadable = reader()
    for number in range(PRESENT_AT_MOST + 50):
        unreadable.pass_over(record(number, b"%d" % number), WHY, stays=True)
    present = list(unreadable.present)
    assert len(present) == PRESENT_AT_MOST + 1
    assert present[-1] == f"more than {PRESENT_AT_MOST} keys, which are not named"
    assert unreadable.counts == {"state": PRESENT_AT_MOST + 50}
    unreadable.begin("state")
    assert list(unreadable.present) == []
