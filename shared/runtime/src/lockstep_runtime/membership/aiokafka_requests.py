"""Versions of requests that aiokafka lacks, for Faust's consumer.

aiokafka ends at Metadata 5, FindCoordinator 1 and ListOffsets 3. Some clusters know no version that is so old: Amazon
MSK Serverless. The next versions carry the same fields, so aiokafka reads these responses as it reads its own.
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
"""The fields of a Metadata response before its topics."""


def _topics() -> tuple[str, Any]:
    partition = (
        *(("error_code", Int16), ("partition", Int32), ("leader", Int32), ("leader_epoch", Int32)),
        *((name, Array(Int32)) for name in ("replicas", "isr", "offline_replicas")),
    )
    names = (("error_code", Int16), ("topic", String("utf-8")), ("is_internal", Boolean))
    return "topics", Array(*names, ("partitions", Array(*partition)))


class MetadataResponse7(MetadataResponse_v5):  # type: ignore[misc]  # aiokafka has no annotations
    """A Metadata response of version 7: version 5 with the leader epoch of each partition, which is dropped."""

    API_VERSION = 7
    SCHEMA = MetadataResponse_v5.SCHEMA

    @classmethod
    def decode(cls, data: BytesIO | bytes) -> "MetadataResponse7":
        """Return the answer with the fields of version 5."""
        *head, topics = Schema(*_HEAD, _topics()).decode(BytesIO(data) if isinstance(data, bytes) else data)
        return cls(
            *head,
            [(*topic, [(*partition[:3], *partition[4:]) for partition in partitions]) for *topic, partitions in topics],
        )


class OffsetResponse4(OffsetResponse_v3):  # type: ignore[misc]  # aiokafka has no annotations
    """A ListOffsets response of version 4: version 3 with the leader epoch of each offset, which is dropped."""

    API_VERSION = 4
    SCHEMA = OffsetResponse_v3.SCHEMA

    @classmethod
    def decode(cls, data: BytesIO | bytes) -> "OffsetResponse4":
        """Return the answer with the fields of version 3."""
        throttle_ms, topics = OffsetResponse_v4.SCHEMA.decode(BytesIO(data) if isinstance(data, bytes) else data)
        return cls(throttle_ms, [(topic, [partition[:4] for partition in partitions]) for topic, partitions in topics])


class OffsetRequest4(RequestStruct):  # type: ignore[misc]  # aiokafka has no annotations
    """A ListOffsets request of version 4: version 3 with a leader epoch for each partition, which is -1 (unknown)."""

    API_KEY = OffsetRequest.API_KEY
    API_VERSION = 4
    RESPONSE_TYPE = OffsetResponse4
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
        """Take `topics` with (partition, timestamp) pairs, as aiokafka passes them to version 3."""
        listed = [(topic, [(number, -1, time) for number, time in partitions]) for topic, partitions in topics]
        super().__init__(replica_id, isolation_level, listed)


def _response(base: type[Any], version: int, **members: Any) -> type[Any]:
    """Return the class of a response version whose fields are those of the older version `base`."""
    form = {"API_VERSION": version, "SCHEMA": base.SCHEMA}
    return new_class(f"{base.__name__}_as_{version}", (base,), exec_body=lambda body: body.update(form, **members))


def _request(base: type[Any], version: int, response: type[Any]) -> type[Any]:
    """Return the class of a request version whose fields are those of the older version `base`."""
    return _response(base, version, RESPONSE_TYPE=response)


NEWER_VERSIONS: Mapping[type[Request[Any]], tuple[type[RequestStruct], ...]] = {
    MetadataRequest: (
        _request(MetadataRequest_v5, 6, _response(MetadataResponse_v5, 6)),
        _request(MetadataRequest_v5, 7, MetadataResponse7),
    ),
    FindCoordinatorRequest: (_request(FindCoordinatorRequest_v1, 2, _response(FindCoordinatorResponse_v1, 2)),),
    OffsetRequest: (OffsetRequest4, _request(OffsetRequest4, 5, _response(OffsetResponse4, 5))),
}
"""The request versions that aiokafka lacks, oldest first, by its class of the request."""


class NewerRequest:
    """A request of aiokafka that can also be sent in the versions `newer`."""

    def __init__(self, request: Any, newer: tuple[type[RequestStruct], ...]) -> None:
        self._request = request
        self._newer = newer

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> Any:
        """Return the request in a version that the broker knows: aiokafka's own if one fits, else one of `newer`."""
        oldest, newest = versions.get(self._request.API_KEY, (0, 0))
        if oldest < self._newer[0].API_VERSION:
            return self._request.prepare(versions)
        fit = [struct for struct in self._newer if oldest <= struct.API_VERSION <= newest]
        return self._request.build(fit[0]) if fit else self._request.prepare(versions)


def with_newer_versions(request: Any) -> Any:
    """Return the request, with `NEWER_VERSIONS` for its API beside aiokafka's own versions."""
    newer = NEWER_VERSIONS.get(type(request))
    return request if newer is None else NewerRequest(request, newer)
