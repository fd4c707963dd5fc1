"""What the driver shows of its slots' partitions to Prometheus, read from their rows in the state topic."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from lockstep_data_plane.assign import TopicPartition
from lockstep_protocol.state import PartitionProgress
from lockstep_runtime.context import FlowContext

__all__ = ["Measures"]


class Measures:
    """Gauges by topic and partition, and counters that go on over restarts of slots."""

    def __init__(self, ctx: FlowContext) -> None:
        self._flow = str(ctx.flow)
        labels = ("topic", "partition")
        m = ctx.metrics
        self._lag = m.gauge("lockstep_lag_records", "Source records not yet durable on the target", *labels)
        self._lag_s = m.gauge("lockstep_lag_seconds", "Age of the oldest record not yet durable on the target", *labels)
        self._latency = m.gauge("lockstep_latency_seconds", "Record timestamp to acknowledgement, last batch", *labels)
        self._upstream = m.gauge("lockstep_upstream_offset", "Last upstream offset durable on the target", *labels)
        self._halted = m.gauge("lockstep_partition_halted", "1 while the partition waits for a decision", *labels)
        self._records = m.counter("lockstep_records", "Records appended to the target", *labels)
        self._bytes = m.counter("lockstep_bytes", "Bytes of batches appended to the target", *labels)
        self._stuck = m.gauge("lockstep_partition_stuck", "1 while the source moves and the copy does not", *labels)
        self._given_up = m.counter("lockstep_given_up_offsets", "Upstream offsets that a policy gave up", *labels)
        self._quarantined = m.counter("lockstep_quarantined", "Records and batches put into quarantine", *labels)
        self._marked: set[TopicPartition] = set()
        self._counted: dict[TopicPartition, tuple[int, int]] = {}
        self._seen: dict[tuple[str, int], tuple[int, int]] = {}

    def update(self, rows: Iterable[PartitionProgress]) -> None:
        """Take over the newest rows. A slot's counters begin at zero with each run; ours do not."""
        for row in rows:
            labels = (self._flow, row.topic, str(row.partition))
            self._lag.labels(*labels).set(row.lag_records)
            self._lag_s.labels(*labels).set(row.lag_ms / 1000)
            self._latency.labels(*labels).set(row.latency_ms / 1000)
            self._upstream.labels(*labels).set(row.upstream)
            self._halted.labels(*labels).set(row.phase == "halted")
            records, size = self._seen.get((row.topic, row.partition), (0, 0))
            # The same records may be fewer bytes in another run (merged, rebuilt), so either may be what fell.
            fresh = row.records < records or row.bytes < size
            self._records.labels(*labels).inc(row.records if fresh else row.records - records)
            self._bytes.labels(*labels).inc(row.bytes if fresh else row.bytes - size)
            self._seen[row.topic, row.partition] = (row.records, row.bytes)
            given_up, quarantined = self._counted.get((row.topic, row.partition), (0, 0))
            self._given_up.labels(*labels).inc(max(0, row.given_up - given_up))
            self._quarantined.labels(*labels).inc(max(0, row.quarantined - quarantined))
            self._counted[row.topic, row.partition] = (row.given_up, row.quarantined)

    def stuck(self, partitions: Collection[TopicPartition]) -> None:
        """Which partitions stand still although their source moves."""
        for topic, number in self._marked | set(partitions):
            self._stuck.labels(self._flow, topic, str(number)).set((topic, number) in partitions)
        self._marked = set(partitions)
