"""The ways in which a copy can differ from its source, and the reasons why records are not compared (no I/O)."""

from enum import Enum, StrEnum
from typing import Self


class DifferenceKind(Enum):
    """The kinds of differences of a copy. The value is the word of rows and reports.

    If a record is in both logs and parts of it differ, the word is the names of these parts (`RecordPart`), joined by
    `+`.
    """

    meaning: str

    def __new__(cls, word: str, meaning: str) -> Self:
        member = object.__new__(cls)
        member._value_ = word
        member.meaning = meaning
        return member

    MISSING = "missing", "the target has no such record"
    EXTRA = "extra", "Lockstep's producer has appended a record that the source does not have"
    FOREIGN = "foreign", "another client has written a record into the copy"
    ORDER = "order", "the record is in another place, at most 256 records away"
    OFFSET = (
        "offset",
        "from this record on, the offset runs name another target offset than the record has. Group offsets are"
        " translated by them",
    )
    UNREADABLE = "unreadable", "the bytes of a batch of the target are no records"


class RecordPart(StrEnum):
    """The parts in which two records can differ. The value is the word of rows and reports."""

    KEY = "key"
    VALUE = "value"
    HEADERS = "headers"
    HEADER_ORDER = "header-order"
    TIMESTAMP = "timestamp"


class NotComparedReason(Enum):
    """The reasons why records are not verified, none of which counts as equal.

    The value is the word of rows and reports.
    """

    short: str
    """The words about the records in a line of a report."""
    meaning: str

    def __new__(cls, word: str, short: str, meaning: str) -> Self:
        member = object.__new__(cls)
        member._value_ = word
        member.short = short
        member.meaning = meaning
        return member

    BEFORE_THE_RUNS = (
        "before-the-offset-runs",
        "no offset run goes back so far",
        "no offset run goes back so far, so the first pair of records is not known",
    )
    REMOVED_ON_SOURCE = (
        "removed-on-source",
        "retention or compaction has removed them from the source",
        "retention or compaction has removed the record from the source",
    )
    REMOVED_ON_TARGET = (
        "removed-on-target",
        "retention or compaction has removed them from the target",
        "retention or compaction has removed the record from the target",
    )
    PASSED_OVER = (
        "passed-over",
        "quarantined or skipped by a policy",
        "the record is in the quarantine topic, or a policy skipped it. At depth `count` markers of transactions too",
    )
    NO_RUN = (
        "no-offset-run",
        "no offset run says where they are",
        "the target lacks the record, and [offset runs](../reference/offset-runs.md#chunks-and-thinning) were thinned"
        " there",
    )
    TIMESTAMP = (
        "target-timestamps",
        "the target sets its own timestamps; all else is equal",
        "the target sets its own timestamps (`message.timestamp.type=LogAppendTime`). All else is equal",
    )
    OTHER_TRANSFORM = (
        "other-transform",
        "another version of the transform has made them",
        "another version of the topic's transform, or of its header rules, has made the record",
    )
    UNREADABLE = (
        "unreadable",
        "their bytes are no records",
        "the bytes of a batch of the source are no records, or those of its copy",
    )
