"""A slot ends with the error of each task that runs beside its copying."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from lockstep_data_plane.slot.slot import Slot
from lockstep_data_plane.slot.slot_spec import SlotSpec
from tests.support.flow_context import flow_context


async def nothing(*_: Any, **__: Any) -> None:
    pass


async def never_ends(*_: Any) -> None:
    await asyncio.Event().wait()


async def fails(*_: Any) -> None:
    raise OSError("no such disk")


@pytest.mark.parametrize("failing", ["follower", "end_silent", "certificates"])
async def test_slot_ends_with_the_error_of_a_watcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    settings = flow_context(tmp_path, "data-plane").settings
    slot = Slot(SlotSpec(settings=settings, slot=0, run="r", producer_id=1))
    for name in ("write", "flush"):
        monkeypatch.setattr(slot._control_writer, name, nothing)
    monkeypatch.setattr(slot._control_writer, "event", lambda *_, **__: None)
    monkeypatch.setattr(slot._loop, "end_silent", fails if failing == "end_silent" else never_ends)
    monkeypatch.setattr(slot._certificates, "watch", fails if failing == "certificates" else never_ends)
    lost = asyncio.create_task(fails() if failing == "follower" else never_ends())
    with pytest.raises(OSError, match="no such disk"):
        await asyncio.wait_for(slot._copy_until_asked(lost), 10.0)
