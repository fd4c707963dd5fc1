"""Limits for the silence of a cluster's brokers before a connection is given up (no I/O, no clock)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from lockstep_config.clients.librdkafka import clamp
from lockstep_config.keys.client_keys import CLIENT


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The limits for the brokers of one cluster, in seconds."""

    opening_s: float = 10.0
    """The limit for opening a connection, and for each answer of a login."""

    short_request_s: float = 30.0
    """The limit for the answer to a request that is neither a fetch nor an append."""

    data_request_s: float = 40.0
    """The limit for the answer to an append, and to a fetch beyond its own wait at the broker."""

    trusted_s: float = 30.0
    """A connection without a request for so long is tried before it is used again."""

    @property
    def replicas(self) -> timedelta:
        """The limit for a broker that waits for its replicas.

        It leaves the broker time to answer that they did not acknowledge, which saves the connection.
        """
        return timedelta(seconds=self.data_request_s * 3 / 4)

    def ends_fetch(self, asked_at: float, now: float, kept_s: float) -> bool:
        """Return whether a fetch without an answer is to be given up.

        Args:
            asked_at: When the fetch was sent; 0 if none is in flight, which is never given up.
            now: The present time.
            kept_s: Seconds that the broker may keep the fetch if it has no records.
        """
        return asked_at > 0 and now - asked_at > self.data_request_s + kept_s


USUAL = Timeouts()
"""The limits for a configuration without such properties."""


def timeouts_from(properties: Mapping[str, str]) -> Timeouts:
    """Return the limits in a client's Java properties.

    The values must have been checked before (`lockstep_config.resolve.validate`).
    """
    return Timeouts(
        opening_s=_seconds(properties, "socket.connection.setup.timeout.ms", USUAL.opening_s),
        short_request_s=_seconds(properties, "request.timeout.ms", USUAL.short_request_s),
        data_request_s=_seconds(properties, "request.timeout.ms", USUAL.data_request_s),
    )


def _seconds(properties: Mapping[str, str], name: str, usual_s: float) -> float:
    text = properties.get(name)
    return usual_s if text is None else int(clamp(CLIENT["consumer"][name], text)) / 1e3
