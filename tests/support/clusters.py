"""What tests and the demo do with a cluster: create topics, write records and read a topic back.

All functions take the bootstrap address first, open their own client and close it again; they block, so async tests
call them through `asyncio.to_thread` where they may take long.
"""

import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from tests.support.eventually import wait_until

Headers = tuple[tuple[str, bytes | None], ...]
Isolation = Literal["read_committed", "read_uncommitted"]
COORDINATOR_MOVES = (  # on a new cluster it does so at first
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
NO_LEADER_YET = (  # the last one: librdkafka has listed it, and looks at what it knew of before
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError._UNKNOWN_PARTITION,
)
FORMED_WITHIN = 60.0  # seconds
LED_WITHIN = 5.0  # seconds; usual is 0.1, but the cores may be shared
TIMEOUT = 60.0  # seconds for one admin call; a flush has three times as many


@dataclass(frozen=True, slots=True)
class Record:
    """One record as written or as read. `partition` and `timestamp_ms` of None leave the choice to the producer."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    offset: int | None = None

    def same_as(self) -> tuple[bytes | None, bytes | None, Headers, int | None]:
        """Return what a faithful copy has in common with it."""
        return self.key, self.value, self.headers, self.timestamp_ms


def unique_name(stem: str = "topic") -> str:
    """Return a name no other test uses, so that all tests can share the brokers."""
    return f"{stem}-{uuid.uuid4().hex[:8]}"


def admin(bootstrap: str) -> AdminClient:
    """Return a confluent AdminClient for what has no function here."""
    return AdminClient({"bootstrap.servers": bootstrap})


def wait_for_brokers(bootstrap: str, count: int) -> None:
    """Wait until so many brokers are one cluster."""
    client = admin(bootstrap)  # one for all questions: each has threads, and goes on connecting for a while
    wait_until(
        lambda: len(client.list_topics(timeout=5).brokers) == count,
        within=FORMED_WITHIN,
        what=f"{count} brokers are one cluster",
    )


def create_topic(
    bootstrap: str, topic: str | None = None, *, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> str:
    """Create a topic and return its name once every partition has a leader. Raises KafkaException if it exists."""
    name = topic or unique_name()
    client = admin(bootstrap)
    new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(configs or {}))
    client.create_topics([new])[name].result(TIMEOUT)
    _wait_for_leaders(client, name, partitions)
    return name


def add_partitions(bootstrap: str, topic: str, total: int) -> None:
    """Grow a topic to `total` partitions and return once each has a leader."""
    client = admin(bootstrap)
    client.create_partitions([NewPartitions(topic, total)])[topic].result(TIMEOUT)
    _wait_for_leaders(client, topic, total)


def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic and return once metadata no longer shows it."""
    client = admin(bootstrap)
    client.delete_topics([topic])[topic].result(TIMEOUT)
    wait_until(lambda: topic not in client.list_topics(timeout=TIMEOUT).topics, what=f"{topic} is gone")


def topic_names(bootstrap: str) -> set[str]:
    """Return the names of all topics of a cluster."""
    return set(admin(bootstrap).list_topics(timeout=TIMEOUT).topics)


def group_names(bootstrap: str) -> set[str]:
    """Return the names of all groups of a cluster."""
    client = admin(bootstrap)  # its end ends what it asks
    listing = client.list_consumer_groups().result(30)
    assert not listing.errors
    return {group.group_id for group in listing.valid}


def config_of(bootstrap: str, topic: str, name: str) -> str | None:
    """Return the effective value of a topic's config."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    client = admin(bootstrap)  # its end ends what it asks
    entry = client.describe_configs([resource])[resource].result(10)[name]
    return None if entry.value is None else str(entry.value)


def set_configs(bootstrap: str, topic: str, configs: Mapping[str, str | None]) -> None:
    """Set configs of a topic; one whose value is None is taken back. Others stay. Raises KafkaException."""
    entries = [
        ConfigEntry(
            name, value, incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        )
        for name, value in configs.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    client = admin(bootstrap)
    client.incremental_alter_configs([resource])[resource].result(TIMEOUT)


def set_scram_password(bootstrap: str, user: str, mechanism: ScramMechanism, password: str | None) -> None:
    """Set the only password that counts for a mechanism, for connections made from now on. None takes it away."""
    change: UserScramCredentialAlteration = UserScramCredentialDeletion(user, mechanism)
    if password is not None:
        change = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 4096), password.encode())
    client = admin(bootstrap)  # its requests end with it
    for future in client.alter_user_scram_credentials([change]).values():
        future.result(TIMEOUT)


def delete_records(bootstrap: str, topic: str, before: int, partition: int = 0) -> None:
    """Delete everything below an offset; the log then begins there."""
    where = TopicPartition(topic, partition, before)
    client = admin(bootstrap)
    client.delete_records([where])[where].result(TIMEOUT)


def produce(
    bootstrap: str,
    topic: str,
    records: Iterable[Record],
    *,
    codec: str = "none",
    idempotent: bool = False,
    settings: Mapping[str, str | bool] | None = None,
    within: float = TIMEOUT * 3,
) -> int:
    """Write records in order and return how many once all are acknowledged, `within` so much after the last one.

    `codec` is none, gzip, snappy, lz4 or zstd; `settings` are librdkafka's (`linger.ms` 0 makes one batch of each).
    `idempotent` gives the batches a producer id and costs half a second, for which librdkafka waits to ask for it.
    """
    order = {"enable.idempotence": "true"} if idempotent else {"max.in.flight.requests.per.connection": "1"}
    producer = Producer({"compression.type": codec, **_producer(bootstrap), **order, **(settings or {})})
    return _write(producer, topic, records, within)


def produce_transaction(
    bootstrap: str,
    topic: str,
    records: Iterable[Record],
    *,
    commit: bool = True,
    codec: str = "none",
    transactional_id: str | None = None,
) -> int:
    """Write records in one transaction that is committed or aborted; return how many."""
    own = {"transactional.id": transactional_id or unique_name("transaction"), "compression.type": codec}
    producer = Producer({**_producer(bootstrap), **own})
    producer.init_transactions(TIMEOUT)
    producer.begin_transaction()
    written = _write(producer, topic, records)
    if commit:
        producer.commit_transaction(TIMEOUT)
    else:
        producer.abort_transaction(TIMEOUT)
    return written


def read_topic(
    bootstrap: str, topic: str, *, isolation: Isolation = "read_committed", within: float = 60.0
) -> list[Record]:
    """Return every record that stands in the topic now, by partition and offset. If records are deleted meanwhile, it
    is read again. Raises TimeoutError if it takes too long."""
    deadline = time.monotonic() + within
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": unique_name("reader"),
            "isolation.level": isolation,
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "fetch.wait.max.ms": "20",
            "auto.offset.reset": "error",
            "check.crcs": "true",
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=TIMEOUT).topics[topic].partitions
        while True:
            begins = {number: _bounds(consumer, topic, number)[0] for number in sorted(partitions)}
            consumer.assign([TopicPartition(topic, number, offset) for number, offset in begins.items()])
            try:
                return _read_to_ends(consumer, len(begins), topic, deadline)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._AUTO_OFFSET_RESET:
                    raise
    finally:
        consumer.close()


def end_offsets(bootstrap: str, topic: str, *, isolation: Isolation = "read_uncommitted") -> dict[int, int]:
    """Return where each partition ends: the high watermark, or with read_committed the last stable offset."""
    # Quiet: it is asked while brokers are away too, and a failure is raised anyway.
    quiet = {"bootstrap.servers": bootstrap, "group.id": unique_name("ends"), "log_level": 0}
    consumer = Consumer({**quiet, "isolation.level": isolation})
    try:
        partitions = consumer.list_topics(topic, timeout=TIMEOUT).topics[topic].partitions
        return {number: _bounds(consumer, topic, number)[1] for number in sorted(partitions)}
    finally:
        consumer.close()


def commit_offset(bootstrap: str, group: str, topic: str, partition: int, offset: int) -> None:
    """Commit as a consumer of the group would; the group is empty afterwards."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": "false"})

    def committed() -> bool:
        try:
            consumer.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() in COORDINATOR_MOVES:
                return False
            raise
        return True

    try:
        wait_until(committed, within=TIMEOUT, what=f"{group} has committed {topic}-{partition}")
    finally:
        consumer.close()


