"""In which term a row or an event is written, and when none may be."""

from pathlib import Path

import pytest

from lockstep_kafka.common.errors import LeadershipLost
from lockstep_runtime.state.leadership import HEARTBEAT_VALID_S, SESSION_TIMEOUT
from lockstep_state.rows.state_rows import DesiredState, FlowPulse, GroupStatus, Leader, Restarts, Row
from tests.support.flow_context import flow_context, leading

ORDERS = GroupStatus(group="orders", phase="waiting")  # falls to partition 0
CHECKPOINT = DesiredState(scope="connector:MirrorCheckpointConnector", phase="paused")


def test_group_heartbeat_limit_is_half_of_the_session_timeout() -> None:
    assert HEARTBEAT_VALID_S <= SESSION_TIMEOUT / 2


def test_row_has_the_term_of_its_share(tmp_path: Path) -> None:
    ctx = leading(tmp_path, "checkpoint", (0, 7), (3, 9), divided=True)
    assert ctx._find_term(ORDERS) == 7
    assert ctx._find_term(CHECKPOINT) == 7
    assert ctx._find_term(Restarts(owner="checkpoint-3")) == 9
    assert leading(tmp_path, "heartbeat", (0, 5))._find_term(FlowPulse(source="A", target="B", phase="beating")) == 5


@pytest.mark.parametrize("row", [ORDERS, CHECKPOINT, Restarts(owner="checkpoint-0"), Leader(service="x", instance="y")])
def test_row_of_a_share_without_leadership_is_refused(tmp_path: Path, row: Row) -> None:
    """With term 0 it would count, whoever leads: only rows that need no term may have none."""
    ctx = leading(tmp_path, "checkpoint", (3, 9), divided=True)
    if isinstance(row, Leader):
        assert ctx._find_term(row) == 0
    else:
        with pytest.raises(LeadershipLost, match="does not lead as checkpoint-0 now"):
            ctx._find_term(row)


def test_row_without_a_recent_group_heartbeat_is_refused(tmp_path: Path) -> None:
    ctx = leading(tmp_path, "heartbeat", (0, 5))
    assert ctx.group_is_current
    ctx.heartbeat_at = ctx.clock.monotonic() - HEARTBEAT_VALID_S - 0.1
    assert not ctx.group_is_current
    with pytest.raises(LeadershipLost, match="does not lead now"):
        ctx._find_term(FlowPulse(source="A", target="B", phase="beating"))


def test_event_has_the_term_of_the_share_it_is_about(tmp_path: Path) -> None:
    ctx = leading(tmp_path, "checkpoint", (0, 7), (3, 9), divided=True)
    assert ctx._term_for_event("orders") == 7
    only_3 = leading(tmp_path, "checkpoint", (3, 9), divided=True)
    assert only_3._term_for_event("orders") == 9, "of another's share: what it is about is told all the same"
    assert flow_context(tmp_path, "checkpoint", divided=True)._term_for_event("orders") == 0
