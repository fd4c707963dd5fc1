"""What a slot copied, stretch by stretch, as spans: one a second at most, and none where nothing happened."""

from collections.abc import Callable

from lockstep_kafka.common.tracing import NO_TRACING, Attribute, Tracing

LEAST_NS = 1_000_000_000
"""No stretch is shorter, so a span a second is the most there is, however much is copied."""

COPY = "data-plane copy"


class SlotSpans:
    """Of one run of a slot."""

    def __init__(self, tracing: Tracing, flow: str, slot: int, run: str, now_ns: Callable[[], int]) -> None:
        """`now_ns`: Unix nanoseconds. The first stretch begins now."""
        self._tracing = tracing
        self._attributes: dict[str, Attribute] = {"flow": flow, "service": "data-plane", "slot": slot, "run": run}
        self._now_ns = now_ns
        self._began_ns = now_ns()
        self._records = self._bytes = 0
        self._trouble = ""

    def update(
        self, records: int, copied_bytes: int, trouble: str, *, partitions: int, held_bytes: int, last: bool = False
    ) -> None:
        """To be called every now and then: ends the stretch when it is long enough, and begins the next one. Records
        and bytes only grow in a run; `trouble`: what is wrong now. `last`: end it however short it is."""
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
