"""A flow as the API shows it: an old report is never shown as if it were so now."""

from collections.abc import Callable

from lockstep_config import FlowSettings
from lockstep_console.views.flow_body import MOST_NAMED, flow_body, verified_until
from lockstep_ops.status.flow_status import UnknownStatus
from lockstep_ops.status.report import PartitionLine, Report, ServiceLine, Trouble
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, VerifiedPartition
from tests.support.flow_file import file, settings
from tests.support.takeover_rows import rows_of

__all__ = ["file", "settings"]

NOW = 10_000_000


def line(number: int, upstream: int = 9) -> PartitionLine:
    return PartitionLine("orders", number, "copying", "running", 0, 0, upstream, 10, 0, NOW, state="copying")


def report(troubles: int = 0, *lines: PartitionLine) -> Report:
    return Report(
        flow="A->B",
        at_ms=NOW - 1_000,
        services=(ServiceLine("data-plane", "MirrorSourceConnector", "running", 1, ()),),
        topics=(),
        partitions=lines or (line(0),),
        slots=(),
        groups=(),
        acls=None,
        heartbeat="beating",
        held_back=(),
        troubles=tuple(Trouble(f"partition o-{number}", "failed") for number in range(troubles)),
    )


def body(
    settings: Callable[..., FlowSettings], told: Report, away: dict[str, str], **more: object
) -> dict[str, object]:
    return flow_body(settings(), told, {}, away, read_ms=NOW - 1_000, now_ms=NOW, **more)  # type: ignore[arg-type]


def test_flow_that_is_fine_is_so_while_its_clusters_answer(settings: Callable[..., FlowSettings]) -> None:
    told = body(settings, report(), {})
    assert (told["fine"], told["switch_ready"], told["at_ms"]) == (True, True, NOW - 1_000)
    assert str(told["sentence"]).startswith("A->B: fine, ")


def test_target_that_does_not_answer_makes_all_unknown_at_once(settings: Callable[..., FlowSettings]) -> None:
    told = body(settings, report(), {"B": "cluster B cannot be reached"})
    assert (told["fine"], told["switch_ready"], told["unknown"]) == (False, False, "cluster B cannot be reached")
    assert "lag_records" not in told
    assert "fine" not in str(told["sentence"])


def test_unknown_flow_says_when_it_was_known(settings: Callable[..., FlowSettings]) -> None:
    away = {"B": "cluster B cannot be reached"}
    assert body(settings, report(), away, known_ms=NOW - 60_000)["known_ms"] == NOW - 60_000
    assert body(settings, report(), away)["known_ms"] is None


def test_flow_that_was_not_read_yet_says_at_once_that_its_target_does_not_answer(
    settings: Callable[..., FlowSettings],
) -> None:
    unread = UnknownStatus.because(settings().flow, "The flow is not read yet.")
    told = flow_body(settings(), unread, {}, {"B": "cluster B cannot be reached"}, read_ms=0, now_ms=NOW)
    assert told["unknown"] == "cluster B cannot be reached"


def test_source_that_does_not_answer_is_a_trouble_at_once_and_named_once(
    settings: Callable[..., FlowSettings],
) -> None:
    away = {"A": "cluster A cannot be reached"}
    told = body(settings, report(), away)
    assert (told["fine"], told["switch_ready"]) == (False, False)
    assert told["troubles"] == [{"what": "cluster A", "why": "cluster A cannot be reached", "code": ""}]
    assert told["sentence"] == "A->B: cluster A cannot be reached"


def test_long_lists_are_cut_and_counted_unless_long_sections_are_asked_for(
    settings: Callable[..., FlowSettings],
) -> None:
    for sections in ((), ("services", "slots")):
        told = body(settings, report(MOST_NAMED + 7), {}, sections=sections)
        assert len(told["troubles"]) == MOST_NAMED  # type: ignore[arg-type]  # a list
        assert (told["troubles_left_out"], told["decisions_left_out"]) == (7, 0)
    told = body(settings, report(MOST_NAMED + 7), {}, sections=("topics",))
    assert len(told["troubles"]) == MOST_NAMED + 7  # type: ignore[arg-type]  # a list


def test_verified_is_what_the_least_verified_copy_is() -> None:
    def rows_with(*verified: tuple[int, int]) -> dict[str, object]:
        return dict(
            rows_of(
                MirroredTopic(source_topic="orders", target_topic="A.orders", partitions=3),
                *(PartitionProgress(topic="orders", partition=number, upstream=9) for number in range(3)),
                *(
                    VerifiedPartition(topic="orders", partition=number, upstream=9, verified_ms=moment)
                    for number, moment in verified
                ),
            )
        )

    lines = [line(0), line(1), line(2, upstream=-1)]
    assert verified_until(lines, rows_with((0, 500), (1, 300))) == 300  # type: ignore[arg-type]  # rows
    assert verified_until(lines, rows_with((0, 500))) is None  # type: ignore[arg-type]  # rows
    assert verified_until([line(2, upstream=-1)], {}) is None
