"""MM2's progress that waits for its topic."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from lockstep_data_plane.progress import mirror_progress_writer
from lockstep_data_plane.progress.mirror_progress_writer import MirrorProgressWriter
from lockstep_kafka.common.errors import NotAppended
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_state.codecs.mm2_codec import encode_source_progress
from lockstep_state.names import Flow


class Topic:
    """The progress topic: it refuses everything for a while."""

    def __init__(self) -> None:
        self.refuses = True
        self.refused = asyncio.Event()
        self.records: list[tuple[bytes, bytes]] = []

    async def append_all(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        if self.refuses:
            self.refused.set()
            raise NotAppended("B", "progress", "no leader")
        self.records += records


async def test_progress_of_a_partition_that_left_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next slot has written newer progress by the time when the topic accepts something."""
    monkeypatch.setattr(mirror_progress_writer, "PAUSE_S", 0.01)
    topic = Topic()
    log: Any = topic
    writer = MirrorProgressWriter(log, "A", "MirrorSourceConnector", FlowLog("slot", Flow("A", "B")))
    writer.offer({("t", 0): 40, ("t", 1): 50})
    async with asyncio.timeout(10.0):
        await topic.refused.wait()
    writer.remove(("t", 0))
    topic.refuses = False
    await writer.settle(10.0)
    assert topic.records == [encode_source_progress("A", "t", 1, 50)]
