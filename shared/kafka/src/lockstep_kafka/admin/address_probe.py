"""A probe of a bootstrap address: the kind of server that answers there, and what is wrong with the address.

A client library only says that there is no answer. The probe sends ApiVersions, which a broker answers before any
login. If the client uses TLS, it goes behind a TLS handshake. The first bytes of the answer show an HTTP server, a
port with or without TLS, and servers that do not speak Kafka. SaslHandshake, which no login follows, shows whether the
port of a broker wants a login.
"""

import asyncio
import ssl
import struct
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.kafka.kafka_errors import KafkaErrorCode

_NUMBER = 0x10C57E9
_CLIENT_ID = b"lockstep\r\n\r\n"
"""A client id that ends a line. Servers that read lines wait for the end of a line before they answer."""


def _framed(api: str, version: int, body: bytes = b"") -> bytes:
    """Return the bytes of a request in a version before the flexible ones."""
    request = struct.pack(">hhih", APIS[api].key, version, _NUMBER, len(_CLIENT_ID)) + _CLIENT_ID + body
    return struct.pack(">i", len(request)) + request


QUESTION = _framed("api_versions", 0)
"""A request ApiVersions 0, which every broker knows."""
_METADATA_VERSION = 1
_NO_TOPICS = _framed("metadata", _METADATA_VERSION, struct.pack(">i", 0))
"""A request for the metadata of no topic."""
ANY_MECHANISM = "PLAIN"
"""The mechanism by which a client without a login asks whether there is one."""
_SASL_CODES = frozenset({KafkaErrorCode.NONE, KafkaErrorCode.UNSUPPORTED_SASL_MECHANISM})
"""Codes by which a port with SASL answers a SaslHandshake."""

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


