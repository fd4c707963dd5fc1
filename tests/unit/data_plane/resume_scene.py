"""One partition that is to resume: its row, both logs, and everything that the resume does, line by line."""

import asyncio
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import cast

from lockstep_config import FlowSettings
from lockstep_data_plane.core.append_sequence import IdentityRouting
from lockstep_data_plane.core.events import PartitionEvent, Resumed, Unplaced
from lockstep_data_plane.core.keyed_routing import KeyedRouting
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.provenance import OWN, FlowIds
from lockstep_data_plane.core.record_transform import RuleTransform
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.progress.control_topic_writer import ControlTopicWriter
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.resume.gap_resolver import HaltPartition
from lockstep_data_plane.resume.resumer import Resumer
from lockstep_data_plane.resume.transaction_runner import TransactionRunner
from lockstep_rules.record_rules import RecordRules
from lockstep_runtime.state.unreadable_records import UnreadableRecords
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_state.codecs.mm2_codec import encode_source_progress, encode_source_progress_reset
from lockstep_state.errors import RetriableError
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress, Row
from tests.support.flow_context import flow_settings
from tests.support.memory_cluster import MemoryCluster, MemoryLog
from tests.support.skipping_loop import run_skipping_waits

OURS, OTHER = 4000, 4001
"""The flow's producer id, and the one for records that it passes on."""
FIRST_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""The first topic id of each cluster in memory."""
TRANSACTIONS = "B.exactly.once.source.support = enabled"
PROGRESS = "mm2-offsets.A.internal"
AGAIN_AFTER_S = 31.0
"""Between two tries: longer than a row is waited for."""


def row(**fields_of_it: object) -> PartitionProgress:
    """Ten records copied, 0 to 9, without anything special; but for these fields."""
    usual = PartitionProgress(
        topic="t",
        partition=0,
        upstream=9,
        downstream=9,
        producer_id=OURS,
        producer_epoch=1,
        sequence=9,
        source_topic_id=FIRST_ID,
        target_topic_id=FIRST_ID,
    )
    return replace(usual, **fields_of_it)  # type: ignore[arg-type]  # each case has fields of its own


def source_of(count: int) -> MemoryLog:
    """Records 0 and so on, each in a batch."""
    log = MemoryLog()
    for number in range(count):
        log.append([number])
    return log


def target_of(count: int, producer: tuple[int, int] = (OURS, 1)) -> MemoryLog:
    """Copies of records 0 and so on."""
    log = MemoryLog()
    return log.append(range(count), producer) if count else log


class _Provenance:
    """Knows these producer ids of the flow, at first without those that another slot gets itself meanwhile."""

    def __init__(self, trail: list[str], others: Iterable[int], meanwhile: Iterable[int]) -> None:
        self._trail = trail
        self._others = frozenset(others)
        self._meanwhile = frozenset(meanwhile)

    async def look_up(self, producer_ids: Iterable[int]) -> None:
        return

    def copy_producer_id(self, batch: Batch) -> int | None:
        return OWN

    async def claim(self, producer_id: int) -> None:
        self._trail.append(f"fenced {producer_id}")

    async def own_producer_ids(self) -> frozenset[int]:
        origins, self._others = self._others, self._others | self._meanwhile
        return origins


class _Written:
    """In the place of `ControlTopicWriter`: what is written is a line each; progress lies in the target's log."""

    def __init__(self, scene: "Scene") -> None:
        self._scene = scene
        self.progress = _Progress(scene)

    async def write(self, written: Row) -> None:
        assert isinstance(written, PartitionProgress)
        self._scene.trail.append(f"row {_differs(written, self._scene.row)}")

    def event(self, kind: str, subject: str, text: str = "", **detail: object) -> None:
        facts = " ".join(f"{name}={value}" for name, value in detail.items())
        self._scene.trail.append(f"{kind} {text.removeprefix(subject + ': ')} | {facts}")


class _Progress:
    """In the place of `MirrorProgressWriter`."""

    def __init__(self, scene: "Scene") -> None:
        self._scene = scene

    async def write(self, tp: tuple[str, int], upstream: int) -> None:
        self._scene.trail.append(f"progress {upstream}")
        self._scene.commit(upstream)


