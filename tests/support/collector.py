"""A collector of a test's own: takes spans by OTLP over HTTP, as OpenTelemetry's does, and keeps them."""

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

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


class Collector:
    """A context manager, at `endpoint` (the value of OTEL_EXPORTER_OTLP_ENDPOINT)."""

    def __init__(self, port: int = 0) -> None:
        self._lock = threading.Lock()
        self._spans: list[Received] = []
        self._resources: list[dict[str, Any]] = []
        collector = self

        class Taking(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                right = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf"
                if right:
                    collector._receive(ExportTraceServiceRequest.FromString(body))
                self.send_response(200 if right else 404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Taking)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), name="collector", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def spans(self, name: str = "") -> list[Received]:
        """Those that have come by now, in that order."""
        with self._lock:
            return [span for span in self._spans if name in ("", span.name)]

    def resources(self) -> list[dict[str, Any]]:
        """The attributes of the senders, one for each time that somebody sent."""
        with self._lock:
            return list(self._resources)

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
