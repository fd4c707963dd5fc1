"""One record of the source and the one in its place on the target, for a person to compare."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Place

from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_kafka.librdkafka.client_factory import create_client
from lockstep_ops.clusters import REFUSED_S, source_client, target_client
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.record_parts import PARTS, message_headers, part_text, parts_as_json
from lockstep_rules.offsets.offset_runs import RunMap
from lockstep_rules.offsets.verified_copy import find_verification
from lockstep_state.kafka.librdkafka_errors import error_text
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import MirroredTopic, OffsetRuns, PartitionProgress, Row

READ_WITHIN_S = 15.0


@dataclass(frozen=True, slots=True)
class ShownRecord:
    """A record as a consumer sees it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def as_json(self, *, values: bool) -> dict[str, Any]:
        return {"offset": self.offset, **parts_as_json(self, values=values)}


@dataclass(frozen=True, slots=True)
class RecordPair:
    """Both records, with their offsets.

    A record is None if the log has none at that offset. An offset is -1 if nothing tells where the record would be.
    """

    topic: str
    partition: int
    remote: str
    source_offset: int
    target_offset: int
    source: ShownRecord | None
    target: ShownRecord | None

    @property
    def is_equal(self) -> bool:
        source, target = self.source, self.target
        if source is None or target is None:
            return False
        return (source.timestamp, source.key, source.value, source.headers) == (
            target.timestamp,
            target.key,
            target.value,
            target.headers,
        )

    def as_json(self, *, values: bool) -> dict[str, Any]:
        return {
            "partition": f"{self.topic}-{self.partition}",
            "remote": f"{self.remote}-{self.partition}",
            "source_offset": self.source_offset,
            "target_offset": self.target_offset,
            "equal": self.is_equal,
            "source": None if self.source is None else self.source.as_json(values=values),
            "target": None if self.target is None else self.target.as_json(values=values),
        }


def pair_lines(pair: RecordPair, *, values: bool) -> Iterator[str]:
    """Yield the parts of both records below each other. Those that differ are marked."""
    logs = {"source": pair.source, "target": pair.target}
    places = {"source": pair.source_offset, "target": pair.target_offset}
    names = {"source": pair.topic, "target": pair.remote}
    for log, record in logs.items():
        offset_text = f"offset {places[log]:,}" if places[log] >= 0 else "no offset known"
        yield f"{log}  {names[log]}-{pair.partition}  {offset_text}" + ("" if record else ": no such record")
    source, target = pair.source, pair.target
    if source is None or target is None:
        for record in (source, target):
            if record is not None:
                yield from (f"    {part:<10} {_shown(getattr(record, part), values)}" for part in PARTS)
        return
    for part in PARTS:
        source_part, target_part = getattr(source, part), getattr(target, part)
        if source_part == target_part:
            yield f"    {part:<10} {_shown(source_part, values)}"
        else:
            yield f"  - {part:<10} {_shown(source_part, values)}"
            yield f"  + {part:<10} {_shown(target_part, values)}"


def _shown(part: Any, values: bool) -> str:
    return part_text(part, (lambda data: repr(data)[1:]) if values else None)


def record_places(
    rows: Mapping[str, Row], tp: TopicPartition, offset: int, *, is_target: bool = False
) -> tuple[int, int]:
    """Return the offsets of a record on the source and on the target, of which one is given.

    The other one comes from a difference that was found, else from the offset runs. It is -1 if neither has it.
    """
    verified = find_verification(rows, tp)
    if verified is not None:
        for _, source, target in verified.found:
            if offset == (target if is_target else source) and min(source, target) >= 0:
                return source, target
    progress = rows.get(f"{PartitionProgress.kind}/{tp[0]}/{tp[1]}")
    if isinstance(progress, PartitionProgress):
        chunks = [row for row in rows.values() if isinstance(row, OffsetRuns) and (row.topic, row.partition) == tp]
        for run in RunMap.build(progress, chunks).records:
            index = offset - (run.downstream if is_target else run.upstream)
            if 0 <= index < run.length:
                return run.upstream + index, run.downstream + index
    return (-1, offset) if is_target else (offset, -1)


async def read_pair(
    settings: FlowSettings, rows: Mapping[str, Row], tp: TopicPartition, offset: int, *, is_target: bool = False
) -> RecordPair:
    """Read both records.

    Raises:
        CannotUse: The flow does not mirror the partition, or the name of a header is no UTF-8.
        ClusterUnreachable: A cluster does not answer.
    """
    topic = rows.get(f"{MirroredTopic.kind}/{tp[0]}")
    if not isinstance(topic, MirroredTopic) or topic.phase != "mirrored" or tp[1] >= topic.partitions:
        raise CannotUse(f"{settings.flow} does not mirror {tp[0]}-{tp[1]}")
    places = record_places(rows, tp, offset, is_target=is_target)
    conf = (
        client_settings.source_consumer(settings, "verify-show"),
        client_settings.target_consumer(settings, "verify-show"),
    )
    flow = settings.flow
    # A consumer would try again until its time is over, and a thread that waits for it holds up the end of the command.
    await asyncio.gather(*(client(settings).require_open(for_s=REFUSED_S) for client in (source_client, target_client)))
    source, target = await asyncio.gather(
        asyncio.to_thread(_read, conf[0], flow.source, tp, places[0]),
        asyncio.to_thread(_read, conf[1], flow.target, (topic.target_topic, tp[1]), places[1]),
    )
    return RecordPair(tp[0], tp[1], topic.target_topic, *places, source, target)


def _read(conf: Mapping[str, Any], alias: str, tp: TopicPartition, offset: int) -> ShownRecord | None:
    """Return the record at the offset, or None if the log has none there."""
    if offset < 0:
        return None
    own = {
        "group.id": "lockstep-verify-show",
        **conf,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": "read_uncommitted",
    }
    consumer = create_client(Consumer, own, alias)
    try:
        consumer.assign([Place(*tp, offset)])
        message: Message | None = consumer.poll(READ_WITHIN_S)
    except KafkaException as exc:
        raise ClusterUnreachable(alias, str(conf.get("bootstrap.servers", "")), error_text(exc.args[0])) from exc
    finally:
        consumer.close()
    if message is None:
        raise ClusterUnreachable(alias, str(conf.get("bootstrap.servers", "")), f"no answer within {READ_WITHIN_S:g} s")
    error = message.error()
    if error is not None:
        if error.code() in (KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            return None
        raise ClusterUnreachable(alias, str(conf.get("bootstrap.servers", "")), error_text(error))
    if message.offset() != offset:
        return None
    return ShownRecord(offset, message.timestamp()[1], message.key(), message.value(), message_headers(message))