@dataclass
class Scene:
    """`lines`: of the flow's file. `others`: producer ids of the flow besides its own, `meanwhile`: those that come
    up only while the target's log is read. `committed`: MM2's progress.
    `remembers`: the slot had the partition already, and this is its own progress. `same_name`: the target's topic has
    the source's name. `without`: requests that no cluster names in ApiVersions, `closes_on`: on which each closes the
    connection. `reads_back`: the trial of the target has
    chosen that. `quarantines`: it is drained, and goes on behind these offsets. `later`: what changes before the second
    try."""

    row: PartitionProgress | None
    source: MemoryLog
    target: MemoryLog
    lines: Iterable[str] = ()
    others: Iterable[int] = ()
    meanwhile: Iterable[int] = ()
    committed: int | None = None
    remembers: PartitionProgress | None = None
    counting_failed: bool = False
    same_name: bool = False
    without: Collection[str] = ()
    closes_on: Collection[str] = ()
    by_key: bool = False
    rests: bool = False
    reads_back: bool = False
    quarantines: tuple[tuple[int, int], ...] = ()
    tombstones_kept_ms: int = 0
    rules: RecordRules | None = None
    """The rules of the topic's records."""
    topic_ids: tuple[str, str] = (FIRST_ID, FIRST_ID)
    """As topic-sync saw them."""
    later: "Callable[[Scene], None] | None" = None
    trail: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clusters = MemoryCluster("A"), MemoryCluster("B")
        for cluster in self.clusters:
            cluster.unknown_apis, cluster.closes_on = self.without, self.closes_on
        self.target_topic = "t" if self.same_name else "A.t"
        self.clusters[0].create("t", self.source)
        self.clusters[1].create(self.target_topic, self.target)
        self.progress = MemoryLog()
        self.clusters[1].create(PROGRESS, self.progress)
        self.rows: dict[tuple[str, int], PartitionProgress] = {}
        if self.row is not None:
            self.rows["t", 0] = self.row
        if self.committed is not None:
            self.commit(self.committed)

    def commit(self, upstream: int) -> None:
        """MM2's progress says so from now on."""
        key, value = (
            encode_source_progress("A", "t", 0, upstream)
            if upstream >= 0
            else encode_source_progress_reset("A", "t", 0)
        )
        self.progress.append_records([PlainRecord(0, 1000, key, value, ())])

    def recreate(self, side: str, log: MemoryLog) -> "Scene":
        """That topic is another one now."""
        cluster, topic = (self.clusters[0], "t") if side == "source" else (self.clusters[1], self.target_topic)
        cluster.ids.clear()
        cluster.create(topic, log)
        if side == "target":
            cluster.create(PROGRESS, self.progress)
        return self

    def play(self) -> list[str]:
        """Resume, at most twice; what was done, and what came out of it."""
        with tempfile.TemporaryDirectory() as folder:
            settings = flow_settings(Path(folder), "\n".join([*self.lines, ""]))
        settings = replace(settings, data_plane=replace(settings.data_plane, read_back=self.reads_back))
        run_skipping_waits(self._resume(settings))
        for cluster in self.clusters:
            self.trail += [
                f"unsupported on {cluster.alias}: {api} {case}" for api, case in cluster.unsupported.take_cases()
            ]
        return self.trail

    async def _resume(self, settings: FlowSettings) -> None:
        partition = self._partition(settings)
        source, target = self.clusters
        writer = cast(ControlTopicWriter, _Written(self))
        io = _StepsAlone([partition])
        transactions = TransactionRunner(
            settings, target, writer, io, UnreadableRecords(FlowLog("data-plane", settings.flow)).pass_over_at
        )
        resumer = Resumer(settings, FlowIds(OURS), source, target, writer, self.rows, io, transactions)
        topic = MirroredTopic(
            source_topic="t",
            target_topic=self.target_topic,
            source_topic_id=self.topic_ids[0],
            target_topic_id=self.topic_ids[1],
            partitions=1,
            target_partitions=1,
        )
        for attempt in range(2):
            if attempt:
                await asyncio.sleep(AGAIN_AFTER_S)
                if self.later is not None:
                    self.later(self)
            try:
                resumed = await self._found(resumer, partition, topic)
            except RetriableError as exc:
                self.trail.append(f"again: {exc}")
                continue
            except HaltPartition as exc:
                self.trail.append(f"halted {exc.case.value}: {exc}")
                resumed = None
            else:
                self._came_out(resumed)
            if partition.acked.written != (self.row if resumed is None else resumed[0]):
                self.trail.append(f"written {_differs(partition.acked.written, self.row)}")
            break

    async def _found(
        self, resumer: Resumer, partition: PartitionState, topic: MirroredTopic
    ) -> tuple[PartitionProgress, LastAppend] | None:
        if self.quarantines:
            row_behind = await resumer.gap_resolver.row_behind_refusal(partition, self.quarantines)
            return None if row_behind is None else (row_behind, LastAppend(row_behind.sequence, row_behind.downstream))
        if not self.rests:
            return await resumer.resume(partition, topic)
        located = await resumer.located(partition, asks_source=True)
        if isinstance(located, Unplaced):
            self.trail.append(f"unplaced beyond={located.beyond}")
            return None
        return located

    def _came_out(self, resumed: tuple[PartitionProgress, LastAppend] | None) -> None:
        if resumed is None:
            self.trail.append("nothing is found")
            return
        self.trail.append(f"from {_differs(resumed[0], self.row)}")
        end = resumed[1]
        last = "" if end.last is None else f" last={end.last.last_offset} behind={end.behind}"
        last += f" places={tuple(map(tuple, end.compared_runs))}" if end.compared_runs else ""
        self.trail.append(f"ends sequence={end.sequence} downstream={end.downstream} others={end.others}{last}")

    def _partition(self, settings: FlowSettings) -> PartitionState:
        partition = PartitionState(
            *("t", 0, self.target_topic),
            settings.data_plane.offset_lag_max,
            routing=KeyedRouting(0) if self.by_key else IdentityRouting(0),
            limits=TargetLimits(tombstones_kept_ms=self.tombstones_kept_ms, rules=self.rules),
            provenance=_Provenance(self.trail, self.others, self.meanwhile),
            transform=None if self.rules is None else RuleTransform(self.rules),
        )
        if self.remembers is not None:
            end = LastAppend(self.remembers.sequence, self.remembers.downstream)
            partition.step(Resumed(self.remembers, end))
        if self.counting_failed:
            partition.counting_failed = True
        return partition


class _StepsAlone:
    """In the place of the loop: no effect is carried out."""

    others_end_by: float | None = None

    def __init__(self, partitions: Sequence[PartitionState]) -> None:
        self._partitions = partitions

    def step(self, partition: PartitionState, event: PartitionEvent) -> None:
        partition.step(event)

    def pump(self) -> None:
        return

    def resuming(self) -> Sequence[PartitionState]:
        return self._partitions


def _differs(written: PartitionProgress, before: PartitionProgress | None) -> str:
    """The fields that are not as before."""
    before = PartitionProgress(topic="t", partition=0) if before is None else before
    named = [f.name for f in fields(written) if getattr(written, f.name) != getattr(before, f.name)]
    return " ".join(f"{name}={getattr(written, name)}" for name in named) or "as it was"
