"""What confluent-kafka has no call for: quotas, which broker leads a partition, members of Connect's groups.

Requests and answers are kio's; each is asked on a connection of its own."""

import io
import socket
import struct
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import Any, Self
from uuid import uuid4

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from tests.support.eventually import wait_until

TIMEOUT_S = 60.0
PREFERRED = 0
COORDINATOR_MOVES = (  # on a new cluster it does so at first
    ErrorCode.coordinator_not_available,
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.not_coordinator,
)
SETTLED = (ErrorCode.none, ErrorCode.election_not_needed)


def set_quota(bootstrap: str, client_id: str, **quotas: float | None) -> None:
    """Set quotas of a client id (`consumer_byte_rate`, `producer_byte_rate`); None removes one. They count within a
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


def move_leaders(bootstrap: str, topic: str, replicas: Mapping[int, Sequence[int]]) -> set[int]:
    """Give partitions these replicas, of which the first is to lead, and have it elected. Returns those whose leader it
    is by then, or was already; a replica that has to catch up first is elected when it has: call it again."""
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
    elected = _ask(
        bootstrap,
        m.ElectLeadersRequest(
            election_type=PREFERRED,
            topic_partitions=(m.TopicPartitions(topic=topic, partitions=tuple(replicas)),),
            timeout=timedelta(seconds=TIMEOUT_S),
        ),
    )
    assert elected.error_code is ErrorCode.none, elected
    results = [part for election in elected.replica_election_results for part in election.partition_result]
    assert {part.partition_id for part in results} == set(replicas), elected
    return {part.partition_id for part in results if part.error_code in SETTLED}


def join_as_connect(bootstrap: str, group: str) -> str:
    """Make a member of a group as Connect's workers do, and return its id; it stays for a minute, or until
    `leave_group`."""
    m = import_module("kio.schema.join_group.v3.request")
    ask = m.JoinGroupRequest(
        group_id=group,
        session_timeout=timedelta(seconds=60),
        rebalance_timeout=timedelta(seconds=60),
        member_id="",
        protocol_type="connect",
        protocols=(m.JoinGroupRequestProtocol(name="default", metadata=b""),),
    )

    def joined() -> str:
        answer = _ask(bootstrap, ask)
        return "" if answer.error_code in COORDINATOR_MOVES else _checked(answer).member_id

    return wait_until(joined, within=TIMEOUT_S, what=f"{group} has a member")


def join_share_group(bootstrap: str, group: str, topic: str) -> str:
    """Make a share group with a member, and return its id; it stays until its session times out."""
    m = import_module("kio.schema.share_group_heartbeat.v1.request")
    member = str(uuid4())

    def joined() -> bool:
        ask = m.ShareGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=0, rack_id=None, subscribed_topic_names=(topic,)
        )
        answer = _ask(bootstrap, ask)
        return answer.error_code not in COORDINATOR_MOVES and bool(_checked(answer))

    wait_until(joined, within=TIMEOUT_S, what=f"share group {group} has a member")
    return member


def append_batch(bootstrap: str, topic: str, batch: bytes, partition: int = 0) -> None:
    """Append a batch as it is to the one broker of a cluster. Clients write no name of a header that is no UTF-8."""
    m = import_module("kio.schema.produce.v9.request")
    data = m.PartitionProduceData(index=partition, records=batch)
    answer = _ask(
        bootstrap,
        m.ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout=timedelta(seconds=TIMEOUT_S),
            topic_data=(m.TopicProduceData(name=topic, partition_data=(data,)),),
        ),
    )
    codes = [part.error_code for answered in answer.responses for part in answered.partition_responses]
    assert codes == [ErrorCode.none], codes


def leave_group(bootstrap: str, group: str, member: str) -> None:
    """End what `join_as_connect` began."""
    m = import_module("kio.schema.leave_group.v0.request")
    _checked(_ask(bootstrap, m.LeaveGroupRequest(group_id=group, member_id=member)))


def _checked(answer: Any) -> Any:
    assert answer.error_code is ErrorCode.none, answer
    return answer


def _ask(bootstrap: str, request: Any) -> Any:
    with Connection(bootstrap) as connection:
        connection.send(frame(request))
        return answer_of(type(request), connection.receive())


class Connection:
    """A blocking connection to the first address of `bootstrap` that takes it. Frames go out, and whole answers come
    back in the same order. For one thread at a time."""

    def __init__(self, bootstrap: str) -> None:
        self._socket = _connected(bootstrap)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> bytes:
        """Return the next answer without its length."""
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        whole = bytearray(count)
        view, read = memoryview(whole), 0
        while read < count:
            received = self._socket.recv_into(view[read:])
            if not received:
                raise ConnectionError("the broker closed the connection in the middle of an answer")
            read += received
        return bytes(whole)


def frame(request: Any) -> bytes:
    """Return a request as it is sent, with its length and the correlation id 1."""
    kind: Any = type(request)
    write, _, tags = _codec(kind)
    out = io.BytesIO()
    out.write(struct.pack(">ihhih", 0, int(request.__api_key__), int(request.__version__), 1, -1) + tags)
    write(out, request)
    struct.pack_into(">i", out.getbuffer(), 0, out.tell() - 4)
    return out.getvalue()


def answer_of(request: Any, body: bytes) -> Any:
    """Return the response to a request of this type, from what follows its length."""
    _, read, tags = _codec(request)
    return read(body, 4 + len(tags))[0]


@cache
def _codec(request: Any) -> tuple[Any, Any, bytes]:
    """Return what writes the request, what reads its response, and how the headers of both end in its version."""
    module = import_module(request.__module__.removesuffix("request") + "response")
    answer = getattr(module, request.__name__.removesuffix("Request") + "Response")
    # In flexible versions the headers, of requests and of answers, end with an empty tag buffer.
    return entity_writer(request), entity_reader(answer), b"\0" if request.__flexible__ else b""


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
