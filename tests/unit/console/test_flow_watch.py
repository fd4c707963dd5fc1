"""A watch shows the report that it has now."""

from collections.abc import Callable

from lockstep_config import FlowSettings
from lockstep_console.flow_watch import DatedReport, FlowWatch
from lockstep_console.flow_watches import FlowWatches
from lockstep_ops.status.flow_status import UnknownStatus
from tests.support.flow_file import file, settings

__all__ = ["file", "settings"]


def report(watch: FlowWatch, reason: str) -> DatedReport:
    return DatedReport(None, reason, 1, UnknownStatus.because(watch.settings.flow, reason))


async def test_each_report_is_shown_wherever_it_lies_in_memory(settings: Callable[..., FlowSettings]) -> None:
    watch = FlowWatches([settings()]).all[0]
    for number in range(100):
        watch._dated = report(watch, f"reason {2 * number}")
        assert f"reason {2 * number}" in watch.shown().text
        watch._dated = report(watch, f"reason {2 * number + 1}")  # nobody looks at this one


async def test_a_flow_is_made_once_for_all_who_look(settings: Callable[..., FlowSettings]) -> None:
    watch = FlowWatches([settings()]).all[0]
    shown = watch.shown()
    assert watch.shown() is shown
    watch.note_cluster("A", "cluster A cannot be reached")
    assert watch.shown() is not shown
