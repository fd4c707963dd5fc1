"""A source, a target and all slots that copy between them, in memory: one step at a time, in any order."""

from lockstep_data_plane.core.events import RunsWritten
from lockstep_data_plane.core.phases import Phase
from lockstep_data_plane.core.provenance import appended_since
from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_rules.offsets.offset_runs import RunMap
from lockstep_state.offsets import UpstreamOffset
from lockstep_state.rows.state_rows import OffsetRuns, PartitionProgress
from tests.support.batch_bytes import LZ4, ZSTD
from tests.support.offset_truth import exact_places
from tests.unit.data_plane.copying_model import Slot
from tests.unit.data_plane.modelled_logs import OUR_EPOCH, OURS, SourceLog, TargetLog

LIMITS = (TargetLimits(), TargetLimits(170), TargetLimits(250, LZ4), TargetLimits(400, ZSTD))
"""The smallest takes any single record of the model."""

ROUTES: dict[str, tuple[str, ...]] = {
    "fetch": ("fetch", "deliver"),
    "send": ("send",),
    "ahead": ("fetch", "deliver", *["send"] * 8),
    "appended": ("broker",) * 8,
    "answered": ("answer",) * 8,
    "round": ("fetch", "deliver", *["send"] * 8, *["broker"] * 8, *["answer"] * 8),
    "one refused": ("refuse", *["broker"] * 8, *["answer"] * 8),
    "one refused for good": ("refuse_for_good", *["broker"] * 8, *["answer"] * 8),
    "write": ("write",),
    "cut": ("cut",),
    "crash": ("crash",),
    "zombie": ("zombie",),
    "stray": ("stray",),
    "leave": ("leave",),
    "rest": ("rest",),
    "foreign": ("foreign",),
}
"""What is likely to happen together, for schedules made of single steps alone seldom get far."""
HAPPENINGS = (*("round", "ahead", "appended", "answered") * 2, *ROUTES)


class World:
    """A source, a target, the state topic's row, and every slot that believes the partition is its own."""

    def __init__(self, source: SourceLog, first_sequence: int = -1) -> None:
        self.source = source
        self.target = TargetLog(first_sequence)
        self.checked = 0
        self.row = PartitionProgress(
            topic="t", partition=0, producer_id=OURS, producer_epoch=OUR_EPOCH, sequence=first_sequence
        )
        self.first_row = self.row
        self.runs: dict[str, OffsetRuns] = {}
        self.strays: list[bytes] = []
        self.slots = [Slot(source, self.target, self.row, LIMITS[1])]

    def happens(self, what: str, choice: int) -> None:
        for step in ROUTES[what]:
            self.step(step, choice)

    def step(self, what: str, choice: int) -> None:
        slot = self.slots[choice % len(self.slots)]
        if what in ("deliver", "send", "broker", "refuse", "refuse_for_good", "answer"):
            getattr(slot, what)()
        elif what == "fetch":
            slot.fetch(1 + choice)
        elif what == "write":
            self._write(slot)
        elif what == "cut":
            self.strays += slot.cut()
        elif what == "stray" and self.strays:
            self.target.append(self.strays.pop(choice % len(self.strays)))
        elif what == "foreign":
            self.target.somebody_else_appends()
        else:
            self._come_or_go(what, choice, slot)

    def _come_or_go(self, what: str, choice: int, slot: Slot) -> None:
        if what == "leave":
            slot.leave()
            if slot.partition.phase is Phase.RELEASED:
                self._write(slot)
                what = "crash"
        if what == "rest":
            slot.come_to_rest()
            self._write(slot)
            what = "crash"
        if what == "crash":
            self.slots.remove(slot)
            self.strays += [bytes(sent.data) for sent in slot.socket]
        if what == "crash" or (what == "zombie" and len(self.slots) < 3):
            self.slots.append(Slot(self.source, self.target, self.row, LIMITS[choice], self.runs.values()))

    def _write(self, slot: Slot) -> None:
        """As `control_topic_writer.py` does: runs that have ended, then progress."""
        due = slot.partition.acked.runs.due()
        self.runs.update((row.key(), row) for row in due)
        slot.partition.step(RunsWritten(due))
        self.row = slot.partition.row()

    def translated(self) -> tuple[dict[int, int | None], dict[int, int]]:
        """Where groups of the source stand in the target: as what is written says, and exactly."""
        run_map = RunMap.build(self.row, self.runs.values())
        copied = zip(self.source.visible, self.target.ours, strict=False)
        exact = exact_places([(r.offset, downstream, 1) for r, (downstream, _) in copied]) if self.target.ours else {}
        translations = {u: run_map.translate(UpstreamOffset(u)) for u in exact}
        return {u: None if t is None else t.downstream for u, t in translations.items()}, exact

    def finish(self) -> None:
        """Every other slot ends; one goes on undisturbed, but for what was still in sockets."""
        for stray in [*self.strays, *(bytes(sent.data) for slot in self.slots for sent in slot.socket)]:
            self.target.append(stray)
        slot = Slot(self.source, self.target, self.row, TargetLimits(300), self.runs.values())
        for _ in range(20 * (len(self.source.batches) + len(self.source.visible)) + 20):
            if slot.all_done():
                break
            for what in (slot.deliver, slot.send, slot.broker, slot.answer):
                what()
            slot.fetch(2)
            self.check(slot)
        assert slot.all_done(), "the copy comes to its end"
        assert slot.partition.row().upstream == self.source.end - 1, "also what was passed over is decided"
        assert len(self.target.ours) == len(self.source.visible), "everything is there"
        self.slots = [slot]
        self._write(slot)

    def check(self, *slots: Slot) -> None:
        """The target holds a beginning of what is visible in the source, each record once and in order; and what a row
        calls upstream, downstream and sequence belong together; and no group is led too far."""
        new = self.target.ours[self.checked :]
        meant = self.source.visible[self.checked : self.checked + len(new)]
        assert [r._replace(offset=0) for _, r in new] == [r._replace(offset=0) for r in meant]
        self.checked += len(new)
        for slot in slots or self.slots:
            assert not slot.troubles
            row = slot.partition.row()
            ours_until = sum(1 for offset, _ in self.target.ours if offset <= row.downstream)
            wanted_until = sum(1 for r in self.source.visible if r.offset <= row.upstream)
            assert appended_since(self.first_row, row.sequence, row.others) == ours_until == wanted_until
            assert row.upstream < self.source.end
        positions, exact = self.translated()
        assert all(downstream is None or downstream <= exact[u] for u, downstream in positions.items())


def run(made_of: list[tuple[str, int]], happens: list[tuple[str, int]], first_sequence: int = -1) -> World:
    world = World(SourceLog.from_parts(made_of), first_sequence)
    for what, choice in happens:
        world.happens(what, choice)
        world.check()
    world.finish()
    world.check()
    if not {"zombie", "foreign"} & {what for what, _ in happens}:
        positions, exact = world.translated()
        assert positions == exact, "nobody else wrote, so every position translates exactly"
    return world
