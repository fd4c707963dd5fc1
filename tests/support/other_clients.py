"""A topic as the clients of others read it: Java's, kcat, kafka-python and franz-go. Each reads what is committed.

Keys, values and headers of the records have to be text: two of these clients print them.
"""

import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPartition

from tests.support import kafka_jars
from tests.support.clusters import Headers, Record, end_offsets, read_topic
from tests.support.go_programs import build_program, find_go
from tests.support.java import find_java
from tests.support.jvm import OPTIONS

Ends = Mapping[int, int]
Reader = Callable[[str, str], list[Record]]
READ_WITHIN = 120.0
FIELD, NULL = "\x1f", "(null)"
TOOLS = kafka_jars.Kafka(
    kafka_jars.VERSION,
    Path(__file__).with_name("kafka-tools.sha256"),
    kafka_jars.CACHES / f"tools-{kafka_jars.VERSION}",
    "Kafka's tools",
)


def read_with_java(bootstrap: str, topic: str) -> list[Record]:
    """Read with the console consumer of Kafka's own tools."""
    wanted = len(read_topic(bootstrap, topic))
    shown = [f"print.{field}=true" for field in ("timestamp", "partition", "offset", "headers", "key", "value")]
    shown += [f"key.separator={FIELD}", f"null.literal={NULL}", "headers.separator=;"]
    classes = f"{kafka_jars.classpath()}:{kafka_jars.classpath(TOOLS)}"
    text = _printed(
        *(find_java(), *OPTIONS, "-cp", classes, "org.apache.kafka.tools.consumer.ConsoleConsumer"),
        *("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"),
        *("--isolation-level", "read_committed", "--max-messages", wanted, "--timeout-ms", 30_000),
        *(part for field in shown for part in ("--formatter-property", field)),
    )
    return _ordered([_of_java(line) for line in text.splitlines()])


def read_with_kcat(bootstrap: str, topic: str) -> list[Record]:
    """Read with kcat, which is librdkafka's own tool."""
    text = _printed(
        *("kcat", "-b", bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-J"),
        *("-X", "isolation.level=read_committed"),
    )
    return _ordered([_of_kcat(json.loads(line)) for line in text.splitlines()])


def read_with_kafka_python(bootstrap: str, topic: str) -> list[Record]:
    """Read with the pure Python client."""
    ends = end_offsets(bootstrap, topic)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed", enable_auto_commit=False)
    try:
        partitions = [KafkaPartition(topic, number) for number in ends]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        records: list[Record] = []
        while any(consumer.position(partition) < ends[partition.partition] for partition in partitions):
            for messages in consumer.poll(timeout_ms=1000).values():
                records += [
                    Record(m.key, m.value, tuple(m.headers), m.timestamp, m.partition, m.offset) for m in messages
                ]
        return _ordered(records)
    finally:
        consumer.close()


def read_with_franz_go(bootstrap: str, topic: str) -> list[Record]:
    """Read with the Go client."""
    ends = [f"{number}={end}" for number, end in end_offsets(bootstrap, topic).items() if end]
    text = _printed(build_program("read_topic"), bootstrap, topic, *ends)
    return _ordered([_of_franz_go(json.loads(line)) for line in text.splitlines()])


def absent_clients() -> Mapping[str, str]:
    """Return which of them this machine does not have, and why."""
    absent = {}
    if shutil.which("kcat") is None:
        absent["kcat"] = "there is no kcat on PATH (Debian: apt-get install kcat)"
    if find_go() is None:
        absent["franz-go"] = "there is no Go, on PATH or where its archive unpacks it"
    return absent


CLIENTS: Mapping[str, Reader] = {
    "java": read_with_java,
    "kcat": read_with_kcat,
    "kafka-python": read_with_kafka_python,
    "franz-go": read_with_franz_go,
}


def _printed(*command: object) -> str:
    ran = subprocess.run(
        [str(part) for part in command], capture_output=True, timeout=READ_WITHIN, check=False, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _ordered(records: Sequence[Record]) -> list[Record]:
    return sorted(records, key=lambda record: (record.partition or 0, record.offset or 0))


def _bytes(text: str | None) -> bytes | None:
    return None if text is None or text == NULL else text.encode()


def _of_java(line: str) -> Record:
    time, partition, offset, headers, key, value = line.split(FIELD)
    kind, _, timestamp = time.partition(":")
    return Record(
        *(_bytes(key), _bytes(value), _of_java_headers(headers)),
        -1 if kind == "NO_TIMESTAMP" else int(timestamp),
        *(int(field.partition(":")[2]) for field in (partition, offset)),
    )


def _of_java_headers(text: str) -> Headers:
    if text == "NO_HEADERS":
        return ()
    pairs = (header.split(":", 1) for header in text.split(";"))
    return tuple((name, _bytes(value)) for name, value in pairs)


def _of_kcat(fields: Mapping[str, Any]) -> Record:
    listed = fields.get("headers") or []
    headers = tuple((name, _bytes(value)) for name, value in zip(listed[::2], listed[1::2], strict=True))
    times = -1 if fields["tstype"] == "unknown" else fields["ts"]
    return Record(
        _bytes(fields["key"]), _bytes(fields["payload"]), headers, times, fields["partition"], fields["offset"]
    )


def _of_franz_go(fields: Mapping[str, Any]) -> Record:
    def raw(value: str | None) -> bytes | None:
        return None if value is None else base64.b64decode(value)

    headers = tuple((header["key"], raw(header["value"])) for header in fields["headers"])
    return Record(
        raw(fields["key"]), raw(fields["value"]), headers, fields["timestamp"], fields["partition"], fields["offset"]
    )
