"""Events of a slot, and the beginning and end of its partitions' errors.

Nothing here waits: an event is in flight when the call returns.
"""

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import needed_access
from lockstep_data_plane.core.effects import CopyTrouble, ForeignRecords, Halted, Recovered, Report
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.progress.control_topic_writer import ControlTopicWriter
from lockstep_data_plane.record_batch.codecs import CODEC_NAMES, NONE
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, NotPermitted, ProtocolUnfit, TopicDeleted
from lockstep_kafka.messages.request_size import SMALL_BYTES
from lockstep_kafka.wire.cluster import ClusterClient, KafkaProtocolError
from lockstep_kafka.wire.connection_errors import BrokerUnreachable, ProtocolUnfitError, TopicDeletedError
from lockstep_kafka.wire.error_codes import DENIED
from lockstep_kafka.wire.unsupported_requests import UnsupportedCase
from lockstep_runtime.telemetry.failure_tracker import FailureTracker
from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.reasons.reason_catalogue import format_sentence

_UNSUPPORTED = {
    UnsupportedCase.ABSENT: "its brokers do not know {}",
    UnsupportedCase.REFUSED: "its brokers refuse {} as not supported",
    UnsupportedCase.CONNECTION_CLOSED: "its brokers close the connection on {}",
    UnsupportedCase.CONTRADICTS_LOG: "its brokers answer {} with what the batches of the log disprove",
}
_INSTEAD = {
    "describe_producers": "At each resume the end of the target's log is read instead",
    "offset_for_leader_epoch": "At each resume the leader epochs in the source's log show whether it was truncated",
}


