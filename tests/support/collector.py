"""A collector of a test's own: takes spans by OTLP over HTTP, as OpenTelemetry's does, and keeps them."""

import threading
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.http_server import Answer, HttpServer, Request

ERROR = 2


@dataclass(frozen=True, slots=True)
class Received:
    """One span. `attributes` without the prefix that ours bear; `events` are the names of its events."""

    service: str
    name: str
    trace: bytes
    id: bytes
    parent: bytes
    began_ns: int
    ended_ns: int
    attributes: dict[str, Any]
    events: tuple[str, ...]
    error: str | None


class Collector(HttpServer):
    """Is at `endpoint`, the value of OTEL_EXPORTER_OTLP_ENDPOINT. A context manager."""

    def __init__(self, port: int = 0) -> None:
        self._lock = threading.Lock()
        self._spans: list[Received] = []
        self._resources: list[dict[str, Any]] = []
        super().__init__(self._answer, port)
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def spans(self, name: str = "") -> list[Received]:
        """Return those that have come by now, in that order."""
        with self._lock:
            return [span for span in self._spans if name in ("", span.name)]

    def resources(self) -> list[dict[str, Any]]:
        """Return the attributes of the senders, one for each time that somebody sent."""
        with self._lock:
            return list(self._resources)

    def _answer(self, request: Request) -> Answer:
        if request.path != "/v1/traces" or request.headers["Content-Type"] != "application/x-protobuf":
            return Answer(404)
        self._receive(ExportTraceServiceRequest.FromString(request.body))
        return Answer(200)

    def _receive(self, request: ExportTraceServiceRequest) -> None:
        with self._lock:
            for group in request.resource_spans:
                resource = _values(group.resource.attributes)
                self._resources.append(resource)
                for scope in group.scope_spans:
                    self._spans += [_received(str(resource["service.name"]), span) for span in scope.spans]


def _received(service: str, span: Any) -> Received:
    return Received(
        service=service,
        name=span.name,
        trace=span.trace_id,
        id=span.span_id,
        parent=span.parent_span_id,
        began_ns=span.start_time_unix_nano,
        ended_ns=span.end_time_unix_nano,
        attributes={key.removeprefix("lockstep."): value for key, value in _values(span.attributes).items()},
        events=tuple(event.name for event in span.events),
        error=span.status.message if span.status.code == ERROR else None,
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value")) for attribute in attributes}
