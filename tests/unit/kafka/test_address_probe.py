"""What is said of an address at which something else than a broker of these settings answers."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any

import pytest

from lockstep_kafka.admin.address_probe import (
    QUESTION,
    AddressProbe,
    ClientSecurity,
    ServerKind,
    identify_server,
    probe_address,
)
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterUnreachable
from tests.support.certificates import Authority
from tests.support.ports import free_port

WITHIN = timedelta(seconds=5)
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def speak(answer: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(len(QUESTION))
    writer.write(answer)
    await writer.drain()
    writer.close()


def as_broker() -> bytes:
    body = QUESTION[8:12] + struct.pack(">hi", 0, 0)
    return struct.pack(">i", len(body)) + body


@asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    server = await asyncio.start_server(handler, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


class Echo(StreamRequestHandler):
    """Sends back what it gets, line by line."""

    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(line)


class TlsServer(ThreadingTCPServer):
    """Makes each handshake in the thread of its connection."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), Echo)
        self._context = context

    def finish_request(self, request: Any, client_address: Any) -> None:
        with suppress(OSError), self._context.wrap_socket(request, server_side=True) as connection:
            super().finish_request(connection, client_address)


@contextmanager
def in_threads(*contexts: ssl.SSLContext) -> Iterator[list[int]]:
    """The ports of TLS servers that are not of the event loop's thread."""
    with ExitStack() as stack:
        servers = [stack.enter_context(TlsServer(context)) for context in contexts]
        for server in servers:
            Thread(target=server.serve_forever, daemon=True).start()
            stack.callback(server.shutdown)
        yield [server.server_address[1] for server in servers]


def frame(body: bytes, length: int | None = None) -> bytes:
    """An answer to our question with this body, and the length that it has, or that it is to claim."""
    return struct.pack(">i", 4 + len(body) if length is None else length) + QUESTION[8:12] + body


@pytest.mark.parametrize(
    ("answer", "server"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", ServerKind.HTTP),
        (b"<!DOCTYPE HTML>\n<html>", ServerKind.HTTP),
        (b"\x15\x03\x03\x00\x02\x02\x50", ServerKind.TLS),
        (b"SSH-2.0-OpenSSH_9.2", ServerKind.OTHER),
        (b"-ERR unknown command", ServerKind.OTHER),
        (b"\x00\x00\x00\x06\x00\x00\x00\x01\x00\x00", ServerKind.OTHER),
        (as_broker(), ServerKind.BROKER),
        (frame(struct.pack(">hihhh", 0, 1, 18, 0, 4)), ServerKind.BROKER),
        (frame(struct.pack(">h", 35)), ServerKind.BROKER),
        (frame(struct.pack(">hi", 35, 0) + b"more of a later version"), ServerKind.BROKER),
        (frame(struct.pack(">hihhh", 0, 7, 18, 0, 4)), ServerKind.OTHER),
        (frame(b"\x47\x11" + bytes(14)), ServerKind.OTHER),
        (frame(b"\0\0" + b"not six a request"), ServerKind.OTHER),
    ],
)
def test_first_bytes_show_the_server(answer: bytes, server: ServerKind) -> None:
    assert identify_server(answer, closed=False) is server


@pytest.mark.parametrize(("closed", "server"), [(True, ServerKind.CLOSED), (False, ServerKind.SILENT)])
def test_no_bytes_are_a_closed_or_a_silent_server(server: ServerKind, *, closed: bool) -> None:
    assert identify_server(b"", closed=closed) is server


@pytest.mark.parametrize(("closed", "server"), [(True, ServerKind.CUT), (False, ServerKind.BROKER)])
def test_part_of_an_answer_is_cut_only_if_the_connection_is(server: ServerKind, *, closed: bool) -> None:
    assert identify_server(frame(b"\0\0", length=400), closed=closed) is server


@pytest.mark.parametrize(
    ("answer", "uses_tls", "words"),
    [
        (as_broker(), False, ""),
        (as_broker(), True, "speaks no TLS on this port"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", False, "speaks no Kafka ('SSH-2.0-OpenSSH_9.2')"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", True, "an HTTP server answers"),
        (frame(b"\0\0", length=400), False, "closes the connection in the middle of an answer"),
        (b"", False, "closes it without an answer"),
        (b"", True, "closes it during the TLS handshake"),
    ],
)
async def test_server_that_is_no_such_broker_has_a_sentence(answer: bytes, words: str, *, uses_tls: bool) -> None:
    async with serving(partial(speak, answer)) as port:
        first = await probe_address("127.0.0.1", port, WITHIN, ClientSecurity(uses_tls))
    assert (words in first.fault) if words else first == AddressProbe(ServerKind.BROKER)


