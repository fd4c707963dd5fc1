"""What a client of the stream is told, how often, and how much of it waits."""

import json
from typing import Any, cast

import pytest

from lockstep_console import changes
from lockstep_console.changes import MOST_EVENTS, MOST_ROWS, ChangeStream, message
from lockstep_console.flow_watch import DatedReport, FlowWatch, ShownFlow
from lockstep_console.views.lag_body import TAIL
from lockstep_kafka.topics.topic_reader import Record
from lockstep_rules.offsets.lag_history import LagSample, with_sample
from lockstep_runtime.util.clock import now_ms
from lockstep_state.rows.state_rows import Row


class Rows(dict[str, Row]):
    """Rows by key, as a watch has them."""

    find = dict.get


class Shown:
    """A flow whose body a test sets."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.content: dict[str, Any] = {"flow": name, "at_ms": 1, "fine": True}
        self.dated = DatedReport(None, "", 1)
        self.rows = Rows()

    def shown(self) -> ShownFlow:
        return ShownFlow.of(self.content)


def stream(
    *names: str, rows: tuple[str, ...] = (), worst: int = 0, lag_of: tuple[str, ...] = ()
) -> tuple[ChangeStream, list[FlowWatch]]:
    watches = [cast(FlowWatch, Shown(name)) for name in names]
    return ChangeStream(watches, rows, worst, lag_of), watches


def record(offset: int, key: bytes = b"", value: bytes | None = b"{}") -> Record:
    return Record("topic", 0, offset, key, value, 7)


def test_status_is_told_once_a_second_and_only_if_it_changed() -> None:
    told, (watch,) = stream("A->B")
    told.on_report(watch)
    told.on_report(watch)
    assert told.next_message(0.0) == ("status", f"[{watch.shown().text}]")
    assert told.next_message(0.0) is None
    told.on_report(watch)
    cast(Any, watch).content = {**cast(Any, watch).content, "fine": False}
    assert told.next_message(0.9) is None
    assert told.next_message(1.0) == ("status", f"[{watch.shown().text}]")
    cast(Any, watch).content = {**cast(Any, watch).content, "at_ms": 2}
    told.on_report(watch)
    assert told.next_message(2.5) is None  # nothing but the time of reading has changed
    told.on_report(watch)
    assert told.next_message(1.0 + changes.UNCHANGED_INTERVAL_S) == ("status", f"[{watch.shown().text}]")


def test_reports_of_many_flows_are_one_message() -> None:
    told, watches = stream("A->B", "B->A", "C->A")
    for watch in watches[:2]:
        told.on_report(watch)
    _, body = told.next_message(0.0) or ("", "[]")
    assert [flow["flow"] for flow in json.loads(body)] == ["A->B", "B->A"]
    told.on_report(watches[2])
    assert told.next_message(0.9) is None
    _, body = told.next_message(1.0) or ("", "[]")
    assert [flow["flow"] for flow in json.loads(body)] == ["C->A"]


def test_rows_of_wanted_kinds_are_told_with_their_last_value() -> None:
    told, (watch,) = stream("A->B", rows=("switch",))
    told.on_rows(watch, [record(1, b"partition/o/0"), record(2, b"switch/x", b'{"a":1}')])
    told.on_rows(watch, [record(3, b"switch/x", b'{"a":2}'), record(4, b"switch/y", None)])
    assert told.next_message(0.0) == (
        "rows",
        [
            {"flow": "A->B", "key": "switch/x", "value": {"a": 2}},
            {"flow": "A->B", "key": "switch/y", "value": None},
        ],
    )
    told.on_rows(watch, [record(5, b"partition/o/0")])
    assert told.next_message(5.0) is None


def test_new_samples_of_the_lag_are_told_to_who_shows_that_flow() -> None:
    told, (watch, other) = stream("A->B", "B->A", lag_of=("A->B",))
    at_ms = now_ms() - 10_000
    block = with_sample(None, at_ms, LagSample(1_500, 7, 0, 12))
    cast(Any, watch).rows[block.key()] = block
    changed = [record(1, block.key().encode())]
    told.on_rows(other, changed)
    assert told.next_message(0.0) is None
    told.on_rows(watch, [record(2, b"lag-worst/3")])
    assert told.next_message(0.0) is None
    told.on_rows(watch, changed)
    said = told.next_message(0.0)
    assert said is not None
    kind, body = said
    assert (kind, body["flow"], len(body["lag_ms"])) == ("lag", "A->B", TAIL)
    place = (at_ms - body["begins_ms"]) // 10_000
    assert (body["lag_ms"][place], body["lag_records"][place], body["records_per_s"][place]) == (1_500, 7, 12)
    assert body["lag_ms"].count(None) == TAIL - 1, "what nobody measured is unknown"


@pytest.mark.parametrize(
    "value", [b'{"a":NaN}', b'{"a":1e999}', b'{"a":"\\ud800"}', b'{"a":' + b"[" * 500 + b"]" * 500 + b"}", b"\xff"]
)
def test_row_that_no_browser_could_read_is_told_as_text(value: bytes) -> None:
    told, (watch,) = stream("A->B", rows=("switch",))
    told.on_rows(watch, [record(1, b"switch/x", value)])
    said = told.next_message(0.0)
    assert said is not None
    (block,) = [line.removeprefix(b"data: ") for line in message(*said).splitlines() if line.startswith(b"data: ")]
    (row,) = json.loads(block)
    assert row["value"] == {"undecoded": value.decode(errors="replace")[:1_000]}


def test_client_that_reads_nothing_is_greeted_anew_and_holds_no_more() -> None:
    told, (watch,) = stream("A->B", rows=("verify",))
    for number in range(MOST_ROWS + 1):
        told.on_rows(watch, [record(number, b"verify/t/%d" % number)])
    for number in range(MOST_EVENTS + 50):
        told.on_events(watch, [record(number, b"", json.dumps({"version": 1}).encode())])
    kinds: list[str] = []
    while (said := told.next_message(float(len(kinds)))) is not None and len(kinds) < 5:
        kinds.append(said[0])
        if said[0] == "events":
            assert len(said[1]) == MOST_EVENTS
    assert "hello" in kinds
    assert "events" in kinds


def test_what_the_console_publishes_reaches_those_who_show_the_flow() -> None:
    told, _ = stream("A->B")
    told.on_published("command", "B->A", {"id": "1"})
    assert told.next_message(0.0) is None
    told.on_published("command", "A->B", {"id": "2"})
    assert told.next_message(0.0) == ("command", {"id": "2"})


def test_message_is_one_block_whatever_a_name_holds() -> None:
    text = message("events", [{"kind": "a\nevent: hello\n\n", "about": "\u2028</script>"}]).decode()
    assert text.count("\n\n") == 1
    assert text.endswith("\n\n")
    assert len(text.rstrip("\n").split("\n")) == 2


def test_half_of_a_surrogate_pair_is_sent_as_an_escape() -> None:
    assert message("command", {"why": "\ud800"}) == b'event: command\ndata: {"why":"\\ud800"}\n\n'
