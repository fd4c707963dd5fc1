"""A broker of the tests' own, which lets clients log in and answers nothing else."""

import asyncio
import base64
import hashlib
import hmac
import ssl
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from kio.schema.errors import ErrorCode

from lockstep_kafka.messages.message_versions import load_message
from tests.support.kafka_frame import LENGTH_BYTES, Frame, read_frame, written_frame

APIS = {18: ("api_versions", "ApiVersions", 0), 17: ("sasl_handshake", "SaslHandshake", 1)}
AUTHENTICATE = {36: ("sasl_authenticate", "SaslAuthenticate", 1)}

Exchange = Callable[[], Generator[bytes, bytes, bool]]
"""The broker's side of one login. It is sent the client's tokens, yields its own, and returns whether the client is let
in. The first token that it yields is nothing."""


class SaslBroker:
    """Lets in whom its exchange lets in.

    Args:
        mechanism: The only one that it offers.
        exchange: Its side of a login.
        session: How long it says that a login lasts.
    """

    def __init__(self, mechanism: str = "", exchange: Exchange | None = None, session: timedelta = timedelta()) -> None:
        self._mechanism, self._exchange, self._session = mechanism, exchange, session
        self.port = 0
        self.peer_names: list[str] = []
        """The subject of each client's certificate."""

    @asynccontextmanager
    async def serving(self, ssl_context: ssl.SSLContext | None = None) -> AsyncIterator["SaslBroker"]:
        """Serve until the block ends."""
        server = await asyncio.start_server(self._serve, "localhost", 0, ssl=ssl_context)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        certificate = writer.get_extra_info("peercert") or {}
        self.peer_names += [value for ((_, value),) in certificate.get("subject", ())]
        exchange = self._exchange() if self._exchange is not None else None
        if exchange is not None:
            next(exchange)
        try:
            while True:
                length = await reader.readexactly(LENGTH_BYTES)
                frame = length + await reader.readexactly(int.from_bytes(length))
                writer.write(self._answer(frame, exchange))
        except asyncio.IncompleteReadError:
            writer.close()

    def _answer(self, frame: bytes, exchange: Generator[bytes, bytes, bool] | None) -> bytes:
        key, version = (int.from_bytes(frame[position : position + 2]) for position in (LENGTH_BYTES, LENGTH_BYTES + 2))
        api, name, _ = (APIS | AUTHENTICATE)[key]
        request = read_frame(frame, getattr(load_message(api, version, "request"), f"{name}Request"))
        m = load_message(api, version, "response")
        header = getattr(m, f"{name}Response").__header_schema__(correlation_id=request.header.correlation_id)
        return written_frame(Frame(header, getattr(self, f"_{api}")(m, request.body, exchange)))

    def _api_versions(self, m: Any, _request: Any, _exchange: Any) -> Any:
        keys = tuple(
            m.ApiVersion(api_key=key, min_version=0, max_version=newest)
            for key, (_, _, newest) in (APIS | AUTHENTICATE).items()
        )
        return m.ApiVersionsResponse(error_code=ErrorCode.none, api_keys=keys)

    def _sasl_handshake(self, m: Any, request: Any, _exchange: Any) -> Any:
        is_offered = request.mechanism == self._mechanism
        code = ErrorCode.none if is_offered else ErrorCode.unsupported_sasl_mechanism
        return m.SaslHandshakeResponse(error_code=code, mechanisms=(self._mechanism,))

    def _sasl_authenticate(self, m: Any, request: Any, exchange: Generator[bytes, bytes, bool]) -> Any:
        token, is_let_in = b"", True
        try:
            token = exchange.send(request.auth_bytes)
        except StopIteration as end:
            is_let_in = end.value
        return m.SaslAuthenticateResponse(
            error_code=ErrorCode.none if is_let_in else ErrorCode.sasl_authentication_failed,
            error_message=None if is_let_in else "not you",
            auth_bytes=token,
            session_lifetime=self._session,
        )


def plain(username: str, password: str) -> Exchange:
    """Return the broker's side of PLAIN (RFC 4616)."""

    def exchange() -> Generator[bytes, bytes, bool]:
        _, name, secret = (yield b"").split(b"\0")
        return (name.decode(), secret.decode()) == (username, password)

    return exchange


def bearer(is_valid: Callable[[str, dict[str, str]], bool]) -> Exchange:
    """Return the broker's side of OAUTHBEARER (RFC 7628). `is_valid` is given the access token and the extensions."""

    def exchange() -> Generator[bytes, bytes, bool]:
        head, *pairs = (yield b"").decode().split("\1")
        values = dict(pair.split("=", 1) for pair in pairs if pair)
        kind, _, token = values.pop("auth").partition(" ")
        return (head, kind) == ("n,,", "Bearer") and is_valid(token, values)

    return exchange


def scram(hash_name: str, username: str, password: str, signed_with: str | None = None) -> Exchange:
    """Return the broker's side of SCRAM (RFC 5802). `signed_with`: the password that it proves to know, if another."""
    salt, iterations = b"salt of the tests", 4096

    def keys(secret: str, name: bytes) -> bytes:
        return hmac.digest(hashlib.pbkdf2_hmac(hash_name, secret.encode(), salt, iterations), name, hash_name)

    def exchange() -> Generator[bytes, bytes, bool]:
        head, client_first = (yield b"").split(b",,")
        name, nonce = (part[2:].decode() for part in client_first.split(b","))
        server_first = f"r={nonce}broker,s={base64.b64encode(salt).decode()},i={iterations}".encode()
        without_proof, _, proof = (yield server_first).rpartition(b",p=")
        signed = b",".join((client_first, server_first, without_proof))
        client_key = keys(password, b"Client Key")
        signature = hmac.digest(hashlib.new(hash_name, client_key).digest(), signed, hash_name)
        expected = bytes(
            key_byte ^ signature_byte for key_byte, signature_byte in zip(client_key, signature, strict=True)
        )
        is_let_in = (
            head == b"n"
            and name.replace("=2C", ",").replace("=3D", "=") == username
            and without_proof == f"c=biws,r={nonce}broker".encode()
            and base64.b64decode(proof) == expected
        )
        if not is_let_in:
            return False
        proven = hmac.digest(keys(signed_with or password, b"Server Key"), signed, hash_name)
        yield b"v=" + base64.b64encode(proven)
        return True

    return exchange
