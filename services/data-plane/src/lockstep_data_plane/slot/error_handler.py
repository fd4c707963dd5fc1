"""Decisions about one partition after an error code of either cluster.

Some errors are settled by the target's log when the partition resumes. Others need an operator.
"""

from dataclasses import replace

from lockstep_data_plane.core.append_sequence import InFlightBatch
from lockstep_data_plane.core.events import Failed, Refused
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.quarantine_entry import refuse_records, refused_outgoing
from lockstep_data_plane.produce.sender import NoProduceAnswer
from lockstep_data_plane.progress.event_reporter import EventReporter
from lockstep_data_plane.record_batch.codecs import NONE
from lockstep_kafka.messages.produce_codec import ProduceAnswer
from lockstep_kafka.messages.request_size import SMALL_BYTES
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.error_codes import NO_TOPIC, explain
from lockstep_state.kafka.kafka_errors import ErrorMeaning, KafkaErrorCode

REFUSES_CODEC = frozenset({KafkaErrorCode.UNSUPPORTED_COMPRESSION_TYPE, KafkaErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})
"""The error codes for an unsupported codec. Brokers answer the first one, Azure Event Hubs the second."""


class ErrorHandler:
    """A translator of error codes of both clusters into events of a partition."""

    def __init__(
        self, source: ClusterClient, target: ClusterClient, reporter: EventReporter, *, recompress: str = "auto"
    ) -> None:
        """Create the handler.

        Args:
            source: The source cluster.
            target: The target cluster.
            reporter: Receives missing permissions and refused codecs.
            recompress: The value of `lockstep.recompress`. It decides about batches whose codec the target refuses.
        """
        self._source = source
        self._target = target
        self._reporter = reporter
        self._recompresses = recompress in ("auto", "true")
        self.refused_codecs: frozenset[int] = frozenset()
        """The codecs of which the target has refused batches."""

    def on_fetch_error(self, partition: PartitionState, code: int) -> Failed | Refused:
        """Return the event for an error code in the source's answer to a fetch."""
        meaning, explanation = explain(code)
        position = f"{partition.name} from offset {partition.fetch_from} on"
        text = f"cluster {self._source.alias}: fetching {position}: {explanation}"
        if code in NO_TOPIC:  # deleted, re-created, or led elsewhere: resuming will say
            return Failed(source_failed=True)
        if code == KafkaErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return Failed(self._reporter.to_denied_error(self._source.alias, "topic", partition.topic, "Read"))
        refuses = meaning is ErrorMeaning.REFUSED
        return Refused(refuse_records(text, None)) if refuses else Failed(text, source_failed=True)

    def on_append_error(
        self, partition: PartitionState, sent: InFlightBatch, answer: ProduceAnswer | NoProduceAnswer
    ) -> Failed | Refused:
        """Return the event for an append that the target refused or did not answer.

        A batch that is too large is split from now on. A record is refused as too large only if it was alone in its
        batch.
        """
        if isinstance(answer, NoProduceAnswer):
            return self._on_no_answer(partition, sent)
        meaning, explanation = explain(answer.code)
        text = f"cluster {self._target.alias}: appending to {partition.target_name}: {explanation}"
        if answer.code == KafkaErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return Failed(
                self._reporter.to_denied_error(self._target.alias, "topic", partition.target_topic, "Write"), sent
            )
        outgoing = sent.outgoing
        if self._recompresses and answer.code in REFUSES_CODEC and outgoing.codec != NONE:
            return self._refuse_codec(partition, sent, answer.code)
        if meaning is ErrorMeaning.TOO_LARGE and outgoing.count > 1:
            return Failed(f"{text}; splitting", sent, split_above=outgoing.size // 2)
        if meaning not in (ErrorMeaning.REFUSED, ErrorMeaning.TOO_LARGE):
            return Failed(text, sent)
        records = "".join(
            f"; offset {outgoing.offsets[i]}: {message or 'refused'}" for i, message in answer.records[:5]
        )
        named = range(1) if meaning is ErrorMeaning.TOO_LARGE else [i for i, _ in answer.records]
        text = f"{text} ({answer.message or 'no message'}){records}"
        refusal = refused_outgoing(outgoing, named, text) if outgoing.count else None
        return Refused(refuse_records(text, refusal), refusal, sent=sent)

    def _on_no_answer(self, partition: PartitionState, sent: InFlightBatch) -> Failed | Refused:
        """Return the event for a batch without an answer.

        If the target closes the connection on large requests, batches are split. A single record that needs a large
        request is refused.
        """
        outgoing = sent.outgoing
        if not self._target.request_size.refuses(outgoing.size):
            return Failed(sent=sent)
        if outgoing.count > 1:
            return Failed(sent=sent, split_above=SMALL_BYTES)
        text = (
            f"cluster {self._target.alias}: appending to {partition.target_name}: the connection is closed on requests "
            f"above {SMALL_BYTES} bytes, and the record needs {outgoing.size}"
        )
        refusal = refused_outgoing(outgoing, range(1), text)
        return Refused(refuse_records(text, refusal), refusal, sent=sent)

    def _refuse_codec(self, partition: PartitionState, sent: InFlightBatch, code: int) -> Failed:
        """Remember the refused codec for all partitions, and report once which codec replaces it.

        The batch is judged again.
        """
        codec = sent.outgoing.codec
        if codec not in self.refused_codecs:
            self.refused_codecs |= {codec}
            limits = replace(partition.limits, refused_codecs=self.refused_codecs)
            self._reporter.codec_refused(self._target.alias, codec, limits.replace_refused(codec), explain(code)[1])
        return Failed(sent=sent, refused_codecs=self.refused_codecs)
