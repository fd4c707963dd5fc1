"""A slot that begins anew with other certificates goes on with its counts."""

from pathlib import Path
from typing import Any

import pytest

from lockstep_data_plane.slot import worker
from lockstep_data_plane.slot.slot import Slot
from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_kafka.common.tracing import NO_TRACING
from lockstep_state.rows.state_rows import SlotStatus
from tests.support.flow_context import flow_context


async def test_renewed_slot_continues_the_count_of_offset_syncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have one run, whose counts must not fall: else the counter stands still until it is reached again."""
    written: list[SlotStatus] = []
    lives = [5, 2, 1]

    class ShortSlot(Slot):
        @property
        def renews(self) -> bool:
            return bool(lives)

        async def run(self) -> int:
            async def write(row: Any) -> None:
                written.append(row)

            monkeypatch.setattr(self._control_writer, "write", write)
            await self._write_status("started")
            assert self._control_writer.syncs is not None
            self._control_writer.syncs.sent += lives.pop(0)
            return 10

    monkeypatch.setattr(worker, "Slot", ShortSlot)
    spec = SlotSpec(settings=flow_context(tmp_path, "data-plane").settings, slot=0, run="r", producer_id=1)
    assert await worker._run(spec, NO_TRACING) == 30
    assert [(row.run, row.syncs) for row in written] == [("r", 0), ("r", 5), ("r", 7)]
