"""What went wrong with one partition: whether looking at the target settles it, or somebody has to decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lockstep_data_plane.core.append_sequence import InFlightBatch
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.core.phases import PartitionEvent
from lockstep_data_plane.core.quarantine_entry import RefusedRecords, refused_piece
from lockstep_data_plane.progress.event_reporter import EventReporter
from lockstep_data_plane.wire.cluster import ClusterClient
from lockstep_data_plane.wire.error_codes import NO_TOPIC, Retry, retry_for
from lockstep_data_plane.wire.produce_codec import ProduceAnswer
from lockstep_protocol.kafka_errors import KafkaErrorCode
from lockstep_runtime.util.errors import ClusterError

__all__ = ["ErrorHandler"]


class ErrorHandler:
    """Turns what a broker or the judge said into the partition's next phase, and into what is told of it."""

    def __init__(
        self,
        source: ClusterClient,
        target: ClusterClient,
        reporter: EventReporter,
        *,
        on_failed: Callable[[PartitionMachine], None],
    ) -> None:
        """`on_failed`: the partition reads no more, so that nothing more is to be fetched for it."""
        self._source = source
        self._target = target
        self._reporter = reporter
        self._on_failed = on_failed

    def on_append_failed(
        self, partition: PartitionMachine, why: str | ClusterError, *, of_source: bool = False
    ) -> None:
        """Something went wrong that the target's log will settle: stop sending, await the answers, read, go on. Without
        effect on a partition that is past copying. `of_source`: the target has no part in it."""
        if not partition.can(PartitionEvent.FAILED):
            return
        first = partition.reads
        partition.ends_first = of_source and (first or partition.ends_first)
        partition.on(PartitionEvent.FAILED)
        if first and why:
            self._reporter.trouble(partition, ClusterError("", why) if isinstance(why, str) else why)
        self._on_failed(partition)

    def cut(self, partition: PartitionMachine, why: str) -> None:
        """A connection ended. Whether its cluster is gone, resuming will say: one line for all partitions, not one for
        each."""
        self.on_append_failed(partition, "")

    def source_cut(self, partition: PartitionMachine, why: str) -> None:
        """As `cut`, where it was the source's connection."""
        self.on_append_failed(partition, "", of_source=True)

    def misnumbered(self, partition: PartitionMachine, why: str) -> None:
        """Counting does not tell where the copy stands: look at the records themselves."""
        partition.misnumbered = True
        self.on_append_failed(partition, why)

    def refused(self, partition: PartitionMachine, why: str, refusal: RefusedRecords | None = None) -> None:
        """Nothing settles it but a decision (`lockstep.on.refused`). `refusal`: the records, where they are known."""
        if not partition.can(PartitionEvent.REFUSED):
            return
        partition.refusal, partition.kept = refusal, 0
        partition.on(PartitionEvent.REFUSED, why)
        self._on_failed(partition)

    def fetch_refused(self, partition: PartitionMachine, code: int) -> None:
        """The source answered a fetch with an error."""
        fate, why = retry_for(code)
        where = f"cluster {self._source.alias}: fetching {partition.name}: {why}"
        if code in NO_TOPIC:
            self.on_append_failed(
                partition, "", of_source=True
            )  # deleted, re-created, or led elsewhere: resuming will say
        elif code == KafkaErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self._denied(partition, self._source, partition.topic, "Read")
        elif fate is Retry.REFUSED:
            self.refused(partition, where)
        else:
            self.on_append_failed(partition, where, of_source=True)

    def append_refused(self, partition: PartitionMachine, flight: InFlightBatch, answer: ProduceAnswer) -> None:
        """The target answered an append with an error. What is too large as one batch is split from now on."""
        fate, why = retry_for(answer.code)
        where = f"cluster {self._target.alias}: appending to {partition.target_name}: {why}"
        if answer.code == KafkaErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self._denied(partition, self._target, partition.target_topic, "Write")
        elif fate is Retry.TOO_LARGE and flight.piece.count > 1:
            partition.limits = replace(partition.limits, max_bytes=max(1, flight.piece.size // 2))
            self.on_append_failed(partition, f"{where}; splitting")
        elif fate in (Retry.REFUSED, Retry.TOO_LARGE):
            records = "".join(
                f"; offset {flight.piece.offsets[i]}: {text or 'refused'}" for i, text in answer.records[:5]
            )
            named = range(1) if fate is Retry.TOO_LARGE else [i for i, _ in answer.records]
            why = f"{where} ({answer.message or 'no message'}){records}"
            self.refused(partition, why, refused_piece(flight.piece, named, why) if flight.piece.count else None)
        else:
            self.on_append_failed(partition, where)

    def _denied(self, partition: PartitionMachine, cluster: ClusterClient, topic: str, operation: str) -> None:
        self.on_append_failed(partition, self._reporter.denied(cluster.alias, "topic", topic, operation))
