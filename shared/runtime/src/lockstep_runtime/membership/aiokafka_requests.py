"""Versions of requests that aiokafka lacks, for Faust's consumer.

aiokafka ends at Metadata 5, FindCoordinator 1 and ListOffsets 3. Some clusters know no version that is so old: Amazon
MSK Serverless. The next versions say the same, so its clients read the answers as they read those of its own.
"""

from collections.abc import Iterable, Mapping
from io import BytesIO
from types import new_class
from typing import Any

from aiokafka.protocol.api import Request, RequestStruct
from aiokafka.protocol.coordination import FindCoordinatorRequest, FindCoordinatorRequest_v1, FindCoordinatorResponse_v1
from aiokafka.protocol.metadata import MetadataRequest, MetadataRequest_v5, MetadataResponse_v5
from aiokafka.protocol.offset import OffsetRequest, OffsetResponse_v3, OffsetResponse_v4
from aiokafka.protocol.types import Array, Boolean, Int8, Int16, Int32, Int64, Schema, String

_HEAD = (
    ("throttle_time_ms", Int32),
    ("brokers", Array(("node_id", Int32), ("host", String("utf-8")), ("port", Int32), ("rack", String("utf-8")))),
    ("cluster_id", String("utf-8")),
    ("controller_id", Int32),
)
"""The fields of an answer to Metadata before its topics."""


def _topics() -> tuple[str, Any]:
    partition = (
        *(("error_code", Int16), ("partition", Int32), ("leader", Int32), ("leader_epoch", Int32)),
        *((name, Array(Int32)) for name in ("replicas", "isr", "offline_replicas")),
    )
    names = (("error_code", Int16), ("topic", String("utf-8")), ("is_internal", Boolean))
    return "topics", Array(*names, ("partitions", Array(*partition)))


class MetadataAnswer7(MetadataResponse_v5):  # type: ignore[misc]  # aiokafka has no annotations
    """Version 5 with the leader epoch of each partition, which is left out."""

    API_VERSION = 7
    SCHEMA = MetadataResponse_v5.SCHEMA

    @classmethod
    def decode(cls, data: BytesIO | bytes) -> "MetadataAnswer7":
        """Return the answer with the fields of version 5."""
        *head, topics = Schema(*_HEAD, _topics()).decode(BytesIO(data) if isinstance(data, bytes) else data)
        return cls(
            *head,
            [(*topic, [(*partition[:3], *partition[4:]) for partition in partitions]) for *topic, partitions in topics],
        )


class OffsetsAnswer4(OffsetResponse_v3):  # type: ignore[misc]  # aiokafka has no annotations
    """Version 3 with the leader epoch of each offset, which is left out."""

    API_VERSION = 4
    SCHEMA = OffsetResponse_v3.SCHEMA

    @classmethod
    def decode(cls, data: BytesIO | bytes) -> "OffsetsAnswer4":
        """Return the answer with the fields of version 3."""
        throttle_ms, topics = OffsetResponse_v4.SCHEMA.decode(BytesIO(data) if isinstance(data, bytes) else data)
        return cls(throttle_ms, [(topic, [partition[:4] for partition in partitions]) for topic, partitions in topics])


class OffsetsQuestion4(RequestStruct):  # type: ignore[misc]  # aiokafka has no annotations
    """Version 3 with the leader epoch that we know of each partition: none."""

    API_KEY = OffsetRequest.API_KEY
    API_VERSION = 4
    RESPONSE_TYPE = OffsetsAnswer4
    SCHEMA = Schema(
        *(("replica_id", Int32), ("isolation_level", Int8)),
        (
            "topics",
            Array(
                ("topic", String("utf-8")),
                ("partitions", Array(("partition", Int32), ("leader_epoch", Int32), ("timestamp", Int64))),
            ),
        ),
    )

    def __init__(self, replica_id: int, isolation_level: int, topics: Iterable[tuple[str, Any]]) -> None:
        """`topics`: with (partition, timestamp) of each partition, as aiokafka gives them to version 3."""
        asked = [(topic, [(number, -1, time) for number, time in partitions]) for topic, partitions in topics]
        super().__init__(replica_id, isolation_level, asked)


def _answer(base: type[Any], version: int, **members: Any) -> type[Any]:
    """Return the answer of a version whose form is that of a former one."""
    form = {"API_VERSION": version, "SCHEMA": base.SCHEMA}
    return new_class(f"{base.__name__}_as_{version}", (base,), exec_body=lambda body: body.update(form, **members))


def _question(base: type[Any], version: int, answer: type[Any]) -> type[Any]:
    """Return the question of a version whose form is that of a former one."""
    return _answer(base, version, RESPONSE_TYPE=answer)


NEWER: Mapping[type[Request[Any]], tuple[type[RequestStruct], ...]] = {
    MetadataRequest: (
        _question(MetadataRequest_v5, 6, _answer(MetadataResponse_v5, 6)),
        _question(MetadataRequest_v5, 7, MetadataAnswer7),
    ),
    FindCoordinatorRequest: (_question(FindCoordinatorRequest_v1, 2, _answer(FindCoordinatorResponse_v1, 2)),),
    OffsetRequest: (OffsetsQuestion4, _question(OffsetsQuestion4, 5, _answer(OffsetsAnswer4, 5))),
}
"""By aiokafka's request, the versions behind its newest one."""


class NewerRequest:
    """A request of aiokafka that has these versions besides its own."""

    def __init__(self, request: Any, newer: tuple[type[RequestStruct], ...]) -> None:
        self._request = request
        self._newer = newer

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> Any:
        """Return the request in a version that the broker announces: aiokafka's newest one before ours."""
        oldest, newest = versions.get(self._request.API_KEY, (0, 0))
        if oldest < self._newer[0].API_VERSION:
            return self._request.prepare(versions)
        fit = [struct for struct in self._newer if oldest <= struct.API_VERSION <= newest]
        return self._request.build(fit[0]) if fit else self._request.prepare(versions)


def in_all_versions(request: Any) -> Any:
    """Return a request that aiokafka's connection sends in a version of its own, or in one of ours."""
    newer = NEWER.get(type(request))
    return request if newer is None else NewerRequest(request, newer)
