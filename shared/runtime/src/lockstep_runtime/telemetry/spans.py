"""Spans by OpenTelemetry's SDK, sent to a collector by OTLP over HTTP. Imported only if the configuration asks.

Sending has a thread of its own and a queue of fixed length: a collector that is away costs spans, never time or
memory.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Span, Status, StatusCode, Tracer

from lockstep_kafka.common.errors import LeadershipLost
from lockstep_kafka.common.tracing import STEPS_AT_MOST, Attribute, SpanContext, Tracing, use_span
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.telemetry.tracing_config import TracingConfig

PREFIX = "lockstep."
SHOWN = 500
"""Most characters of a text in a span."""


class Spans(Tracing):
    """Tracing with OpenTelemetry. Create it in the process, or Spark worker, that works: a fork loses threads."""

    def __init__(self, choice: TracingConfig, instance: str, log: FlowLog) -> None:
        """Create it; sending begins with the first span. Raises ValueError for a variable that makes no sense."""
        resource = Resource.create({"service.name": choice.service_name, "service.instance.id": instance})
        self._exporter = _ReportingExporter(OTLPSpanExporter(), choice.endpoint, log)
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("lockstep")

    @contextmanager
    def work(self, name: str, **attributes: Attribute) -> Iterator[None]:
        with _span(self._tracer, name, attributes) as span:
            work = _TracedWork(self._tracer, span)
            try:
                with use_span(work):
                    yield
            finally:
                work.ended = True

    def span_interval(self, name: str, began_ns: int, ended_ns: int, error: str = "", **attributes: Attribute) -> None:
        span = self._tracer.start_span(name, start_time=began_ns, attributes=_named(attributes))
        if error:
            span.set_status(Status(StatusCode.ERROR, error[:SHOWN]))
        span.end(ended_ns)

    def end(self, within_s: float) -> None:
        self._exporter.quiet = True
        ending = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        ending.start()
        ending.join(within_s)


class _TracedWork(SpanContext):
    """A piece of work, such as a round, with its span."""

    def __init__(self, tracer: Tracer, span: Span) -> None:
        self._tracer = tracer
        self._span = span
        self._steps = 0
        self.ended = False
        """The work has ended. A task that was begun within it, and goes on, adds nothing to its span."""

    @contextmanager
    def step(self, name: str, attributes: dict[str, Attribute]) -> Iterator[None]:
        if self.ended:
            yield
            return
        self._steps += 1
        if self._steps > STEPS_AT_MOST:
            self.set_attributes({"steps_left_out": self._steps - STEPS_AT_MOST})
            yield
            return
        with _span(self._tracer, name, attributes):
            yield

    def set_attributes(self, attributes: dict[str, Attribute]) -> None:
        if not self.ended:
            self._span.set_attributes(_named(attributes))

    def add_event(self, name: str, attributes: dict[str, Attribute]) -> None:
        if not self.ended:
            self._span.add_event(name, _named(attributes))


class _ReportingExporter(SpanExporter):
    """Log once that the collector is away, and once that it is back."""

    def __init__(self, exporter: OTLPSpanExporter, endpoint: str, log: FlowLog) -> None:
        self._exporter = exporter
        self._endpoint = endpoint
        self._log = log
        self._lost = 0
        self.quiet = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            if self._lost:
                self._log.info("spans arrive again", f"{self._endpoint}; {self._lost} were lost", lost=self._lost)
            self._lost = 0
        else:
            if not self._lost and not self.quiet:
                text = f"{self._endpoint} does not take them; they are lost until it does, and nothing waits for it"
                self._log.warn("spans not sent", text, endpoint=self._endpoint)
            self._lost += len(spans)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # OpenTelemetry's own is untyped


@contextmanager
def _span(tracer: Tracer, name: str, attributes: Mapping[str, Attribute]) -> Iterator[Span]:
    with tracer.start_as_current_span(
        name, attributes=_named(attributes), record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except LeadershipLost:
            raise  # another replica leads now, which is no error
        except Exception as exc:
            text = str(exc)[:SHOWN]
            # Without its stack: the sentence of an error says what is wrong.
            span.add_event("exception", {"exception.type": type(exc).__name__, "exception.message": text})
            span.set_status(Status(StatusCode.ERROR, text))
            raise


def _named(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {f"{PREFIX}{key}": value[:SHOWN] if isinstance(value, str) else value for key, value in attributes.items()}
