"""What answers at an address that is to be a broker's: a client library only says that there is no answer.

A question for the versions of its requests is sent without TLS, as a broker without TLS answers before any login. The
first bytes that come back show an HTTP server, a port with TLS, and others that speak no Kafka.
"""

import asyncio
import socket
import ssl
import struct
from datetime import timedelta
from enum import Enum

_NUMBER = 0x10C57E9
_CLIENT_ID = b"lockstep\r\n\r\n"
"""It ends a line: servers that read lines wait for that before they answer."""

_QUESTION = struct.pack(">hhih", 18, 0, _NUMBER, len(_CLIENT_ID)) + _CLIENT_ID
QUESTION = struct.pack(">i", len(_QUESTION)) + _QUESTION
"""ApiVersions 0, which every broker knows."""

LARGEST_ANSWER = 100 << 20
ENOUGH = 8
"""Bytes by which an answer is known."""
AGAIN_AFTER_S = 0.3
SHOWN = 40
"""Bytes of a foreign answer that are shown."""

_TLS_RECORDS = (0x15, 0x16)
"""Alert and handshake, both followed by the version, which begins with 3."""


class Answerer(Enum):
    """What answered."""

    BROKER = "broker"
    TLS = "TLS"
    HTTP = "HTTP"
    OTHER = "other"
    CLOSED = "closed"
    SILENT = "silent"


def judge_answer(answer: bytes, *, closed: bool) -> Answerer:
    """Return what sent these bytes first. `closed`: it closed the connection behind them, or without any."""
    if not answer:
        return Answerer.CLOSED if closed else Answerer.SILENT
    if answer[0] in _TLS_RECORDS and answer[1:2] in (b"\x03", b""):
        return Answerer.TLS
    if answer.startswith(b"HTTP/") or b"<html" in answer.lower() or b"<!doctype html" in answer.lower():
        return Answerer.HTTP
    if len(answer) >= 8:
        length, number = struct.unpack_from(">ii", answer)
        if number == _NUMBER and 4 < length < LARGEST_ANSWER:
            return Answerer.BROKER
    return Answerer.OTHER


def _fault_sentence(answerer: Answerer, place: str, answer: bytes, *, uses_tls: bool) -> str:
    """Return what is wrong with an address, with what to do. "": it may be a broker of these settings."""
    match answerer:
        case Answerer.HTTP:
            return f"an HTTP server answers at {place}, and no Kafka broker: check host and port in bootstrap.servers"
        case Answerer.OTHER:
            text = answer[:SHOWN].decode("ascii", "replace").strip()
            return f"what answers at {place} speaks no Kafka ({text!r}): check host and port in bootstrap.servers"
        case Answerer.BROKER if uses_tls:
            return f"the broker at {place} speaks no TLS on this port: check security.protocol and the port"
        case Answerer.TLS if not uses_tls:
            return f"{place} speaks TLS, and security.protocol has none: write SSL or SASL_SSL, or another port"
        case Answerer.CLOSED if not uses_tls:
            return (
                f"{place} accepts the connection and closes it without an answer. It may be a port with TLS, or a "
                "proxy that reaches no broker: check security.protocol and bootstrap.servers"
            )
    return ""  # one that is silent may be a broker that is far, or busy


async def find_fault(host: str, port: int, within: timedelta, *, uses_tls: bool) -> str:
    """Return what is wrong with what answers at an address; "": nothing that shows, or no connection is accepted.

    One that closes the connection gets a second chance: brokers do so at a limit of connections."""
    within_s = within.total_seconds()
    try:
        if uses_tls and await _shakes_hands(host, port, within_s):
            return ""
        answer, closed = await _ask(host, port, within_s)
        if not answer and closed and not uses_tls:
            await asyncio.sleep(AGAIN_AFTER_S)
            answer, closed = await _ask(host, port, within_s)
        answerer = judge_answer(answer, closed=closed)
        if answerer is Answerer.CLOSED and not uses_tls and await _shakes_hands(host, port, within_s):
            answerer = Answerer.TLS
    except (OSError, UnicodeError):
        return ""
    return _fault_sentence(answerer, f"{host}:{port}", answer, uses_tls=uses_tls)


async def _shakes_hands(host: str, port: int, within_s: float) -> bool:
    """Return whether a TLS server answers, of any certificate. Raises OSError if no connection is accepted.

    The handshake is made in another thread. OpenSSL keeps the errors of a thread in one queue. The alert of a broker
    that wants a certificate would be taken for the end of another connection of the event loop.
    """
    return await asyncio.to_thread(_shake_hands, host, port, within_s)


def _shake_hands(host: str, port: int, within_s: float) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is asked behind the handshake
    with socket.create_connection((host, port), timeout=within_s) as connection:
        try:
            context.wrap_socket(connection, server_hostname=host).close()
        except (ConnectionResetError, ssl.SSLEOFError):
            return False
        except ssl.SSLError as exc:
            return "WRONG_VERSION_NUMBER" not in str(exc.reason)  # others come of a TLS server
    return True


async def _ask(host: str, port: int, within_s: float) -> tuple[bytes, bool]:
    """Return the first bytes of the answer, and whether the connection was closed. Raises OSError if none is
    accepted."""
    async with asyncio.timeout(within_s):
        reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(QUESTION)
        answer = await _read(reader, within_s)
        return answer, reader.at_eof()
    except ConnectionError:
        return b"", True
    finally:
        writer.close()


async def _read(reader: asyncio.StreamReader, within_s: float) -> bytes:
    answer = b""
    try:
        async with asyncio.timeout(within_s):
            while len(answer) < ENOUGH and (more := await reader.read(256)):
                answer += more
    except TimeoutError:
        pass  # what has come by then is judged
    return answer
