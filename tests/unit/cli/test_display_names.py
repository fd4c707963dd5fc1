"""Names of groups may hold anything, and tables stay tables."""

import pytest

from lockstep_cli.rendering.status import report_parts
from lockstep_ops.formatting import visible, without_name
from lockstep_state.rows.state_rows import GroupStatus
from tests.support.printed import printed
from tests.support.reports import progress, reported, shown, topic

ODD = [
    "a\tb",
    "a\nb",
    "a\r\nb",
    "a\x1b[2Jb",
    "a\x00b",
    "a\u2028b",
    "a\u202eb",
    "a\u200bb",
    "a\x85b",
    "g" * 400,
    "\n" * 300,
]


@pytest.mark.parametrize("name", ODD)
def test_a_name_is_one_line(name: str) -> None:
    shown = visible(name)
    assert shown.isprintable()
    assert len(shown.splitlines()) == 1


def test_a_usual_name_is_shown_as_it_is() -> None:
    for name in ("orders", "consumer group 7", "zażółć-グループ", "x" * 60):
        assert visible(name) == name
    assert visible("a\tb\x1b") == "a\\tb\\x1b"


def test_a_reason_does_not_repeat_the_name() -> None:
    assert without_name("orders-0: the log was cut", "partition", "orders-0") == "the log was cut"
    assert without_name("group g: refused", "group", "g") == "refused"
    for why in ("orders-01: other", "it is refused: g: why", ""):
        assert without_name(why, "partition", "orders-0") == why


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_row_of_a_table_stays_one_line_whatever_the_name(width: int) -> None:
    rows = [GroupStatus(group=name, phase="translated", exact=1) for name in ODD]
    text = printed(report_parts(reported(*rows, topic(), progress()), ["groups"], only_trouble=False), width)
    assert all(line.isprintable() for line in text.split("\n"))
    begins = [line for line in text.split("\n") if line and not line.startswith(" ")]
    assert len(begins) >= len(ODD)


def test_long_topic_names_are_not_broken() -> None:
    names = [f"team-{number}-" + "orders." * 6 + f"v{number}" for number in range(3)]
    report = reported(*(row for name in names for row in (topic(name), progress(name))))
    lines = shown(report, "topics", "partitions").splitlines()
    for name in names:
        assert any(line.startswith(f"{name} ") for line in lines)
        assert any(line.startswith(f"{name}-0 ") for line in lines)
