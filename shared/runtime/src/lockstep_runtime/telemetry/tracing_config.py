"""Tracing as the `OTEL_*` variables ask for it. OpenTelemetry's packages read the variables that are not read here."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from lockstep_kafka.common.tracing import NO_TRACING, Tracing
from lockstep_runtime.telemetry.log import FlowLog

HTTP = "http/protobuf"
GRPC_PORT, HTTP_PORT = 4317, 4318


@dataclass(frozen=True, slots=True)
class TracingConfig:
    """The variables of a traced service, read."""

    exports: bool
    """Spans are made and sent."""
    service_name: str
    endpoint: str = ""
    """The collector's address, for people."""
    warnings: tuple[str, ...] = ()
    """A sentence for each variable that does not mean what its author may think."""


def tracing_config(service: str, environment: Mapping[str, str]) -> TracingConfig:
    """Return the tracing of a service whose configuration asks for it."""
    environ = {name: value.strip() for name, value in environment.items() if name.startswith("OTEL_") and value.strip()}
    name = (
        environ.get("OTEL_SERVICE_NAME") or _named(environ.get("OTEL_RESOURCE_ATTRIBUTES", "")) or f"lockstep-{service}"
    )
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return TracingConfig(False, name)
    exporter = environ.get("OTEL_TRACES_EXPORTER", "otlp")
    if exporter == "none":
        return TracingConfig(False, name)
    if exporter != "otlp":
        return TracingConfig(
            False, name, warnings=(f"OTEL_TRACES_EXPORTER is {exporter!r}: it takes otlp or none here",)
        )
    endpoint = environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    return TracingConfig(True, name, endpoint or f"http://localhost:{HTTP_PORT}", tuple(_warnings(environ, endpoint)))


def _named(attributes: str) -> str:
    pairs = (pair.partition("=") for pair in attributes.split(","))
    return next((value.strip() for key, _, value in pairs if key.strip() == "service.name"), "")


def _warnings(variables: Mapping[str, str], endpoint: str) -> list[str]:
    key = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
    key = key if key in variables else "OTEL_EXPORTER_OTLP_PROTOCOL"
    protocol = variables.get(key, HTTP)
    if protocol != HTTP:
        return [f"{key} is {protocol!r}: spans go by {HTTP}, for which collectors listen on port {HTTP_PORT}"]
    if _port(endpoint) == GRPC_PORT:
        return [f"{endpoint} has gRPC's port: spans go by {HTTP}, for which collectors listen on port {HTTP_PORT}"]
    return []


def _port(endpoint: str) -> int | None:
    try:
        return urlsplit(endpoint).port
    except ValueError:
        return None  # the exporter says what is wrong with it


def start_tracing(service: str, instance: str, environment: Mapping[str, str], log: FlowLog) -> Tracing:
    """Start the tracing of a service whose configuration asks for it (`FlowSettings.tracing`).

    An obstacle is logged in one line, and then nothing is traced: no service stops for want of spans.
    """
    choice = tracing_config(service, environment)
    for warning in choice.warnings:
        log.warn("tracing", warning)
    if not choice.exports:
        return NO_TRACING
    try:
        from lockstep_runtime.telemetry.spans import Spans  # tens of megabytes, only for a service that traces
    except ImportError as exc:
        log.warn(
            "tracing is off",
            f"{exc}: install lockstep-kafka[tracing] from the requirements file of a release, or take lockstep.tracing "
            "away",
        )
        return NO_TRACING
    try:
        tracing = Spans(choice, instance, log)
    except ValueError as exc:
        log.warn("tracing is off", f"a variable OTEL_... cannot be understood: {exc}")
        return NO_TRACING
    log.info("tracing", f"as {choice.service_name} to {choice.endpoint}", endpoint=choice.endpoint)
    return tracing
