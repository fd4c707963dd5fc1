"""A broker and the slots that know no version of a request in common."""

from typing import Any

import pytest

from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable, ProtocolUnfitError
from lockstep_state.kafka.kafka_apis import APIS, OF_BOTH
from lockstep_state.reasons.reason_catalogue import format_sentence

OLD, NEW = ("old", 9092), ("new", 9092)
FETCH = APIS["fetch"]


def connection(low: int, high: int, address: tuple[str, int] = OLD) -> Connection:
    """Return a connection to a broker that knows all requests, and Fetch from `low` to `high`."""
    made: Any = object.__new__(Connection)
    made.host, made.port, made.alias, made._writer = *address, "A", None
    made._versions = {api.key: (api.oldest, api.newest) for api in APIS.values()} | {FETCH.key: (low, high)}
    connection: Connection = made
    return connection


@pytest.mark.parametrize(
    ("low", "high", "theirs"),
    [(0, FETCH.oldest - 1, "versions 0 to 3"), (FETCH.newest + 1, FETCH.newest + 3, "versions 18 to 20")],
)
def test_unfit_protocol_is_a_reason_with_both_ranges(low: int, high: int, theirs: str) -> None:
    with pytest.raises(ProtocolUnfitError) as failed:
        connection(low, high).version("fetch")
    reason = failed.value.reason
    assert reason.code == "request-unfit"
    assert (reason.detail("cluster"), reason.detail("broker"), reason.detail("request")) == ("A", "old:9092", "Fetch")
    assert (reason.detail("theirs"), reason.detail("ours")) == (theirs, "versions 4 to 17")
    assert str(failed.value) == format_sentence(reason)
    assert "reached" not in str(failed.value)


@pytest.mark.parametrize("newest", [FETCH.oldest, FETCH.newest, FETCH.newest + 5])
def test_protocol_version_is_the_newest_that_both_know(newest: int) -> None:
    assert connection(0, newest).version("fetch") == min(newest, FETCH.newest)


@pytest.mark.parametrize("api", OF_BOTH)
async def test_cluster_without_a_common_version_is_not_unreachable(monkeypatch: pytest.MonkeyPatch, api: str) -> None:
    """One of its addresses leads nowhere: what answered counts."""

    async def open_connection(host: str, port: int, *_: object) -> Connection:
        if host == "new":
            raise BrokerUnreachable("new:9092: refused")
        made: Any = connection(FETCH.oldest, FETCH.newest)
        made._versions[APIS[api].key] = (0, APIS[api].oldest - 1)
        made_connection: Connection = made
        return made_connection

    monkeypatch.setattr(Connection, "open", open_connection)
    monkeypatch.setattr(Connection, "close", lambda self, *_: None)
    for addresses in ([OLD, NEW], [NEW, OLD]):
        cluster = ClusterClient("A", addresses, {})
        with pytest.raises(ProtocolUnfitError, match=f"request {APIS[api].name} in common: broker old:9092"):
            await cluster.refresh(["t"])
        assert cluster._connections == {}
