"""A flow's context without its clusters: what it reads, a test writes into it."""

from pathlib import Path

from lockstep_config import FlowSettings, load
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.tracing import NO_TRACING, Tracing
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.flow.context import Clock, FlowContext
from lockstep_runtime.state.leadership import Leadership, leader_label
from lockstep_runtime.telemetry.metrics import Metrics
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import Row

FILE = "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"


def flow_settings(folder: Path, lines: str = "") -> FlowSettings:
    """Of the flow in `mm2.properties`. `lines`: more of the file, from line 5."""
    path = folder / "mm2.properties"
    path.write_text(FILE + lines)
    return load(path, {}).flow(Flow("A", "B"))


def flow_context(
    folder: Path,
    service: str,
    *,
    divided: bool = False,
    pauses_itself: bool = False,
    lines: str = "",
    tracing: Tracing = NO_TRACING,
    clock: Clock | None = None,
) -> FlowContext:
    """One that stands by, and has read nothing yet. `lines`: as of `flow_settings`."""
    nowhere = {"bootstrap.servers": "127.0.0.1:1"}
    return FlowContext(
        service,
        flow_settings(folder, lines),
        instance="one",
        source=Admin("A", nowhere),
        target=Admin("B", nowhere),
        leadership=Leadership(service, divided=divided),
        metrics=Metrics(),
        clock=clock or Clock(),
        divided=divided,
        pauses_itself=pauses_itself,
        tracing=tracing,
    )


def leading(
    folder: Path,
    service: str,
    *terms: tuple[int, int],
    divided: bool = False,
    lines: str = "",
    clock: Clock | None = None,
) -> FlowContext:
    """Return a context that leads the partitions, each in its term, and was heard from just now."""
    ctx = flow_context(folder, service, divided=divided, lines=lines, clock=clock)
    ctx.leadership.assigned({partition for partition, _ in terms})
    for partition, term in terms:
        ctx.leadership.claimed(partition, term)
        ctx.leadership.read_claim(leader_label(service, partition, divided=divided), "one", term)
    ctx.heartbeat_at = ctx.clock.monotonic()
    return ctx


def read_row(ctx: FlowContext, row: Row) -> None:
    """Let the context read one more record of its state topic."""
    ctx.state.receive([state_record(row, ctx.state.position + 1)])


def state_record(row: Row, offset: int, *, gone: bool = False) -> Record:
    """Return the row as a record of a state topic, or its tombstone (`gone`)."""
    key, value = row.encode()
    return Record("state", 0, offset, key, None if gone else value, 0)
