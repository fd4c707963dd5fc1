"""Errors between our process and a cluster, each as one sentence for the operator.

All of them are `ClusterError`: the main loop catches it, reports it once and tries again. Any other exception is a
mistake in Lockstep, and ends the process.
"""

from collections.abc import Iterator
from typing import Any

from lockstep_config.credentials.permissions import Remedy
from lockstep_state.errors import RetriableError
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence

NO_REMEDY = "grant our principal that operation there"


def errors_in(exc: BaseException | None) -> Iterator[Any]:
    """Yield the errors of a nested exception group in order, or the error itself if it is no group."""
    if isinstance(exc, BaseExceptionGroup):
        for nested in exc.exceptions:
            yield from errors_in(nested)
    elif exc is not None:
        yield exc


class ClusterError(RetriableError):
    """An error of a cluster.

    `alias` names the cluster. The text is a full sentence that is understood without a traceback.
    """

    def __init__(self, alias: str, sentence: str) -> None:
        super().__init__(sentence)
        self.alias = alias

    def to_reason(self) -> Reason:
        """Return the error as a reason, for rows and events."""
        return ReasonCode.REPORTED.to_reason(cluster=self.alias, text=str(self))


class RefusedCommand(ValueError):
    """An operator's command that is not carried out.

    The message is the sentence of the reason.
    """

    def __init__(self, cause: Reason) -> None:
        super().__init__(format_sentence(cause))
        self._cause = cause

    def to_reason(self) -> Reason:
        """Return the error as a reason, for the answer to the command."""
        return self._cause


class ShutdownRequested(Exception):
    """The error of a configuration that asks the process to end. Its text says why.

    The process shuts down in order, with the exit code `SHUTDOWN_REQUESTED`, and its supervisor may start it again.
    """


class LeadershipLost(Exception):
    """The loss of the right to act: another replica leads, or our group has not answered lately.

    It ends the main loop without a report.
    """


class ClusterUnreachable(ClusterError):
    """An error if no broker of the cluster answered.

    Trying again is always right.
    """

    def __init__(self, alias: str, bootstrap: str, message: str) -> None:
        self.alias, self.bootstrap, self.message = alias, bootstrap, message
        super().__init__(alias, format_sentence(self.to_reason()))

    def to_reason(self) -> Reason:
        return ReasonCode.CLUSTER_UNREACHABLE.to_reason(cluster=self.alias, bootstrap=self.bootstrap, text=self.message)


class ProtocolUnfit(ClusterError):
    """An error if a broker knows none of our versions of a request.

    `reason` names all such requests.
    """

    def __init__(self, alias: str, reason: Reason) -> None:
        super().__init__(alias, format_sentence(reason))
        self.reason = reason

    def to_reason(self) -> Reason:
        return self.reason


class AppendsUnsafe(ClusterError):
    """An error if the target's producer ids do not allow an exact copy, and it has no transactions.

    `faults` says what is missing, as the rest of a sentence about the cluster.
    """

    def __init__(self, alias: str, faults: str) -> None:
        self.alias, self.faults = alias, faults
        super().__init__(alias, format_sentence(self.to_reason()))

    def to_reason(self) -> Reason:
        return ReasonCode.APPENDS_UNSAFE.to_reason(cluster=self.alias, text=self.faults)


class AdvertisedAddressUnresolved(ClusterUnreachable):
    """An error if a broker's advertised address cannot be resolved here.

    Waiting longer does not help.
    """


class NotPermitted(ClusterError):
    """An error if the cluster refused a request for lack of a permission.

    Trying again helps once it is granted. `remedy` says what the permission is for and which command grants it.
    """

    def __init__(self, alias: str, operation: str, resource: str, remedy: Remedy | None = None) -> None:
        self.alias, self.operation, self.resource, self.remedy = alias, operation, resource, remedy
        super().__init__(alias, format_sentence(self.to_reason()))

    def to_reason(self) -> Reason:
        remedy = self.remedy or Remedy(NO_REMEDY, "")
        return ReasonCode.NOT_PERMITTED.to_reason(
            cluster=self.alias,
            operation=self.operation,
            resource=self.resource,
            text=remedy.lacks,
            grant=remedy.command,
        )


class RequestRefused(ClusterError):
    """An error if the cluster refused a request for another reason than a missing permission.

    `code` is Kafka's. A code below 0 is librdkafka's own, which tells nothing about the cluster.
    """

    def __init__(self, alias: str, operation: str, resource: str, code: int, message: str) -> None:
        self.alias, self.operation, self.resource, self.code, self.message = alias, operation, resource, code, message
        super().__init__(alias, format_sentence(self.to_reason()))

    def to_reason(self) -> Reason:
        return ReasonCode.REQUEST_REFUSED.to_reason(
            cluster=self.alias, operation=self.operation, resource=self.resource, error=self.code, text=self.message
        )


class RequestUnsupported(RequestRefused):
    """An error if the cluster does not know the request.

    Trying again does not help.
    """

    def to_reason(self) -> Reason:
        return ReasonCode.REQUEST_UNSUPPORTED.to_reason(
            cluster=self.alias, operation=self.operation, resource=self.resource
        )


class TopicMissing(ClusterError):
    """An error if a topic that is to be read does not exist, or no longer exists."""

    def __init__(self, alias: str, topic: str) -> None:
        self.alias, self.topic = alias, topic
        super().__init__(alias, format_sentence(self.to_reason()))

    def to_reason(self) -> Reason:
        return ReasonCode.TOPIC_ABSENT.to_reason(cluster=self.alias, topic=self.topic)


class TopicReplaced(ClusterError):
    """An error if a control topic was deleted and created again.

    What was read from the former one no longer counts.
    """

    def __init__(self, alias: str, topic: str, before: str, now: str) -> None:
        super().__init__(alias, f"topic {topic} on cluster {alias} is another one (id {before} then, {now} now)")


class ClusterReplaced(ClusterError):
    """An error if another cluster answers at the same address.

    `before` and `now` are the cluster ids.
    """

    def __init__(self, alias: str, before: str, now: str) -> None:
        super().__init__(alias, f"cluster {alias} is another one (cluster id {before} then, {now} now)")
        self.before = before
        self.now = now


class TopicDeleted(ClusterError):
    """An error if a broker says that a known topic no longer exists.

    A later request shows whether another broker knows it.
    """

    def __init__(self, alias: str, topic: str) -> None:
        super().__init__(alias, f"topic {topic} was deleted on cluster {alias}: a broker says that there is none")


class LogTruncated(ClusterError):
    """An error if the log no longer holds the offset that was to be read next.

    What was folded from it has to be folded again from the beginning.
    """

    def __init__(self, alias: str, topic: str, partition: int, position: int) -> None:
        super().__init__(
            alias,
            f"topic {topic} partition {partition} on cluster {alias} no longer holds offset {position}: "
            "it was re-created or truncated; reading it again from the beginning",
        )


class NotAppended(ClusterError):
    """An error if a record was not acknowledged in time.

    It may or may not be in the log. Append it again: rows are idempotent.
    """

    def __init__(self, alias: str, topic: str, message: str) -> None:
        super().__init__(alias, f"could not append to {topic} on cluster {alias}: {message}")
