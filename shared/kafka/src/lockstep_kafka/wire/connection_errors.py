"""Errors of connections to brokers, and their sentences (no I/O)."""

from lockstep_config.clients.sasl import SaslLogin, librdkafka_login
from lockstep_kafka.common.auth_errors import login_name, refused_login
from lockstep_state.errors import RetriableError
from lockstep_state.reasons.reason import Reason
from lockstep_state.reasons.reason_catalogue import format_sentence


class BrokerUnreachable(RetriableError, ConnectionError):
    """An error if a broker cannot be reached, refuses us, or went away while it owed an answer.

    `alias` names the cluster if it is known. `needs` is the missing permission that may be the cause (as in
    `KafkaProtocolError`).
    """

    def __init__(self, sentence: str, alias: str = "", needs: tuple[str, str, str] | None = None) -> None:
        super().__init__(sentence)
        self.alias = alias
        self.needs = needs


class ConnectionClosedError(BrokerUnreachable):
    """An error if the broker closed the connection while it owed an answer."""


class ProtocolUnfitError(BrokerUnreachable):
    """An error if the broker and Lockstep have no version of a request in common.

    The broker may not know the request at all.
    """

    def __init__(self, alias: str, reason: Reason) -> None:
        super().__init__(format_sentence(reason), alias)
        self.reason = reason


class TopicDeletedError(BrokerUnreachable):
    """An error if a partition has no leader because its topic was deleted."""

    def __init__(self, alias: str, topic: str) -> None:
        super().__init__(f"{topic} is not there", alias)
        self.topic = topic


def innermost_cause(exc: BaseException) -> str:
    """Return the innermost cause of an error, in one line, for people."""
    while exc.__cause__ is not None and not isinstance(exc, TimeoutError):
        exc = exc.__cause__
    return str(exc) or type(exc).__name__


def failure_sentence(host: str, port: int, exc: BaseException, login: SaslLogin | None) -> str:
    """Return why a connection ended or could not be opened, with its address and the user of its login."""
    who = {} if login is None else librdkafka_login(login)
    return f"{host}:{port}: {refused_login(innermost_cause(exc), login_name(who))}"
