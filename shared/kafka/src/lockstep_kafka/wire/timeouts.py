"""How long the brokers of a cluster may be silent before a connection is given up (no I/O, no clock)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from lockstep_config.clients.librdkafka import clamped
from lockstep_config.keys.client_keys import CLIENT


@dataclass(frozen=True, slots=True)
class Timeouts:
    """With the brokers of one cluster, in seconds."""

    opening_s: float = 10.0
    """For a connection to open, and for each answer of a login."""

    question_s: float = 30.0
    """For the answer to what is neither a fetch nor an append."""

    request_s: float = 40.0
    """For the answer to an append, and to a fetch beyond what that asked the broker to wait."""

    trusted_s: float = 30.0
    """A connection on which nothing was asked for so long is tried before it is used again."""

    @property
    def replicas(self) -> timedelta:
        """How long a broker may wait for its replicas: it has time left to say that they did not answer, which spares
        the connection.
        """
        return timedelta(seconds=self.request_s * 3 / 4)

    def ends_fetch(self, asked_at: float, now: float, kept_s: float) -> bool:
        """Whether the fetch that was sent at `asked_at` is given up, which the broker may keep for `kept_s` where it
        has nothing to bring. Never where none is out (`asked_at` 0).
        """
        return asked_at > 0 and now - asked_at > self.request_s + kept_s


USUAL = Timeouts()
"""Where the file does not say."""


def timeouts_from(properties: Mapping[str, str]) -> Timeouts:
    """What a client's Java properties say of it. Values must have been checked before
    (`lockstep_config.resolve.validate`).
    """
    return Timeouts(
        opening_s=_seconds(properties, "socket.connection.setup.timeout.ms", USUAL.opening_s),
        question_s=_seconds(properties, "request.timeout.ms", USUAL.question_s),
        request_s=_seconds(properties, "request.timeout.ms", USUAL.request_s),
    )


def _seconds(properties: Mapping[str, str], name: str, usual_s: float) -> float:
    text = properties.get(name)
    return usual_s if text is None else int(clamped(CLIENT["consumer"][name], text)) / 1e3