def tls_server(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Authority().server("127.0.0.1").pem(folder / "server.pem"))
    return context


@pytest.mark.parametrize(("uses_tls", "words"), [(True, ""), (False, "speaks TLS, and security.protocol has none")])
async def test_port_with_tls_is_no_fault_of_a_tls_client(tmp_path: Path, words: str, *, uses_tls: bool) -> None:
    async with serving(partial(speak, as_broker()), tls_server(tmp_path)) as port:
        first = await probe_address("127.0.0.1", port, WITHIN, ClientSecurity(uses_tls))
    assert (words in first.fault) if words else first.fault == ""


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server answers"),
        (b"220 mail.example.org ESMTP\r\n", "speaks no Kafka ('220 mail.example.org ESMTP')"),
        (frame(b"\0\0", length=400), "in the middle of an answer"),
        (b"", ""),
    ],
)
async def test_server_behind_tls_has_the_same_sentence(tmp_path: Path, answer: bytes, words: str) -> None:
    """One that closes the connection may be a broker that wants a certificate of the client."""
    async with serving(partial(speak, answer), tls_server(tmp_path)) as port:
        first = await probe_address("127.0.0.1", port, WITHIN, ClientSecurity(uses_tls=True))
    assert (words in first.fault) if words else first.fault == ""


