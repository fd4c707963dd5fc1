"""A probe of a bootstrap address: the kind of server that answers there, and what is wrong with the address.

A client library only says that there is no answer. The probe sends ApiVersions, which a broker answers before any
login. If the client uses TLS, it goes behind a TLS handshake. The first bytes of the answer show an HTTP server, a
port with or without TLS, and servers that do not speak Kafka.
"""

import asyncio
import ssl
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

_NUMBER = 0x10C57E9
_CLIENT_ID = b"lockstep\r\n\r\n"
"""A client id that ends a line. Servers that read lines wait for the end of a line before they answer."""

_QUESTION = struct.pack(">hhih", 18, 0, _NUMBER, len(_CLIENT_ID)) + _CLIENT_ID
QUESTION = struct.pack(">i", len(_QUESTION)) + _QUESTION
"""A request ApiVersions 0, which every broker knows."""

LARGEST_ANSWER = 64 << 10
"""Largest size of an answer in bytes. A broker announces some hundred requests, of six bytes each."""
LARGEST_CODE = 999
"""Largest error code of an answer. Kafka has some 130 errors."""
_HEAD, _CODE_AND_COUNT = struct.Struct(">ii"), struct.Struct(">hi")
_VERSIONS = 6
"""Bytes of one request with its versions in the answer."""
AGAIN_AFTER_S = 0.3
SHOWN = 40
"""Bytes of a foreign answer that the error shows."""

_TLS_RECORDS = (0x15, 0x16)
"""TLS record types alert and handshake. Both are followed by the version, which begins with 3."""


NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "UNEXPECTED_MESSAGE", "RECORD_LAYER_FAILURE"})
"""OpenSSL's reasons for bytes that are no part of TLS, or that send ours back."""


class ServerKind(Enum):
    """The kind of server that answered."""

    BROKER = "broker"
    TLS = "TLS"
    HTTP = "HTTP"
    OTHER = "other"
    CUT = "cut"
    CLOSED = "closed"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class AddressProbe:
    """The result of the probe of one address.

    `fault` is a sentence that says what is wrong with the address, or "" if nothing shows.
    """

    server: ServerKind | None
    """The kind of server; None if no connection is accepted."""
    fault: str = ""


def identify_server(answer: bytes, *, closed: bool) -> ServerKind:
    """Return the kind of server that sent these bytes first.

    Args:
        answer: The first bytes that came.
        closed: True if the server closed the connection behind the bytes, or without any.
    """
    if not answer:
        return ServerKind.CLOSED if closed else ServerKind.SILENT
    if answer[0] in _TLS_RECORDS and answer[1:2] in (b"\x03", b""):
        return ServerKind.TLS
    if answer.startswith(b"HTTP/") or b"<html" in answer.lower() or b"<!doctype html" in answer.lower():
        return ServerKind.HTTP
    length = _frame_length(answer)
    if not length:
        return ServerKind.OTHER
    if closed and len(answer) < length:
        return ServerKind.CUT
    if len(answer) >= _HEAD.size + _CODE_AND_COUNT.size:
        code, count = _CODE_AND_COUNT.unpack_from(answer, _HEAD.size)
        is_whole = code or length == _HEAD.size + _CODE_AND_COUNT.size + _VERSIONS * count
        if not (is_whole and 0 <= code <= LARGEST_CODE):
            return ServerKind.OTHER
    return ServerKind.BROKER


def _frame_length(answer: bytes) -> int:
    """Return the length of the answer to our request in bytes, or 0 if these bytes do not begin such an answer."""
    if len(answer) < _HEAD.size:
        return 0
    length, number = _HEAD.unpack_from(answer)
    return 4 + int(length) if number == _NUMBER and 4 < length < LARGEST_ANSWER else 0


def _fault_sentence(server: ServerKind, address: str, answer: bytes, *, uses_tls: bool) -> str:
    """Return what is wrong with an address and how to repair it, or "" if a broker may answer there."""
    match server:
        case ServerKind.HTTP:
            return f"an HTTP server answers at {address}, and no Kafka broker: check host and port in bootstrap.servers"
        case ServerKind.OTHER:
            text = answer[:SHOWN].decode("ascii", "replace").strip()
            return f"what answers at {address} speaks no Kafka ({text!r}): check host and port in bootstrap.servers"
        case ServerKind.BROKER if uses_tls:
            return f"the broker at {address} speaks no TLS on this port: check security.protocol and the port"
        case ServerKind.TLS if not uses_tls:
            return f"{address} speaks TLS, and security.protocol has none: write SSL or SASL_SSL, or another port"
        case ServerKind.CUT:
            return f"{address} closes the connection in the middle of an answer: check the proxy in front of the broker"
        case ServerKind.CLOSED if uses_tls:
            return (
                f"{address} accepts the connection and closes it during the TLS handshake. It may be a proxy that "
                "reaches no broker: check bootstrap.servers"
            )
        case ServerKind.CLOSED:
            return (
                f"{address} accepts the connection and closes it without an answer. It may be a port with TLS, or a "
                "proxy that reaches no broker: check security.protocol and bootstrap.servers"
            )
    return ""  # a silent server may be a broker that is far, or busy


