"""A connection that does not answer when it is tried, and what that says of the others to its broker."""

from typing import Any

import pytest

from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection import Connection

ADDRESS = ("broker", 9092)


class Idle:
    """An open connection on which nothing is out."""

    host, port = ADDRESS
    unanswered = 0

    def __init__(self, *, is_doubtful: bool = False) -> None:
        self.is_doubtful, self.closed = is_doubtful, False

    async def is_answered(self, _: object) -> bool:
        self.close()
        return False

    def version(self, _: str) -> int:
        return 1

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(("trial_s", "are_closed"), [(60.0, True), (-1.0, False)], ids=["quick", "slow"])
async def test_idle_connections_are_closed_only_if_a_new_one_is_answered(
    monkeypatch: pytest.MonkeyPatch, trial_s: float, are_closed: bool
) -> None:
    """A slow broker is slow for a new connection too; what a firewall has forgotten is not."""
    cluster: Any = ClusterClient("a", [ADDRESS], {})
    tried, idle, fresh = Idle(is_doubtful=True), Idle(), Idle()

    async def open_connection(*_: object) -> Idle:
        return fresh

    monkeypatch.setattr(Connection, "open", open_connection)
    monkeypatch.setattr(Connection, "trial_s", trial_s)
    cluster._brokers = {1: ADDRESS}
    cluster._connections = {(1, "tail"): tried, (1, "produce"): idle}
    assert await cluster.connection(1, "tail") is fresh
    assert (tried.closed, idle.closed, fresh.closed) == (True, are_closed, False)