async def test_broker_that_wants_a_certificate_ends_no_other_connection(tmp_path: Path) -> None:
    authority, echoes = Authority(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pem = authority.server("127.0.0.1").pem(tmp_path / "server.pem")
    wants = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    wants.verify_mode = ssl.CERT_REQUIRED
    wants.load_verify_locations(cadata=authority.pem)
    for context in (echoes, wants):
        context.load_cert_chain(pem)
    client = ssl.create_default_context(cadata=authority.pem)
    with in_threads(echoes, wants) as (echoing, wanting):
        reader, writer = await asyncio.open_connection("127.0.0.1", echoing, ssl=client)
        for turn in range(20):  # the probe never gives a certificate, so only a client without one is at fault
            client_security = ClientSecurity(uses_tls=True, has_certificate=turn % 2 == 0)
            first = await probe_address("127.0.0.1", wanting, WITHIN, client_security)
            assert ("wants a client certificate" in first.fault) is (turn % 2 == 1)
            await asyncio.sleep(0.01)  # the alert comes behind the handshake
            writer.write(b"%09d\n" % turn)
            assert await reader.readexactly(10) == b"%09d\n" % turn
        writer.close()
        await writer.wait_closed()


async def test_http_server_of_python_is_known_as_one() -> None:
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        first = await probe_address("127.0.0.1", server.server_port, WITHIN, ClientSecurity())
    finally:
        await asyncio.to_thread(server.shutdown)
        thread.join()
        server.server_close()
    assert "an HTTP server answers" in first.fault


@asynccontextmanager
async def silence() -> AsyncIterator[int]:
    """A server that accepts connections and reads, until the clients leave."""
    handlers = list[asyncio.Event]()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.append(asyncio.Event())
        has_left = handlers[-1]
        await reader.read()
        writer.close()
        has_left.set()

    async with serving(wait) as port:
        yield port
        await asyncio.gather(*(handler.wait() for handler in handlers))


@pytest.mark.parametrize("uses_tls", [False, True])
async def test_silent_server_may_be_a_broker_that_is_busy(*, uses_tls: bool) -> None:
    async with silence() as port:
        first = await probe_address("127.0.0.1", port, timedelta(seconds=0.2), ClientSecurity(uses_tls))
    assert first == AddressProbe(ServerKind.SILENT)


async def test_address_without_a_listener_has_no_fault_of_this_kind() -> None:
    for uses_tls in (False, True):
        assert await probe_address("127.0.0.1", free_port(), WITHIN, ClientSecurity(uses_tls)) == AddressProbe(None)
    assert await probe_address("name.invalid", 9092, WITHIN, ClientSecurity()) == AddressProbe(None)


async def test_probe_of_another_server_raises_at_once() -> None:
    async with serving(partial(speak, b"HTTP/1.1 400 Bad Request\r\n\r\n")) as port:
        admin = Admin("A", {"bootstrap.servers": f"127.0.0.1:{port}"})
        with pytest.raises(ClusterUnreachable, match=r"cluster A at .* an HTTP server answers"):
            await asyncio.wait_for(admin.probe(timedelta(minutes=10)), 30.0)


async def test_silent_cluster_is_named_as_silent() -> None:
    async with silence() as port:
        admin = Admin("A", {"bootstrap.servers": f"127.0.0.1:{port}"})
        with pytest.raises(ClusterUnreachable, match=rf"127.0.0.1:{port} accepts the connection and says nothing"):
            await admin.probe(timedelta(seconds=0.5))
        await admin.close()


VERSIONS = struct.pack(">hi", 0, 2) + struct.pack(">hhh", 3, 0, 13) + struct.pack(">hhh", 17, 0, 1)
"""Metadata and SaslHandshake as an answer to ApiVersions."""


@asynccontextmanager
async def port_of_a_broker(
    handshake_code: int | None, *, gives_metadata: bool, versions: bytes = VERSIONS
) -> AsyncIterator[int]:
    """A port that answers ApiVersions, SaslHandshake by this code, and Metadata or the end of the connection."""
    bodies = {18: versions}
    if handshake_code is not None:
        bodies[17] = struct.pack(">hi", handshake_code, 0)
    if gives_metadata:
        bodies[3] = struct.pack(">iii", 0, 0, 0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                request = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
                body = bodies.get(int.from_bytes(request[:2]))
                if body is None:
                    break
                writer.write(struct.pack(">i", 4 + len(body)) + request[4:8] + body)
        writer.close()

    async with serving(serve) as port:
        yield port


NONE, NOT_OFFERED, NO_SASL, WRONG_VERSION = 0, 33, 34, 35


@pytest.mark.parametrize(
    ("handshake_code", "gives_metadata", "mechanism", "words"),
    [
        (NOT_OFFERED, False, "", "wants a SASL login, and security.protocol has none: write SASL_PLAINTEXT"),
        (NONE, False, "", "wants a SASL login, and security.protocol has none: write SASL_PLAINTEXT"),
        (NONE, True, "", ""),
        (NO_SASL, True, "", ""),
        (NO_SASL, False, "", ""),
        (WRONG_VERSION, False, "", ""),
        (None, False, "", ""),
        (NO_SASL, True, "SCRAM-SHA-256", "takes no login on this port: check security.protocol and the port"),
        (NONE, False, "SCRAM-SHA-256", ""),
        (NOT_OFFERED, False, "SCRAM-SHA-256", ""),
        (None, False, "SCRAM-SHA-256", ""),
    ],
)
async def test_port_shows_whether_it_takes_a_login(
    handshake_code: int | None, mechanism: str, words: str, *, gives_metadata: bool
) -> None:
    """A broker that lets us in is never at fault, nor is one whose answers do not tell."""
    async with port_of_a_broker(handshake_code, gives_metadata=gives_metadata) as port:
        probe = await probe_address("127.0.0.1", port, WITHIN, ClientSecurity(mechanism=mechanism))
    assert probe.server is ServerKind.BROKER
    if words:
        assert probe.fault.startswith(f"the broker at 127.0.0.1:{port} ")
        assert words in probe.fault
    else:
        assert probe.fault == ""


@pytest.mark.parametrize(
    ("conf", "security"),
    [
        ({}, ClientSecurity()),
        ({"security.protocol": "PLAINTEXT", "sasl.mechanism": "PLAIN"}, ClientSecurity()),
        ({"security.protocol": "ssl"}, ClientSecurity(uses_tls=True)),
        ({"security.protocol": "SSL", "ssl.certificate.pem": "-"}, ClientSecurity(uses_tls=True, has_certificate=True)),
        ({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}, ClientSecurity(mechanism="PLAIN")),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, ClientSecurity(True, "PLAIN")),
    ],
)
def test_settings_of_librdkafka_say_how_a_client_connects(conf: dict[str, str], security: ClientSecurity) -> None:
    assert ClientSecurity.of_librdkafka(conf) == security


@pytest.mark.parametrize(
    "versions",
    [
        struct.pack(">hi", 35, 1) + struct.pack(">hhh", 3, 0, 13) + b"more",
        struct.pack(">hi", 0, 1) + struct.pack(">hhh", 3, 4, 13),
        struct.pack(">hi", 0, 1) + struct.pack(">hhh", 17, 0, 1),
    ],
)
async def test_broker_that_does_not_announce_the_request_is_not_judged_by_it(versions: bytes) -> None:
    async with port_of_a_broker(NOT_OFFERED, gives_metadata=False, versions=versions) as port:
        probe = await probe_address("127.0.0.1", port, WITHIN, ClientSecurity())
    assert probe == AddressProbe(ServerKind.BROKER)
