"""Begins a process's tracing where its configuration asks for it."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.telemetry.tracing import NO_TRACING, Tracing
from lockstep_runtime.telemetry.tracing_config import tracing_config


def start_tracing(service: str, instance: str, environment: Mapping[str, str], log: FlowLog) -> Tracing:
    """For a service that is to trace (`FlowSettings.tracing`). An obstacle is logged in one line, and then nothing is
    traced: no service stops for want of spans."""
    choice = tracing_config(service, environment)
    for warning in choice.warnings:
        log.warn("tracing", warning)
    if not choice.exports:
        return NO_TRACING
    try:
        from lockstep_runtime.telemetry.spans import Spans  # tens of megabytes, only for a service that traces
    except ImportError as exc:
        log.warn("tracing is off", f"{exc}: install lockstep-runtime[tracing], or take lockstep.tracing away")
        return NO_TRACING
    try:
        tracing = Spans(choice, instance, log)
    except ValueError as exc:
        log.warn("tracing is off", f"a variable OTEL_... cannot be understood: {exc}")
        return NO_TRACING
    log.info("tracing", f"as {choice.service_name} to {choice.endpoint}", endpoint=choice.endpoint)
    return tracing
