"""Spans of what a slot copied: at most one a second, and none if nothing happened."""

from collections.abc import Callable

from lockstep_kafka.common.tracing import NO_TRACING, Attribute, Tracing

LEAST_NS = 1_000_000_000
"""The shortest duration of a span in nanoseconds, unless it is the last. So there is at most one a second."""

COPY = "data-plane copy"


class SlotSpans:
    """The spans of one run of a slot."""

    def __init__(self, tracing: Tracing, flow: str, slot: int, run: str, now_ns: Callable[[], int]) -> None:
        """Begin the first span. `now_ns` returns Unix nanoseconds."""
        self._tracing = tracing
        self._attributes: dict[str, Attribute] = {"flow": flow, "service": "data-plane", "slot": slot, "run": run}
        self._now_ns = now_ns
        self._began_ns = now_ns()
        self._records = self._bytes = 0
        self._trouble = ""

    def update(
        self, records: int, copied_bytes: int, trouble: str, *, partitions: int, held_bytes: int, last: bool = False
    ) -> None:
        """End the present span if it is long enough, and begin the next one. To be called often.

        Args:
            records: The number of records that were copied in this run.
            copied_bytes: The bytes of their batches.
            trouble: The errors that the slot has now; "" if none.
            partitions: The number of partitions that the slot copies.
            held_bytes: The bytes fetched and not yet acknowledged.
            last: End the span however short it is.
        """
        if self._tracing is NO_TRACING:
            return
        now = self._now_ns()
        if now - self._began_ns < LEAST_NS and not last:
            return
        if records > self._records or trouble != self._trouble:
            self._tracing.span_interval(
                COPY,
                self._began_ns,
                max(now, self._began_ns),
                trouble,
                **self._attributes,
                records=records - self._records,
                bytes=copied_bytes - self._bytes,
                partitions=partitions,
                held_bytes=held_bytes,
            )
        self._began_ns, self._records, self._bytes, self._trouble = now, records, copied_bytes, trouble
