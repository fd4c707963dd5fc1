"""Plans of take-over and hand-back as a person is shown them. Pure: it prints nothing."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from lockstep_cli.rendering.row_table import Column, RowTable
from lockstep_ops.formatting import count_text
from lockstep_ops.takeover.handback import HandBack
from lockstep_ops.takeover.migration import MigrationState
from lockstep_ops.takeover.takeover import TakeoverPlan

SHOWN_OFFSETS = 4
"""Offsets of a topic that its line has room for."""

TOPICS = (
    *(Column("topic", "name"), Column("remote topic", "name"), Column(""), Column("partitions", "number")),
    *(Column("copied to"), Column("still to copy", "number")),
)


def plan_shown(plan: TakeoverPlan) -> Iterator[RenderableType]:
    """Yield what taking over would do, without the reasons why it is refused."""
    state, target = plan.state, plan.state.flow.target
    yield Text.assemble((str(state.flow), "bold"), f"  take over from MirrorMaker 2 ({state.place.origin})")
    found = count_text(plan.row.partitions, "partition")
    ours = [f"{state.own} on {target}"]
    if plan.shares_mm2_place:
        ours = ["in the same place"]
    elif plan.row.partitions:
        ours.append(f"{count_text(len(plan.writes), 'offset')} to write" if plan.writes else "all written")
    if plan.alters:
        ours.append(f"{count_text(len(plan.alters), 'offset')} to alter, as the flow was handed back")
    yield _facts(
        ("its progress", f"{state.place} on {target}: {found}"),
        ("ours", ": ".join(ours)),
        ("it runs", _runs(state)),
        ("groups", f"{state.groups:,} with checkpoints"),
    )
    if not plan.row.partitions:
        return
    table = RowTable(TOPICS)
    for one in plan.topics:
        there = "there" if one.remote_exists else "to be made"
        offsets = _offsets([p.offset for p in one.partitions])
        cells = one.topic, one.remote, there, f"{len(one.partitions):,}", offsets, f"{one.to_copy:,}"
        table.add_row(*cells)
    yield Text("")
    yield table
    yield Text(f"{count_text(sum(one.to_copy for one in plan.topics), 'record')} still to copy", "bold")
    yield from _notes(plan.notes)


def hand_back_shown(plan: HandBack) -> Iterator[RenderableType]:
    """Yield what handing back would do, without the reasons why it is refused."""
    held = plan.state
    yield Text.assemble((str(held.flow), "bold"), f"  hand back to MirrorMaker 2 ({held.place.origin})")
    to_write = f"{count_text(len(plan.writes), 'offset')} to write" if plan.writes else "all written"
    yield _facts(
        ("its progress", f"{held.place} on {held.flow.target}: {to_write}"),
        ("it runs", _runs(held)),
    )
    if plan.offsets:
        table = RowTable((Column("partition", "name"), Column("goes on behind", "number"), Column("")))
        written = {tp for tp, _ in plan.writes}
        for (topic, number), offset in plan.offsets:
            there = "" if (topic, number) in written else "there already"
            table.add_row(f"{topic}-{number}", f"{offset:,}", Text(there, "dim"))
        yield Text("")
        yield table
    yield from _notes(plan.notes)


def _facts(*facts: tuple[str, str]) -> RenderableType:
    table = RowTable((Column("", "name"), Column("")))
    for name, text in facts:
        table.add_row(f"  {name}", text)
    return table


def _runs(state: MigrationState) -> str:
    group = state.place.group
    if not state.place.watched:
        return f"not checked: other connectors run in group {group}"
    if state.members:
        return f"yes, group {group} has {count_text(state.members, 'member')}"
    return f"no, group {group} has no members"


def _offsets(offsets: Sequence[int | None]) -> str:
    words = ["none" if offset is None else f"{offset:,}" for offset in offsets]
    return " ".join(words[:SHOWN_OFFSETS]) + (" ..." if len(words) > SHOWN_OFFSETS else "")


def _notes(notes: Sequence[str]) -> Iterator[RenderableType]:
    for note in notes:
        yield Text.assemble(("note: ", "yellow"), note)
