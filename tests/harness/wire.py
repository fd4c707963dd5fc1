"""Administration that confluent-kafka has no call for: quotas, and which broker leads a partition.

Requests and answers are kio's; each is asked on a connection of its own."""

from __future__ import annotations

import io
import socket
import struct
from collections.abc import Mapping, Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

__all__ = ["move_leaders", "set_quota"]

TIMEOUT_S = 30.0
PREFERRED = 0
SETTLED = (ErrorCode.none, ErrorCode.election_not_needed)


def set_quota(bootstrap: str, client_id: str, **quotas: float | None) -> None:
    """Sets quotas of a client id (`consumer_byte_rate`, `producer_byte_rate`); None removes one. They count within a
    moment."""
    m = import_module("kio.schema.alter_client_quotas.v1.request")
    entity = m.EntityData(entity_type="client-id", entity_name=client_id)
    ops = tuple(m.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items())
    answer = _ask(
        bootstrap,
        m.AlterClientQuotasRequest(entries=(m.EntryData(entity=(entity,), ops=ops),), validate_only=False),
    )
    refused = [entry.error_message for entry in answer.entries if entry.error_code is not ErrorCode.none]
    assert not refused, refused


def move_leaders(bootstrap: str, topic: str, replicas: Mapping[int, Sequence[int]]) -> None:
    """Gives partitions these replicas, of which the first is to lead, and has it elected. A replica that has to catch
    up first is elected when it has: call it again."""
    m = import_module("kio.schema.alter_partition_reassignments.v0.request")
    parts = tuple(
        m.ReassignablePartition(partition_index=number, replicas=tuple(brokers)) for number, brokers in replicas.items()
    )
    moved = _ask(
        bootstrap,
        m.AlterPartitionReassignmentsRequest(
            timeout=timedelta(seconds=TIMEOUT_S), topics=(m.ReassignableTopic(name=topic, partitions=parts),)
        ),
    )
    refused = [part.error_message for answered in moved.responses for part in answered.partitions if part.error_code]
    assert not refused, refused
    m = import_module("kio.schema.elect_leaders.v2.request")
    _ask(
        bootstrap,
        m.ElectLeadersRequest(
            election_type=PREFERRED,
            topic_partitions=(m.TopicPartitions(topic=topic, partitions=tuple(replicas)),),
            timeout=timedelta(seconds=TIMEOUT_S),
        ),
    )


def _ask(bootstrap: str, request: Any) -> Any:
    """The answer to a request of a flexible version, of the first address of `bootstrap` that takes the connection."""
    out = io.BytesIO()
    out.write(struct.pack(">ihhihb", 0, int(request.__api_key__), int(request.__version__), 1, -1, 0))
    entity_writer(type(request))(out, request)
    struct.pack_into(">i", out.getbuffer(), 0, out.tell() - 4)
    module = import_module(type(request).__module__.removesuffix("request") + "response")
    answer = getattr(module, type(request).__name__.removesuffix("Request") + "Response")
    with _connected(bootstrap) as connection, connection.makefile("rb") as stream:
        connection.sendall(out.getvalue())
        (length,) = struct.unpack(">i", stream.read(4))
        # A flexible response header: correlation id, then an empty tag buffer.
        return entity_reader(answer)(stream.read(length), 5)[0]


def _connected(bootstrap: str) -> socket.socket:
    refused: OSError | None = None
    for address in bootstrap.split(","):
        host, _, port = address.rpartition(":")
        try:
            return socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
        except OSError as exc:
            refused = exc
    assert refused is not None, "no address"
    raise refused