class EventReporter:
    """A reporter of one slot's events and errors. One instance belongs to one event loop."""

    def __init__(
        self,
        settings: FlowSettings,
        control_writer: ControlTopicWriter,
        troubles: FailureTracker,
        source: ClusterClient,
        target: ClusterClient,
    ) -> None:
        self._access = {alias: needed_access(settings, alias) for alias in (source.alias, target.alias)}
        self._control_writer = control_writer
        self._troubles = troubles
        self._clusters = {source.alias: source, target.alias: target}
        self._troubled: set[PartitionState] = set()

    # -- troubles ------------------------------------------------------------------------------------------------------

    def trouble(self, partition: PartitionState, error: BaseException) -> None:
        """Note an error that stops the partition's progress."""
        self._troubled.add(partition)
        self._troubles.record_failure(partition.name, self.as_trouble(error))

    def recovered(self, partition: PartitionState) -> None:
        """Note that records of the partition are copied again."""
        if partition in self._troubled:
            self._troubled.discard(partition)
            self._troubles.record_success(partition.name)

    def forget(self, partition: PartitionState) -> None:
        """Forget a partition that has left. Another slot finds out whether it works."""
        self._troubled.discard(partition)
        self._troubles.forget(partition.name)

    def report_slot_failure(self, part: str, error: BaseException | None) -> None:
        """Note that something fails that all partitions share, or that it works again if `error` is None."""
        if error is None:
            self._troubles.record_success(part)
        else:
            self._troubles.record_failure(part, self.as_trouble(error))

    def as_trouble(self, exc: BaseException) -> ClusterError:
        """Return the exception as a ClusterError, which names the cluster if it is known."""
        if isinstance(exc, ClusterError):
            return exc
        if isinstance(exc, TopicDeletedError):
            return TopicDeleted(exc.alias, exc.topic)
        if isinstance(exc, ProtocolUnfitError):
            return ProtocolUnfit(exc.alias, exc.reason)
        denied = isinstance(exc, BrokerUnreachable) or (isinstance(exc, KafkaProtocolError) and exc.code in DENIED)
        if isinstance(exc, BrokerUnreachable | KafkaProtocolError) and denied and exc.needs is not None:
            return self.to_denied_error(exc.alias, *exc.needs)
        if isinstance(exc, BrokerUnreachable) and exc.alias:
            return ClusterUnreachable(exc.alias, self._clusters[exc.alias].bootstrap, str(exc))
        return ClusterError("", str(exc) or type(exc).__name__)

    def to_denied_error(self, alias: str, kind: str, name: str, operation: str) -> NotPermitted:
        """Return the error for an operation that the cluster refused on a resource, with the command that grants it."""
        remedy = self._access[alias].remedy(kind, name, operation)
        return NotPermitted(alias, operation.upper(), f"{kind} {name}", remedy)

    # -- events --------------------------------------------------------------------------------------------------------

    def report(self, partition: PartitionState, report: Report) -> None:
        """Write the event, or note the error, that a step of the partition reports."""
        name, target_name = partition.name, partition.target_name
        if isinstance(report, CopyTrouble):
            error = ClusterError("", report.error) if isinstance(report.error, str) else report.error
            self.trouble(partition, error)
        elif isinstance(report, Halted):
            sentence = format_sentence(report.cause)
            self._control_writer.event(
                "PartitionHalted", name, f"{name}: {sentence}", upstream=report.upstream, cause=report.cause
            )
        elif isinstance(report, Recovered):
            text = f"{name}: {report.records} records were appended after the last progress written"
            self._control_writer.event(
                "ProgressRecovered", name, text, records=report.records, upstream=report.upstream
            )
        elif isinstance(report, ForeignRecords):
            ack = report.ack
            self._control_writer.event(
                "ForeignWrite",
                target_name,
                f"{target_name}: somebody else wrote {ack.foreign} records before offset {ack.downstream}; downstream "
                "offsets no longer follow upstream ones",
                records=ack.foreign,
                before=ack.downstream,
            )
        else:  # the operator of the target may want it so, and MM2 goes on as well
            self._control_writer.event(
                "TimestampsRewritten",
                target_name,
                f"{target_name}: the target puts the time of the append in place of the records' times "
                "(message.timestamp.type=LogAppendTime)",
                downstream=report.downstream,
            )

    def report_clusters(self) -> None:
        """Report the news of both clusters.

        They are exceeded quotas, limited request sizes, and requests that a cluster does not support.
        """
        for cluster in self._clusters.values():
            if seconds := cluster.quota.take_notice():
                self._throttled(cluster.alias, seconds)
            if cluster.request_size.take_notice():
                self._requests_limited(cluster.alias)
            for api, case in cluster.unsupported.take_cases():
                self._unsupported(cluster.alias, api, case)

    def _requests_limited(self, alias: str) -> None:
        self._control_writer.event(
            "RequestsLimited",
            f"cluster {alias}",
            f"cluster {alias} closes the connection on large requests: batches in one have {SMALL_BYTES} bytes at most",
            bytes=SMALL_BYTES,
        )

    def _unsupported(self, alias: str, api: str, case: UnsupportedCase) -> None:
        name = APIS[api].name
        text = f"cluster {alias}: {_UNSUPPORTED[case].format(name)}. {_INSTEAD[api]}"
        self._control_writer.event("RequestUnsupported", f"cluster {alias}", text, api=name, case=case.value)

    def codec_refused(self, alias: str, codec: int, instead: int, reason: str) -> None:
        """Report that batches of a codec are recompressed from now on, with the codec `instead`."""
        name, replacement = CODEC_NAMES[codec], CODEC_NAMES[instead]
        cost = "This costs bytes on the line" if instead == NONE else "This costs CPU of the slots"
        self._control_writer.event(
            "CodecRefused",
            f"cluster {alias}",
            f"cluster {alias} refuses batches that are compressed with {name}: {reason}. They are not copied as they "
            f"are, but built anew with {replacement} (lockstep.recompress=auto). {cost}",
            codec=name,
            instead=replacement,
        )

    def _throttled(self, alias: str, seconds: float) -> None:
        self._control_writer.event(
            "Throttled",
            f"cluster {alias}",
            f"cluster {alias}: its brokers throttle this slot, because it exceeds a quota (by {seconds:g} s at first). "
            "It continues at the quota's rate",
            seconds=seconds,
        )
