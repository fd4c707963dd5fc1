"""The status of a slot says that nothing resumes only when the rows that show it are in the state topic."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from lockstep_data_plane.slot.slot import Slot
from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.topics.topic_reader import Record
from lockstep_state.rows.state_rows import Assignment, Row, SlotStatus
from tests.support.flow_context import flow_context


class QuietSlot(Slot):
    """Has no partitions. Its rows are taken, unless `refuses`."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch) -> None:
        super().__init__(SlotSpec(settings=flow_context(path, "data-plane").settings, slot=0, run="r", producer_id=1))
        self.said: list[int] = []
        self.refuses = False
        patch.setattr(self._control_writer, "write", self._write)
        patch.setattr(self._control_writer, "flush", self._write_rows)

    async def _write(self, row: Row) -> None:
        assert isinstance(row, SlotStatus)
        self.said.append(row.resuming)

    async def _write_rows(self, partitions: Iterable[Any]) -> None:
        if self.refuses:
            raise ClusterError("B", "the row was not appended")

    def assign(self, generation: int) -> None:
        key, value = Assignment(slot=0, generation=generation).encode()
        self._fold([Record("state", 0, generation, key, value, 0)])

    async def flush_and_speak(self, *, flushes: bool = True) -> None:
        if flushes:
            await self._flush()
        await self._write_status("started")


@pytest.fixture
async def slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QuietSlot:
    return QuietSlot(tmp_path, monkeypatch)


async def test_status_before_the_first_rows_does_not_vouch(slot: QuietSlot) -> None:
    await slot.flush_and_speak(flushes=False)
    await slot.flush_and_speak()
    await slot.flush_and_speak(flushes=False)
    assert slot.said == [-1, 0, -1]


async def test_status_after_refused_rows_does_not_vouch(slot: QuietSlot) -> None:
    slot.refuses = True
    await slot.flush_and_speak()
    slot.refuses = False
    await slot.flush_and_speak()
    assert slot.said == [-1, 0]


async def test_status_of_a_new_assignment_does_not_vouch(slot: QuietSlot) -> None:
    """Its partitions are not taken up yet, so that no row tells of them."""
    slot.assign(4)
    await slot.flush_and_speak()
    slot._reconcile()
    await slot.flush_and_speak()
    assert slot.said == [-1, 0]
