"""A token server of the tests' own, in a thread: signs JWTs that Kafka's validator accepts, counts, and fails on
demand."""

import base64
import json
import ssl
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.support.certificates import Certified
from tests.support.http_server import Answer, HttpServer, Request

AUDIENCE = "kafka"
KEY_ID = "of-the-tests"


class TokenServer:
    """Serves until `close`. Everybody gets a token who is in `clients` (id: secret); its subject is the client's id.

    `lifetime_s` is that of tokens from now on. `failing`: an HTTP status to answer instead, `refresh` a refresh token
    that is taken. `asked` are the forms that came, with the header as `authorization`.
    """

    def __init__(self, clients: Mapping[str, str], certified: Certified | None = None) -> None:
        self.clients = dict(clients)
        self.lifetime_s = 3600.0
        self.failing: int | None = None
        self.refresh: str | None = None
        self.asked: list[dict[str, str]] = []
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._port = 0
        self._certified = certified
        self._server: HttpServer | None = None
        self.open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        return f"{'http' if self._certified is None else 'https'}://localhost:{self._port}/token"

    def open(self) -> None:
        """Serve, again at the same port."""
        context = None
        if self._certified is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            with tempfile.NamedTemporaryFile() as file:
                context.load_cert_chain(self._certified.pem(Path(file.name)))
        self._server = HttpServer(self._answer, self._port, tls=context).start()
        self._port = self._server.port

    def close(self) -> None:
        """Answer nobody any more, until `open`. Idempotent."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def token(self, subject: str, lifetime_s: float | None = None, **claims: Any) -> str:
        """Return a token that the key of `jwks` has signed."""
        now = time.time()
        until = now + (self.lifetime_s if lifetime_s is None else lifetime_s)
        body = {"sub": subject, "iat": int(now), "exp": int(until), "aud": AUDIENCE, "scope": "mirror", **claims}
        signed = f"{_encoded({'alg': 'RS256', 'kid': KEY_ID, 'typ': 'JWT'})}.{_encoded(body)}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64(signature)}"

    def jwks(self, file: Path) -> Path:
        """Return the public key as brokers want it: `sasl.oauthbearer.jwks.endpoint.url=file://...`."""
        numbers = self._key.public_key().public_numbers()
        key = {
            **{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": KEY_ID},
            **{"n": _number(numbers.n), "e": _number(numbers.e)},
        }
        file.write_text(json.dumps({"keys": [key]}))
        return file

    def _answer(self, request: Request) -> Answer:
        form = dict(parse_qsl(request.body.decode())) | {"authorization": request.headers.get("Authorization", "")}
        self.asked.append(form)
        client = self._client(form)
        if self.failing is not None:
            return Answer(self.failing, json.dumps({"error": "temporarily_unavailable"}))
        if client is None:
            refusal = {"error": "invalid_client", "error_description": "unknown id or secret"}
            return Answer(401, json.dumps(refusal))
        token = {"access_token": self.token(client), "expires_in": self.lifetime_s, "token_type": "Bearer"}
        return Answer(200, json.dumps(token))

    def _client(self, form: Mapping[str, str]) -> str | None:
        if form.get("grant_type") == "refresh_token":
            return form.get("client_id") if form.get("refresh_token") == self.refresh else None
        header = form["authorization"].removeprefix("Basic ")
        client, _, secret = base64.b64decode(header).decode().partition(":")
        return client if client in self.clients and self.clients[client] == secret else None


def _encoded(value: Mapping[str, Any]) -> str:
    return _base64(json.dumps(value).encode())


def _number(value: int) -> str:
    return _base64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
