"""The measurement of `lockstep doctor --bandwidth`.

A scratch topic on the target is written, read and removed. Then the source is read. The scratch topic is removed
however the measurement ends. Topics that a killed run left are removed first. It changes the target and reads what it
changed, so it asks the clusters themselves and not their snapshots.
"""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from lockstep_config.clients.librdkafka import uses_tls
from lockstep_config.credentials.permissions import PREFIXED, Grant, grant_command
from lockstep_config.flow import client_settings
from lockstep_config.flow.mirroring_rules import mirrored_topics
from lockstep_config.flow.model import FlowSettings
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.admin.topic_creation import create_fitting_topics
from lockstep_kafka.common.admin_types import NewTopic
from lockstep_kafka.common.errors import ClusterError, NotPermitted, RequestRefused
from lockstep_ops.doctor.checks.bandwidth import BandwidthFacts, MeasuredRate
from lockstep_ops.doctor.checks.scratch_topic import PREFIX, ScratchRun, leftover_topics
from lockstep_ops.doctor.rate_meter import BATCH_BYTES, ReadMeter, WriteMeter
from lockstep_state.kafka.librdkafka_errors import error_text

WRITE_S, READ_BACK_S, READ_S = 1.2, 0.6, 1.0
MOST_PARTITIONS = 8

DATES = "message.timestamp.type"
CONFIGS = {
    "cleanup.policy": "delete",
    "retention.ms": "600000",
    DATES: "LogAppendTime",
    "max.message.bytes": str(2 * BATCH_BYTES),
}
"""The configs of the scratch topic. If it could not be removed, retention soon empties it."""

ROLE = "doctor"
VISIBLE_WITHIN_S = 3.0
OPERATIONS = ("Create", "Write", "Read", "Delete")


class BandwidthMeasurement:
    """A measurement of one flow, both clusters of which accept the login."""

    def __init__(self, settings: FlowSettings, source: Admin, target: Admin) -> None:
        self._settings = settings
        self._source = source
        self._target = target
        self._stopping = threading.Event()
        self._is_dated = True
        """True if the target gives records of the scratch topic their append time, by which its clock is read."""
        self._run = ScratchRun(socket.gethostname().partition(".")[0], os.getpid(), round(time.time() * 1e3))
        self._facts = BandwidthFacts(
            flow=str(settings.flow),
            source=source.alias,
            target=target.alias,
            topic=self._run.topic,
            has_tls=uses_tls(settings.source.properties) or uses_tls(settings.target.properties),
            tasks_max=settings.data_plane.tasks_max,
            cores=os.cpu_count() or 1,
        )

    async def measure(self) -> BandwidthFacts:
        """Measure the rates. It takes about three seconds."""
        try:
            leftovers = leftover_topics(await self._target.topic_names(), self._run, _is_alive)
            self._facts = replace(self._facts, leftovers=leftovers)
            await self._remove(leftovers)
            await self._measure_on_scratch_topic()
        except ClusterError as exc:
            self._fail(str(exc), is_denied=isinstance(exc, NotPermitted))
        except KafkaException as exc:
            self._fail(error_text(exc.args[0]))
        return self._facts

    async def _measure_on_scratch_topic(self) -> None:
        creating = asyncio.ensure_future(self._create())
        try:
            await asyncio.shield(creating)
            await self._write_and_read()
        finally:
            self._stopping.set()
            await asyncio.wait({creating})  # interrupted in between, the topic would come afterwards
            await self._remove([self._run.topic])

    async def _create(self) -> None:
        brokers = await self._target.broker_count()
        partitions = min(MOST_PARTITIONS, 2 * brokers)
        factor = min(self._settings.topic_sync.replication_factor, brokers)
        topic = NewTopic(self._run.topic, partitions, factor, CONFIGS)
        creation = await create_fitting_topics(self._target, [topic])
        if (trouble := creation.failed.get(topic.name)) is not None:
            raise trouble
        self._is_dated = DATES not in creation.refused.get(topic.name, {})
        self._facts = replace(self._facts, partitions=partitions)
        deadline = time.monotonic() + VISIBLE_WITHIN_S
        while self._run.topic not in await self._target.topic_names() and time.monotonic() < deadline:
            await asyncio.sleep(0.1)

    async def _write_and_read(self) -> None:
        settings, topic = self._settings, self._run.topic
        writer = WriteMeter(self._target.alias, client_settings.target_producer(settings, ROLE), topic, self._stopping)
        clock, write = await asyncio.to_thread(writer.measure, WRITE_S)
        self._facts = replace(self._facts, clock=clock if self._is_dated else None, write=write)
        own = [TopicPartition(topic, number, 0) for number in range(self._facts.partitions)]
        reader = ReadMeter(self._target.alias, client_settings.target_consumer(settings, ROLE), own, self._stopping)
        self._facts = replace(self._facts, read_back=await asyncio.to_thread(reader.measure, READ_BACK_S))
        self._facts = replace(self._facts, read=await self._read_source())

    async def _read_source(self) -> MeasuredRate:
        try:
            positions = await self._largest_partitions()
            if not positions:
                return MeasuredRate(trouble="no topic that the flow mirrors has a record", is_too_little=True)
            conf = client_settings.source_consumer(self._settings, ROLE)
            meter = ReadMeter(self._source.alias, conf, positions, self._stopping)
            return await asyncio.to_thread(meter.measure, READ_S)
        except ClusterError as exc:
            return MeasuredRate(trouble=str(exc))

    async def _largest_partitions(self) -> Sequence[TopicPartition]:
        """Return the mirrored partitions with the most records, from their begin offsets."""
        counts = await self._source.topic_names()
        mirrored = mirrored_topics(self._settings, counts, await self._target.topic_names())
        every = [(name, number) for name in sorted(mirrored) for number in range(counts[name])]
        begins, ends = await asyncio.gather(self._source.begin_offsets(every), self._source.end_offsets(every))
        sizes = {tp: ends[tp] - begins[tp] for tp in every if tp in begins and tp in ends}
        largest = sorted((tp for tp in sizes if sizes[tp] > 0), key=lambda tp: -sizes[tp])[:MOST_PARTITIONS]
        return [TopicPartition(topic, number, begins[topic, number]) for topic, number in largest]

    async def _remove(self, topics: Sequence[str]) -> None:
        """Delete each topic. A topic that does not exist is no fault."""
        outcome = await self._target.delete_topics(topics)
        for name, trouble in outcome.troubles().items():
            if isinstance(trouble, RequestRefused) and trouble.code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                continue
            text = f"{name} on {self._target.alias} could not be removed: {trouble}"
            self._fail(text, is_denied=isinstance(trouble, NotPermitted))

    def _fail(self, trouble: str, *, is_denied: bool = False) -> None:
        access = self._target.access
        commands = [
            grant_command(Grant("topic", PREFIX, operation, "", PREFIXED), access.principal, access.bootstrap)
            for operation in OPERATIONS
        ]
        fix = f"For a login without these rights: {'; '.join(commands)}" if is_denied else ""
        self._facts = replace(self._facts, trouble=self._facts.trouble or trouble, fix=fix)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