def silence_sentence(address: str, within_s: float) -> str:
    """Return the sentence for an address that was silent for so many seconds."""
    return (
        f"{address} accepts the connection and says nothing within {within_s:.2g} s. It may be no broker, or one "
        "behind a proxy that reaches it no more: check host, port and security.protocol"
    )


async def probe_address(host: str, port: int, within: timedelta, *, uses_tls: bool) -> AddressProbe:
    """Return what answers at an address, and what is wrong with it.

    A server that closes the connection gets a second attempt: brokers close connections at a connection limit.

    The probe runs in a thread of its own, because OpenSSL keeps the errors of a thread in one queue. Otherwise the
    alert of a broker that wants a certificate would end another connection of the event loop.

    Args:
        host: The host of the address.
        port: The port of the address.
        within: The limit of each attempt.
        uses_tls: True if the client's security protocol has TLS.
    """
    thread = ThreadPoolExecutor(1, "address-probe")
    try:
        return await asyncio.get_running_loop().run_in_executor(
            thread, lambda: asyncio.run(_probe_address(host, port, within.total_seconds(), uses_tls=uses_tls))
        )
    finally:
        thread.shutdown(wait=False)


async def _probe_address(host: str, port: int, within_s: float, *, uses_tls: bool) -> AddressProbe:
    try:
        server, answer = await _answer_behind_tls(host, port, within_s) if uses_tls else (None, b"")
        if server is None:
            server, answer = await _answer_without_tls(host, port, within_s, uses_tls=uses_tls)
    except (OSError, UnicodeError):
        return AddressProbe(None)
    return AddressProbe(server, _fault_sentence(server, f"{host}:{port}", answer, uses_tls=uses_tls))


async def _answer_behind_tls(host: str, port: int, within_s: float) -> tuple[ServerKind | None, bytes]:
    """Return what answers behind a TLS handshake, or None if there was no handshake."""
    if await _handshake(host, port, within_s) is not Handshake.DONE:
        return None, b""
    answer, closed = await _ask(host, port, within_s, _UNVERIFIED)
    server = identify_server(answer, closed=closed)
    # A broker that requires a client certificate says so behind the handshake, and closes the connection.
    shows = server in (ServerKind.HTTP, ServerKind.OTHER, ServerKind.CUT, ServerKind.SILENT)
    return (server if shows else ServerKind.TLS), answer


async def _answer_without_tls(host: str, port: int, within_s: float, *, uses_tls: bool) -> tuple[ServerKind, bytes]:
    answer, closed = await _ask(host, port, within_s)
    if not answer and closed:
        await asyncio.sleep(AGAIN_AFTER_S)
        answer, closed = await _ask(host, port, within_s)
    server = identify_server(answer, closed=closed)
    if server is ServerKind.CLOSED:
        match await _handshake(host, port, within_s):
            case Handshake.DONE:
                return ServerKind.TLS, answer
            case Handshake.SILENT if uses_tls:
                return ServerKind.SILENT, answer
    return server, answer


class Handshake(Enum):
    """The result of a TLS handshake."""

    DONE = "done"
    """A TLS server answered, with any certificate."""
    REFUSED = "refused"
    SILENT = "silent"


def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing secret is sent behind the handshake
    return context


_UNVERIFIED = _unverified()


async def _handshake(host: str, port: int, within_s: float) -> Handshake:
    """Try a TLS handshake with an address, and close the connection.

    Raises:
        OSError: No connection is accepted.
    """
    try:
        async with asyncio.timeout(within_s):
            _, writer = await asyncio.open_connection(host, port, ssl=_UNVERIFIED)
    except TimeoutError:
        return Handshake.SILENT
    except ssl.SSLEOFError:
        return Handshake.REFUSED
    except ssl.SSLError as exc:
        is_other = exc.reason in NO_TLS  # other errors come from a TLS server
        return Handshake.REFUSED if is_other else Handshake.DONE
    except (ConnectionResetError, asyncio.IncompleteReadError):
        return Handshake.REFUSED
    await _abort(writer)
    return Handshake.DONE


async def _ask(host: str, port: int, within_s: float, context: ssl.SSLContext | None = None) -> tuple[bytes, bool]:
    """Return the bytes that came as an answer, and whether the server closed the connection.

    Raises:
        OSError: No connection is accepted.
    """
    async with asyncio.timeout(within_s):
        reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        writer.write(QUESTION)
        answer = await _read(reader, within_s)
        return answer, reader.at_eof()
    except (ConnectionError, ssl.SSLError):
        return b"", True
    finally:
        await _abort(writer)


async def _read(reader: asyncio.StreamReader, within_s: float) -> bytes:
    answer = b""
    try:
        async with asyncio.timeout(within_s):
            while len(answer) < max(_HEAD.size, _frame_length(answer)) and (more := await reader.read(4096)):
                answer += more
    except TimeoutError:
        pass  # what has come by then is judged
    return answer


async def _abort(writer: asyncio.StreamWriter) -> None:
    """Close a connection at once.

    A server may take long to end TLS.
    """
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()
