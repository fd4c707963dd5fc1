"""Whether the groups of the source are known, as the rounds of checkpoint write it down."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from lockstep_checkpoint.app import CheckpointFlow
from lockstep_protocol.rows.state_rows import Row, SourceGroupsStatus
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.util.errors import ClusterUnreachable, NotPermitted
from tests.support.flow_context import leading, read_row

DENIED = NotPermitted("A", "to list", "groups")
AWAY = ClusterUnreachable("A", "a:9092", "refused")


class Scene:
    """A replica that leads share 0. What its next rounds come to is given before."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ctx: FlowContext = leading(folder, "checkpoint", (0, 5), divided=True)
        self.flow = CheckpointFlow(self.ctx)
        self.written: list[tuple[int, str, str]] = []
        self.outcome: Exception | None = None
        self.lost = False

        async def emit(owned: Any = None) -> None:
            assert owned is None, "a round is over all groups of ours"
            if self.lost:
                self.ctx.leadership.assigned(())
            if self.outcome is not None:
                raise self.outcome

        async def write_all(rows: list[Row]) -> None:
            for row in rows:
                assert isinstance(row, SourceGroupsStatus)
                read_row(self.ctx, row)
                self.written.append((row.share, row.phase, row.reason))

        monkeypatch.setattr(self.flow, "_emit", emit)
        monkeypatch.setattr(self.ctx.state, "write_all", write_all)

    async def round(self, outcome: Exception | None = None) -> list[tuple[int, str, str]]:
        """What one round writes."""
        self.outcome = outcome
        self.written.clear()
        with nullcontext() if outcome is None else pytest.raises(type(outcome)):  # the rounds want to know of it
            await self.flow._emit_all()
        return list(self.written)


async def test_round_writes_down_whether_the_groups_were_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, monkeypatch)
    assert await scene.round() == [(0, "read", "")]
    assert await scene.round() == [], "that is known"
    assert await scene.round(DENIED) == [(0, "failing", str(DENIED))]
    assert await scene.round(DENIED) == []
    assert await scene.round() == [(0, "read", "")]


async def test_round_without_an_answer_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, monkeypatch)
    assert await scene.round(AWAY) == []
    await scene.round()
    assert await scene.round(AWAY) == []


async def test_share_that_was_lost_meanwhile_is_left_to_its_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, monkeypatch)
    scene.lost = True
    assert await scene.round() == []
