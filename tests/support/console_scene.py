"""Flows whose state topics have rows as the services write them, for a console that is to show them."""

import time
from collections.abc import Sequence
from pathlib import Path

from lockstep_state.events import Event
from lockstep_state.names import Flow, events_topic, state_topic
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.row import Row
from lockstep_state.rows.state_rows import Assignment, MirroredTopic, PartitionProgress, SlotStatus
from tests.support.clusters import Record, create_topic, produce

COMPACTED = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"}


def fan_in_file(folder: Path, sources: Sequence[str], source: str, target: str, *lines: str) -> Path:
    """Return a file with a flow from each of these sources, all at one address, to the cluster `hub`."""
    head = [f"clusters = {', '.join((*sources, 'hub'))}", f"hub.bootstrap.servers = {target}"]
    factors = ("replication.factor", "offset.storage.replication.factor", "heartbeats.topic.replication.factor")
    head += [f"{name} = 1" for name in factors]
    for alias in sources:
        head += [f"{alias}.bootstrap.servers = {source}", f"{alias}->hub.enabled = true"]
        head += [f"{alias}->hub.topics = {alias}-.*", f"hub->{alias}.emit.heartbeats.enabled = false"]
    path = folder / "mm2.properties"
    path.write_text("\n".join([*head, "emit.heartbeats.enabled = false", *lines]) + "\n")
    return path


def create_control_topics(bootstrap: str, flow: Flow) -> None:
    """Create the topics that a console follows."""
    create_topic(bootstrap, state_topic(flow), configs=COMPACTED)
    create_topic(bootstrap, events_topic(flow), configs={"message.timestamp.type": "LogAppendTime"})


def write_rows(bootstrap: str, flow: Flow, rows: Sequence[Row]) -> None:
    """Append rows to the state topic of a flow."""
    produce(bootstrap, state_topic(flow), [_record(row) for row in rows])


def _record(row: Row) -> Record:
    key, value = row.encode()
    return Record(key=key, value=value, partition=0)


def write_raw(bootstrap: str, flow: Flow, key: bytes, value: bytes | None) -> None:
    """Append bytes to the state topic of a flow."""
    produce(bootstrap, state_topic(flow), [Record(key=key, value=value, partition=0)])


def write_events(bootstrap: str, flow: Flow, events: Sequence[Event]) -> None:
    """Append events to the events topic of a flow."""
    records = [Record(key=key, value=value, partition=0) for key, value in (event.encode() for event in events)]
    produce(bootstrap, events_topic(flow), records)


def flow_rows(topic: str, partitions: int, *, slot: int = 0) -> list[Row]:
    """Return the rows of a flow that copies one topic, all of which is copied."""
    now_ms = int(time.time() * 1000)
    numbers = range(partitions)
    return [
        MirroredTopic(
            source_topic=topic,
            target_topic=f"copy.{topic}",
            phase="mirrored",
            partitions=partitions,
            target_partitions=partitions,
            source_topic_id="A" * 22,
            target_topic_id="B" * 22,
            at_ms=now_ms,
        ),
        Assignment(slot=slot, partitions=tuple((topic, number) for number in numbers), at_ms=now_ms),
        SlotStatus(slot=slot, phase="started", partitions=partitions, at_ms=now_ms),
        *(progress_row(topic, number, slot=slot) for number in numbers),
    ]


def progress_row(topic: str, number: int, *, upstream: int = 99, slot: int = 0) -> PartitionProgress:
    """Return the progress of a partition that is copied."""
    return PartitionProgress(
        topic=topic,
        partition=number,
        upstream=upstream,
        downstream=upstream,
        producer_id=4_711,
        producer_epoch=1,
        sequence=upstream,
        source_topic_id="A" * 22,
        target_topic_id="B" * 22,
        source_end=upstream + 1,
        open_run=(0, 0, upstream + 1),
        slot=slot,
        at_ms=int(time.time() * 1000),
    )


def halted_row(topic: str, number: int, case: str = "records-gone") -> PartitionProgress:
    """Return the progress of a partition that halted, because the source has removed records."""
    cause: Reason = ReasonCode.COPY_CUT.to_reason(
        case=case,
        wanted=100,
        source_start=150,
        source_end=200,
        text="the source begins at 150, and 100 is wanted",
        key="lockstep.on.gap",
    )
    assert cause != NO_REASON
    row = progress_row(topic, number)
    return PartitionProgress(
        **{name: getattr(row, name) for name in ("topic", "partition", "upstream", "downstream", "slot", "at_ms")},
        phase="halted",
        case=case,
        cause=cause,
    )
