"""The plans of a take-over and of a hand-back, as lines and tables. Pure."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from lockstep_cli.rendering.table import Column, RowTable, facts
from lockstep_ops.formatting import count_text
from lockstep_ops.takeover.handback import HandBack
from lockstep_ops.takeover.migration import MigrationState
from lockstep_ops.takeover.takeover import TakeoverPlan, TopicPlan
from lockstep_state.offsets import TopicPartition

SHOWN_OFFSETS = 4
"""Offsets of a topic that its line has room for."""

TOPICS: Sequence[Column[TopicPlan]] = (
    Column("topic", lambda topic: topic.topic, "name"),
    Column("remote topic", lambda topic: topic.remote, "name"),
    Column("", lambda topic: "there" if topic.remote_exists else "to be made"),
    Column("partitions", lambda topic: f"{len(topic.partitions):,}", "number"),
    Column("copied to", lambda topic: _offsets([partition.offset for partition in topic.partitions])),
    Column("still to copy", lambda topic: f"{topic.to_copy:,}", "number"),
)


def takeover_parts(plan: TakeoverPlan) -> Iterator[RenderableType]:
    """Yield what taking over would do, without the reasons why it is refused."""
    state, target = plan.state, plan.state.flow.target
    yield Text.assemble((str(state.flow), "bold"), f"  take over from MirrorMaker 2 ({state.location.origin})")
    partitions = count_text(plan.row.partitions, "partition")
    own = [f"{state.own} on {target}"]
    if plan.shares_mm2_location:
        own = ["in the same place"]
    elif plan.row.partitions:
        own.append(f"{count_text(len(plan.writes), 'offset')} to write" if plan.writes else "all written")
    if plan.alters:
        own.append(f"{count_text(len(plan.alters), 'offset')} to alter, as the flow was handed back")
    yield facts(
        ("  its progress", f"{state.location} on {target}: {partitions}"),
        ("  ours", ": ".join(own)),
        ("  it runs", _runs(state)),
        ("  groups", f"{state.groups:,} with checkpoints"),
    )
    if not plan.row.partitions:
        return
    yield Text("")
    yield RowTable(TOPICS, plan.topics)
    yield Text(f"{count_text(sum(topic.to_copy for topic in plan.topics), 'record')} still to copy", "bold")
    yield from _notes(plan.notes)


def hand_back_parts(plan: HandBack) -> Iterator[RenderableType]:
    """Yield what handing back would do, without the reasons why it is refused."""
    state = plan.state
    yield Text.assemble((str(state.flow), "bold"), f"  hand back to MirrorMaker 2 ({state.location.origin})")
    to_write = f"{count_text(len(plan.writes), 'offset')} to write" if plan.writes else "all written"
    yield facts(
        ("  its progress", f"{state.location} on {state.flow.target}: {to_write}"),
        ("  it runs", _runs(state)),
    )
    if plan.offsets:
        yield Text("")
        yield _offsets_table(plan)
    yield from _notes(plan.notes)


def _offsets_table(plan: HandBack) -> RenderableType:
    to_write = {partition for partition, _ in plan.writes}
    columns: Sequence[Column[tuple[TopicPartition, int]]] = (
        Column("partition", lambda row: "{}-{}".format(*row[0]), "name"),
        Column("goes on behind", lambda row: f"{row[1]:,}", "number"),
        Column("", lambda row: Text("" if row[0] in to_write else "there already", "dim")),
    )
    return RowTable(columns, plan.offsets)


def _runs(state: MigrationState) -> str:
    group = state.location.group
    if not state.location.watched:
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
