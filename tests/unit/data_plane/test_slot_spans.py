"""What becomes a span of what a slot copies."""

from dataclasses import dataclass, field
from typing import Any

from lockstep_data_plane.progress.slot_spans import SlotSpans
from lockstep_kafka.common.tracing import Attribute, Tracing

S = 1_000_000_000


@dataclass
class Kept(Tracing):
    spans: list[tuple[str, int, int, str, dict[str, Any]]] = field(default_factory=list)

    def span_interval(self, name: str, began_ns: int, ended_ns: int, error: str = "", **attributes: Attribute) -> None:
        self.spans.append((name, began_ns, ended_ns, error, attributes))


class Slot:
    """A slot whose time and counts a test sets."""

    def __init__(self) -> None:
        self.now, self.kept = 10 * S, Kept()
        self.records = 0
        self.slot_spans = SlotSpans(self.kept, "A->B", 1, "run", lambda: self.now)

    def after(self, seconds: float, records: int = 0, trouble: str = "", *, last: bool = False) -> None:
        self.now += int(seconds * S)
        self.records += records
        self.slot_spans.update(self.records, 10 * self.records, trouble, last=last, partitions=2, held_bytes=5)


def test_a_stretch_is_what_was_copied_since_the_last_one() -> None:
    slot = Slot()
    slot.after(1.25, 300)
    slot.after(1, 40)
    common = {"flow": "A->B", "service": "data-plane", "slot": 1, "run": "run", "partitions": 2, "held_bytes": 5}
    assert slot.kept.spans == [
        ("data-plane copy", 10 * S, int(11.25 * S), "", {**common, "records": 300, "bytes": 3000}),
        ("data-plane copy", int(11.25 * S), int(12.25 * S), "", {**common, "records": 40, "bytes": 400}),
    ]


def test_slot_spans_are_one_a_second_at_most() -> None:
    slot = Slot()
    for _ in range(40):
        slot.after(0.25, 100)
    assert len(slot.kept.spans) == 10
    assert sum(attributes["records"] for *_, attributes in slot.kept.spans) == 4000


def test_slot_spans_without_records_are_none() -> None:
    slot = Slot()
    for _ in range(5):
        slot.after(1)
    assert slot.kept.spans == []


def test_slot_trouble_is_one_error_and_one_span() -> None:
    slot = Slot()
    for trouble in ("", "cut", "cut", "cut", "", ""):
        slot.after(1, 0, trouble)
    assert [error for _, _, _, error, _ in slot.kept.spans] == ["cut", ""]


def test_the_last_one_may_be_short() -> None:
    slot = Slot()
    slot.after(0.1, 5)
    assert slot.kept.spans == []
    slot.after(0.1, 5, last=True)
    assert [attributes["records"] for *_, attributes in slot.kept.spans] == [10]