_CERTIFICATE_ALERTS = ("ALERT_CERTIFICATE_REQUIRED", "ALERT_BAD_CERTIFICATE")
"""Ends of OpenSSL's reasons for the alert to a client that has given no certificate. Java sends the second one."""

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
class ClientSecurity:
    """The way in which a client connects: its TLS, its SASL mechanism or "", and whether it has a certificate."""

    uses_tls: bool = False
    mechanism: str = ""
    has_certificate: bool = False

    @classmethod
    def of_librdkafka(cls, conf: Mapping[str, object]) -> "ClientSecurity":
        """Return the way of a client with these settings of librdkafka."""
        protocol = str(conf.get("security.protocol", "")).upper()
        mechanism = str(conf.get("sasl.mechanism", "")) if protocol.startswith("SASL") else ""
        return cls(protocol.endswith("SSL"), mechanism, "ssl.certificate.pem" in conf)


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


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer on one connection: its bytes, whether the connection ended, and OpenSSL's reason for an error."""

    data: bytes = b""
    closed: bool = False
    tls_reason: str = ""

    @property
    def server(self) -> ServerKind:
        return identify_server(self.data, closed=self.closed)

    @property
    def code(self) -> int | None:
        """Return the error code with which the answer begins, or None if there is no such answer."""
        if not _frame_length(self.data) or len(self.data) < _HEAD.size + 2:
            return None
        return int.from_bytes(self.data[_HEAD.size : _HEAD.size + 2], signed=True)

    def announces(self, api: str, version: int) -> bool:
        """Return whether this answer to ApiVersions has a request in a version."""
        if self.code != KafkaErrorCode.NONE:
            return False
        listed = self.data[_HEAD.size + _CODE_AND_COUNT.size :]
        entries = struct.iter_unpack(">hhh", listed[: len(listed) // _VERSIONS * _VERSIONS])
        return any(key == APIS[api].key and oldest <= version <= newest for key, oldest, newest in entries)


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


async def probe_address(host: str, port: int, within: timedelta, client: ClientSecurity) -> AddressProbe:
    """Return what answers at an address, and what is wrong with it.

    A server that closes the connection gets a second attempt: brokers close connections at a connection limit.

    The probe runs in a thread of its own, because OpenSSL keeps the errors of a thread in one queue. Otherwise the
    alert of a broker that wants a certificate would end another connection of the event loop.

    Args:
        host: The host of the address.
        port: The port of the address.
        within: The limit of each attempt.
        client: The way in which the client connects.
    """
    thread = ThreadPoolExecutor(1, "address-probe")
    try:
        return await asyncio.get_running_loop().run_in_executor(
            thread, lambda: asyncio.run(_Probing(host, port, within.total_seconds(), client).probe())
        )
    finally:
        thread.shutdown(wait=False)


class _Probing:
    """The probe of one address, on a connection for each question."""

    def __init__(self, host: str, port: int, within_s: float, client: ClientSecurity) -> None:
        self._host, self._port, self._within_s, self._client = host, port, within_s, client

    async def probe(self) -> AddressProbe:
        uses_tls = self._client.uses_tls
        try:
            server, answer = await self._answer_behind_tls() if uses_tls else (None, _Answer())
            if server is None:
                server, answer = await self._answer_without_tls()
        except (OSError, UnicodeError):
            return AddressProbe(None)
        address = f"{self._host}:{self._port}"
        fault = _fault_sentence(server, address, answer.data, uses_tls=uses_tls)
        with suppress(OSError):
            fault = fault or await self._login_fault(address, answer)
        return AddressProbe(server, fault)

    async def _answer_behind_tls(self) -> tuple[ServerKind | None, _Answer]:
        """Return what answers behind a TLS handshake, or None if there was no handshake."""
        if await _handshake(self._host, self._port, self._within_s) is not Handshake.DONE:
            return None, _Answer()
        answer = await self._ask(QUESTION)
        if answer.server is ServerKind.CLOSED and not answer.tls_reason and not self._client.has_certificate:
            answer = await self._ask(b"")  # bytes of ours may reset the connection before its alert is read
        # A broker that requires a client certificate says so behind the handshake, and closes the connection.
        shows = answer.server in (ServerKind.HTTP, ServerKind.OTHER, ServerKind.CUT, ServerKind.SILENT)
        return (answer.server if shows else ServerKind.TLS), answer

    async def _answer_without_tls(self) -> tuple[ServerKind, _Answer]:
        answer = await _ask(self._host, self._port, self._within_s, QUESTION)
        if not answer.data and answer.closed:
            await asyncio.sleep(AGAIN_AFTER_S)
            answer = await _ask(self._host, self._port, self._within_s, QUESTION)
        if answer.server is ServerKind.CLOSED:
            match await _handshake(self._host, self._port, self._within_s):
                case Handshake.DONE:
                    return ServerKind.TLS, answer
                case Handshake.SILENT if self._client.uses_tls:
                    return ServerKind.SILENT, answer
        return answer.server, answer

    async def _login_fault(self, address: str, answer: _Answer) -> str:
        """Return what a broker of the client's protocol lacks or wants of a login, or "" if nothing shows.

        A port without SASL says so of a SaslHandshake. Some brokers let a client in with or without a login. So a port
        wants one only if it also closes the connection at Metadata.
        """
        if answer.tls_reason.endswith(_CERTIFICATE_ALERTS) and not self._client.has_certificate:
            return (
                f"the broker at {address} wants a client certificate, and none is configured: set "
                "ssl.keystore.location, or check security.protocol and the port"
            )
        if answer.server is not ServerKind.BROKER:
            return ""
        mechanism = self._client.mechanism
        name = (mechanism or ANY_MECHANISM).encode()
        code = (await self._ask(_framed("sasl_handshake", 1, struct.pack(">h", len(name)) + name))).code
        if mechanism:
            if code != KafkaErrorCode.ILLEGAL_SASL_STATE:
                return ""
            return f"the broker at {address} takes no login on this port: check security.protocol and the port"
        if code not in _SASL_CODES or not answer.announces("metadata", _METADATA_VERSION):
            return ""
        metadata = await self._ask(_NO_TOPICS)
        if metadata.data or not metadata.closed:
            return ""
        with_login = "SASL_SSL" if self._client.uses_tls else "SASL_PLAINTEXT"
        return f"the broker at {address} wants a SASL login, and security.protocol has none: write {with_login}"

    async def _ask(self, question: bytes) -> _Answer:
        return await _ask(
            self._host, self._port, self._within_s, question, _UNVERIFIED if self._client.uses_tls else None
        )


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


async def _ask(
    host: str, port: int, within_s: float, question: bytes, context: ssl.SSLContext | None = None
) -> _Answer:
    """Return what came as an answer.

    Raises:
        OSError: No connection is accepted.
    """
    try:
        async with asyncio.timeout(within_s):
            reader, writer = await asyncio.open_connection(host, port, ssl=context)
    except ssl.SSLError as exc:
        return _Answer(closed=True, tls_reason=exc.reason or "")
    try:
        writer.write(question)
        answer = await _read(reader, within_s)
        return _Answer(answer, reader.at_eof())
    except ssl.SSLError as exc:
        return _Answer(closed=True, tls_reason=exc.reason or "")
    except ConnectionError:
        return _Answer(closed=True)
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