def committed_offset(bootstrap: str, group: str, topic: str, partition: int) -> int | None:
    """Return where the group stands, None if it has no committed offset there."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": "false"})

    def asked() -> list[TopicPartition]:
        try:
            return list(consumer.committed([TopicPartition(topic, partition)], timeout=TIMEOUT))
        except KafkaException as error:
            if error.args[0].code() in COORDINATOR_MOVES:
                return []
            raise

    try:
        [committed] = wait_until(asked, within=TIMEOUT, what=f"the coordinator of {group} answers")
        return committed.offset if committed.offset >= 0 else None
    finally:
        consumer.close()


def _producer(bootstrap: str) -> dict[str, str]:
    return {"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "queue.buffering.max.messages": "1000000"}


def _write(producer: Producer, topic: str, records: Iterable[Record], within: float = TIMEOUT * 3) -> int:
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)

    written = 0
    for record in records:
        options: dict[str, Any] = {}
        if record.partition is not None:
            options["partition"] = record.partition
        if record.timestamp_ms is not None:
            options["timestamp"] = record.timestamp_ms
        while True:
            try:
                producer.produce(
                    topic, record.value, record.key, headers=list(record.headers), on_delivery=delivered, **options
                )
                break
            except BufferError:
                producer.poll(0.1)
        written += 1
        if written % 1000 == 0:
            producer.poll(0)
    unacknowledged = producer.flush(within)
    if failures:
        raise KafkaException(failures[0])
    if unacknowledged:
        raise TimeoutError(f"{unacknowledged} of {written} records to {topic} were not acknowledged")
    return written


def _bounds(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """Return beginning and end of a partition that somebody created a moment ago, as soon as it is led."""
    deadline = time.monotonic() + LED_WITHIN
    while True:
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT)
        except KafkaException as error:
            if error.args[0].code() not in NO_LEADER_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _read_to_ends(consumer: Consumer, partitions: int, topic: str, deadline: float) -> list[Record]:
    read: dict[int, list[Record]] = defaultdict(list)
    ended: set[int] = set()
    while len(ended) < partitions:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{topic}: {partitions - len(ended)} of {partitions} partitions not read to their ends")
        for message in consumer.consume(10_000, timeout=0.2):
            error = message.error()
            if error is None:
                record = _record(message)
                read[record.partition or 0].append(record)
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(cast(int, message.partition()))
            else:
                raise KafkaException(error)
    return [record for partition in sorted(read) for record in read[partition]]


def _record(message: Message) -> Record:
    kind, timestamp_ms = message.timestamp()
    return Record(
        key=message.key(),
        value=message.value(),
        headers=tuple(cast("list[tuple[str, bytes | None]]", message.headers() or [])),
        # Format 0 has no times: librdkafka then says 0 and its kind, Java's consumer says -1.
        timestamp_ms=-1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp_ms,
        partition=message.partition(),
        offset=message.offset(),
    )


def _wait_for_leaders(client: AdminClient, topic: str, partitions: int) -> None:
    def led() -> bool:
        seen = client.list_topics(topic, timeout=TIMEOUT).topics[topic]
        return len(seen.partitions) == partitions and all(
            partition.leader >= 0 for partition in seen.partitions.values()
        )

    wait_until(led, every=0.02, what=f"{topic} has {partitions} partitions with a leader each")
