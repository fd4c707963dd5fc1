"""A connection logs in again before its session ends: nothing is asked meanwhile, and nothing is lost or overtaken."""

import asyncio
import struct
import time

import pytest

from lockstep_config.clients.sasl import Credentials
from lockstep_kafka.wire.connection import Connection
from lockstep_kafka.wire.connection_errors import BrokerUnreachable, ConnectionClosedError
from lockstep_kafka.wire.sasl import SaslRefused
from lockstep_kafka.wire.sasl_session import EARLIEST, LATEST, SHORTEST_S, SaslSession, login_after
from tests.support.eventually import eventually
from tests.support.written_frames import describe_producers

DESCRIBE_PRODUCERS, HANDSHAKE, AUTHENTICATE = 61, 17, 36
WAITS_S = 3.0
REFUSED = 58


class Peer:
    """The other end of a connection whose stream only keeps; it answers when it is told to."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        login = Credentials("PLAIN", "mirror", "hush")
        self.connection = Connection("broker", 9092, client_id="c", login=login)
        self.connection._writer = self
        self.connection._versions = {HANDSHAKE: (0, 1), AUTHENTICATE: (0, 1)}

    def write(self, frame: bytes) -> None:
        self.frames.append(bytes(frame))

    def close(self) -> None:
        """As a stream's."""

    @property
    def session(self) -> SaslSession:
        assert self.connection._session is not None
        return self.connection._session

    @property
    def asked(self) -> list[int]:
        return [struct.unpack_from(">h", frame, 4)[0] for frame in self.frames]

    def answer(self, body: bytes) -> None:
        self.connection._answered(memoryview(struct.pack(">i", self.connection._requests[0][0]) + body))

    def described(self) -> None:
        self.answer(b"\0" + struct.pack(">i", 0) + b"\x01\0")

    async def log_in(self, error: int = 0, session_ms: int = 5000) -> None:
        await self.asks(HANDSHAKE)
        self.answer(struct.pack(">hih5s", 0, 1, 5, b"PLAIN"))
        await self.asks(AUTHENTICATE)
        self.answer(struct.pack(">hhiq", error, -1, 0, session_ms))

    async def asks(self, api: int) -> None:
        await eventually(lambda: self.asked[-1:] == [api])


async def test_requests_during_a_login_are_sent_after_it_in_order() -> None:
    peer = Peer()
    first = peer.connection.send(describe_producers("a"))
    peer.session.begin_login()
    held = [peer.connection.send(describe_producers(topic)) for topic in "bc"]
    await asyncio.sleep(0.01)
    assert peer.asked == [DESCRIBE_PRODUCERS]  # the answer is out: no login yet
    assert peer.connection.unanswered == 3
    peer.described()
    await first
    await peer.log_in()
    await eventually(lambda: len(peer.frames) == 5)
    assert peer.asked == [DESCRIBE_PRODUCERS, HANDSHAKE, AUTHENTICATE, DESCRIBE_PRODUCERS, DESCRIBE_PRODUCERS]
    assert [b"\x02b" in frame for frame in peer.frames[3:]] == [True, False]
    peer.described()
    peer.described()
    await asyncio.gather(*held)
    assert not peer.session.is_holding
    assert peer.session.logins == 1
    peer.connection.close()


async def test_the_next_login_comes_before_the_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds: list[tuple[float, float]] = []

    def least(low: float, high: float) -> float:
        bounds.append((low, high))
        return low

    monkeypatch.setattr("lockstep_kafka.wire.sasl_session.random.uniform", least)
    peer = Peer()
    peer.session.begin_login()
    await peer.log_in(session_ms=1700)
    await peer.log_in(session_ms=0)
    await eventually(lambda: peer.session.logins == 2)
    assert bounds == [(EARLIEST, LATEST)]  # a session of 0 has no end
    peer.connection.close()


async def test_login_is_first_after_a_loop_that_stood_still_beyond_the_session() -> None:
    peer = Peer()
    peer.session.begin_login()
    await peer.log_in(session_ms=1700)
    await eventually(lambda: not peer.session.is_holding)
    time.sleep(2.0)  # the loop gets no processor
    asked = peer.connection.send(describe_producers("a"))
    await peer.log_in()
    await eventually(lambda: peer.asked[-1] == DESCRIBE_PRODUCERS)
    assert peer.asked == [HANDSHAKE, AUTHENTICATE, HANDSHAKE, AUTHENTICATE, DESCRIBE_PRODUCERS]
    peer.described()
    await asked
    peer.connection.close()


@pytest.mark.parametrize(
    ("session_s", "waits_s", "after_s"),
    [
        (3600.0, 0.0, 2880.0),
        (3600.0, WAITS_S, 2880.0),  # long sessions have room for what a broker keeps
        (5.0, 0.0, 4.0),
        (5.0, WAITS_S, 1.5),
        (2.0, WAITS_S, 1.1),  # a broker ends who logs in twice within a second
        (SHORTEST_S, 0.0, 1.1),
    ],
)
def test_a_login_is_early_enough_for_what_a_broker_keeps(session_s: float, waits_s: float, after_s: float) -> None:
    assert login_after(session_s, 0.8, waits_s) == pytest.approx(after_s)


async def test_requests_in_a_session_too_short_to_renew_wait_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker would end the connection for a second login within a second: `KafkaChannel` takes one."""
    assert SHORTEST_S > 1.0
    monkeypatch.setattr("lockstep_kafka.wire.sasl_session.SHORTEST_S", 0.3)
    peer = Peer()
    peer.session.begin_login()
    held = peer.connection.send(describe_producers("a"))
    await peer.log_in(session_ms=100)
    began = asyncio.get_running_loop().time()
    await peer.log_in(session_ms=0)
    assert asyncio.get_running_loop().time() - began > 0.25
    await eventually(lambda: peer.asked[-1] == DESCRIBE_PRODUCERS)
    assert peer.asked[:-1] == [HANDSHAKE, AUTHENTICATE] * 2
    peer.described()
    await held
    peer.connection.close()


async def test_sessions_that_are_always_too_short_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstep_kafka.wire.sasl_session.TRIES", 1)
    monkeypatch.setattr("lockstep_kafka.wire.sasl_session.SHORTEST_S", 0.2)
    peer = Peer()
    peer.session.begin_login()
    held = peer.connection.send(describe_producers("a"))
    await peer.log_in(session_ms=100)
    with pytest.raises(ConnectionClosedError) as raised:
        await held
    assert "let access tokens live longer" in str(raised.value.__cause__)


async def test_refused_login_closes_the_connection_and_fails_waiting_requests() -> None:
    peer = Peer()
    peer.session.begin_login()
    held = peer.connection.send(describe_producers("a"))
    await peer.log_in(error=REFUSED)
    with pytest.raises(ConnectionClosedError) as raised:
        await held
    assert isinstance(raised.value.__cause__, SaslRefused)
    assert peer.connection.closed
    with pytest.raises(BrokerUnreachable, match="the connection is closed"):
        peer.connection.send(describe_producers("b"))


async def test_a_connection_that_ends_while_a_login_is_due_fails_what_was_held() -> None:
    peer = Peer()
    under_way = peer.connection.send(describe_producers("a"))
    peer.session.begin_login()
    held = peer.connection.send(describe_producers("b"))
    peer.connection.close()
    for waiting in (under_way, held):
        with pytest.raises(ConnectionClosedError):
            await waiting
    await asyncio.sleep(0.01)
    assert peer.asked == [DESCRIBE_PRODUCERS]
