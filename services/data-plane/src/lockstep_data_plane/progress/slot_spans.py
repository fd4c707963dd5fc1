"""What a slot copied, stretch by stretch, as spans: one a second at most, and none where nothing happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lockstep_runtime.telemetry.tracing import NO_TRACING, Attribute, Tracing

LEAST_NS = 1_000_000_000
"""No stretch is shorter, so a span a second is the most there is, however much is copied."""

COPY = "data-plane copy"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyTotals:
    """How far a slot is in its run: `records` and `bytes` only grow. `trouble`: what is wrong now."""

    records: int
    bytes: int
    partitions: int
    held_bytes: int
    trouble: str = ""


class SlotSpans:
    """Of one run of a slot."""

    def __init__(self, tracing: Tracing, flow: str, slot: int, run: str, now_ns: Callable[[], int]) -> None:
        """`now_ns`: Unix nanoseconds. The first stretch begins now."""
        self._tracing = tracing
        self._attributes: dict[str, Attribute] = {"flow": flow, "service": "data-plane", "slot": slot, "run": run}
        self._now_ns = now_ns
        self._began_ns = now_ns()
        self._before = CopyTotals(records=0, bytes=0, partitions=0, held_bytes=0)

    def update(self, copied: Callable[[], CopyTotals], *, last: bool = False) -> None:
        """To be called every now and then: ends the stretch when it is long enough, and begins the next one. `last`:
        end it however short it is."""
        if self._tracing is NO_TRACING:
            return
        now = self._now_ns()
        if now - self._began_ns < LEAST_NS and not last:
            return
        found, before = copied(), self._before
        if found.records > before.records or found.trouble != before.trouble:
            self._tracing.stretch(
                COPY,
                self._began_ns,
                max(now, self._began_ns),
                found.trouble,
                **self._attributes,
                records=found.records - before.records,
                bytes=found.bytes - before.bytes,
                partitions=found.partitions,
                held_bytes=found.held_bytes,
            )
        self._began_ns, self._before = now, found
