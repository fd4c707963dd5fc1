"""What can go wrong between us and a cluster, each as one sentence for the operator.

All of them are `ClusterError`: the main loop catches it, names it once and tries again. Any other exception is a
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
    """The errors in a group of errors, however deep, in order; an error that is no group by itself."""
    if isinstance(exc, BaseExceptionGroup):
        for one in exc.exceptions:
            yield from errors_in(one)
    elif exc is not None:
        yield exc


class ClusterError(RetriableError):
    """Something a cluster did or did not do. `alias` names the cluster; the text is a full sentence without a
    traceback's help.
    """

    def __init__(self, alias: str, sentence: str) -> None:
        super().__init__(sentence)
        self.alias = alias

    def to_reason(self) -> Reason:
        """Return it as a code with details, for rows and events."""
        return ReasonCode.REPORTED.to_reason(cluster=self.alias, text=str(self))


class RefusedCommand(ValueError):
    """A command is not carried out. The message is the sentence of the reason."""

    def __init__(self, cause: Reason) -> None:
        super().__init__(format_sentence(cause))
        self._cause = cause

    def to_reason(self) -> Reason:
        """Return it as a code with details, for the answer."""
        return self._cause


class ShutdownRequested(Exception):
    """Why the configuration asks the process to end, in a sentence. It ends in order, with the exit code
    `SHUTDOWN_REQUESTED`, and its supervisor may start it again.
    """


class LeadershipLost(Exception):
    """We may not act (any more): somebody else leads, or our group has not been heard from lately. Ends the main loop
    quietly.
    """


class ClusterUnreachable(ClusterError):
    """No broker of the cluster answered. Always worth trying again."""

    def __init__(self, alias: str, bootstrap: str, why: str) -> None:
        self.alias, self.bootstrap, self.why = alias, bootstrap, why
        super().__init__(alias, format_sentence(self.to_reason()))

    def to_reason(self) -> Reason:
        return ReasonCode.CLUSTER_UNREACHABLE.to_reason(cluster=self.alias, bootstrap=self.bootstrap, text=self.why)


class ProtocolUnfit(ClusterError):
    """A broker answers, and knows none of the versions of a request that we know. `reason` names all of them."""

    def __init__(self, alias: str, reason: Reason) -> None:
        super().__init__(alias, format_sentence(reason))
        self.reason = reason

    def to_reason(self) -> Reason:
        return self.reason


class AppendsUnsafe(ClusterError):
    """The target does not do with producer ids what an exact copy needs, and has no transactions. `faults` says what,
    as the rest of a sentence about the cluster.
    """

    def __init__(self, alias: str, faults: str) -> None:
        self.alias, self.faults = alias, faults
        super().__init__(alias, format_sentence(self.to_reason()))

    def to_reason(self) -> Reason:
        return ReasonCode.APPENDS_UNSAFE.to_reason(cluster=self.alias, text=self.faults)


class AdvertisedAddressUnresolved(ClusterUnreachable):
    """The cluster names an address of a broker that leads nowhere from here: waiting longer does not help now."""


class NotPermitted(ClusterError):
    """The cluster refused for lack of a permission; trying again helps once somebody grants it. `remedy` says what it
    is for and what grants it.
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
    """The cluster answered with an error that is neither its absence nor a permission. `code` is Kafka's;
    below 0: librdkafka's own, which says nothing of the cluster.
    """

    def __init__(self, alias: str, operation: str, resource: str, code: int, why: str) -> None:
        self.alias, self.operation, self.resource, self.code, self.why = alias, operation, resource, code, why
        super().__init__(alias, format_sentence(self.to_reason()))

    def to_reason(self) -> Reason:
        return ReasonCode.REQUEST_REFUSED.to_reason(
            cluster=self.alias, operation=self.operation, resource=self.resource, error=self.code, text=self.why
        )


class RequestUnsupported(RequestRefused):
    """The cluster does not know the request. Asking again does not help, and what it asks for is not known there."""

    def to_reason(self) -> Reason:
        return ReasonCode.REQUEST_UNSUPPORTED.to_reason(
            cluster=self.alias, operation=self.operation, resource=self.resource
        )


class TopicMissing(ClusterError):
    """A topic to be read does not exist (any more)."""

    def __init__(self, alias: str, topic: str) -> None:
        self.alias, self.topic = alias, topic
        super().__init__(alias, format_sentence(self.to_reason()))

    def to_reason(self) -> Reason:
        return ReasonCode.TOPIC_ABSENT.to_reason(cluster=self.alias, topic=self.topic)


class TopicReplaced(ClusterError):
    """A control topic was deleted and created again: what was read of it, and what it had, counts no more."""

    def __init__(self, alias: str, topic: str, before: str, now: str) -> None:
        super().__init__(alias, f"topic {topic} on cluster {alias} is another one (id {before} then, {now} now)")


class ClusterReplaced(ClusterError):
    """Another cluster answers at the same address. `before` and `now` are the cluster ids."""

    def __init__(self, alias: str, before: str, now: str) -> None:
        super().__init__(alias, f"cluster {alias} is another one (cluster id {before} then, {now} now)")
        self.before = before
        self.now = now


class TopicDeleted(ClusterError):
    """A topic that was there is there no more, as a broker says. A later request shows whether another broker knows
    it.
    """

    def __init__(self, alias: str, topic: str) -> None:
        super().__init__(alias, f"topic {topic} was deleted on cluster {alias}: a broker says that there is none")


class LogTruncated(ClusterError):
    """The log ends or begins elsewhere than where we were reading: what was folded from it has to be folded anew."""

    def __init__(self, alias: str, topic: str, partition: int, position: int) -> None:
        super().__init__(
            alias,
            f"topic {topic} partition {partition} on cluster {alias} no longer holds offset {position}: "
            "it was re-created or truncated; reading it again from the beginning",
        )


class NotAppended(ClusterError):
    """A record was not acknowledged in time. It may or may not be in the log: append it again (facts are
    idempotent).
    """

    def __init__(self, alias: str, topic: str, why: str) -> None:
        super().__init__(alias, f"could not append to {topic} on cluster {alias}: {why}")
