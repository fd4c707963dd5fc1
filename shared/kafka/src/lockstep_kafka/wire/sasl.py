"""Logins by the SASL mechanisms PLAIN, SCRAM (RFC 5802) and OAUTHBEARER (RFC 7628)."""

import asyncio
import base64
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable

from lockstep_config.clients.sasl import Credentials, SaslLogin
from lockstep_config.clients.token_source import shared_token_source
from lockstep_state.errors import RetriableError

SendToken = Callable[[bytes], Awaitable[bytes]]
"""A function that sends a SASL token in a SaslAuthenticate, and returns the broker's token."""

PLAIN = "PLAIN"
_SCRAM_PREFIX = "SCRAM-"
_ITERATIONS = range(4096, 1_000_001)
"""Iterations of the hash that are accepted: RFC 7677's and Java's least, and librdkafka's most.

With fewer, a false broker would learn a hash that is cheap to search. More would keep a thread busy for seconds.
"""
_QUOTED = {ord("="): "=3D", ord(","): "=2C"}
"""Replacements for characters of a user's name that have a meaning in SCRAM."""


class SaslRefused(RetriableError, ConnectionError):
    """An error if the broker lacks the mechanism, refuses the login, or does not prove that it knows the password.

    It is also the error for sessions that are too short to be renewed.
    """


async def authenticate(login: SaslLogin, send: SendToken) -> None:
    """Exchange the tokens of one login with the broker.

    A mechanism that begins with `SCRAM-` is SCRAM with the hash in its name. Only PLAIN sends the password itself.

    Raises:
        SaslRefused: The broker does not prove that it knows the password, does not speak SCRAM, or asks for too few or
            too many iterations of the hash. Or the mechanism has no exchange here.
        TokenUnavailable: There is no access token to log in with.
    """
    if not isinstance(login, Credentials):
        source = shared_token_source(login.tokens)
        token = (await asyncio.to_thread(source.token)).text
        extensions = "".join(f"\1{key}={value}" for key, value in source.extensions.items())
        await send(f"n,,\1auth=Bearer {token}{extensions}\1\1".encode())
    elif login.mechanism.startswith(_SCRAM_PREFIX):
        try:
            await _authenticate_by_scram(login, send)
        except (KeyError, ValueError) as exc:
            raise SaslRefused(f"the broker sent what is no answer of SCRAM: {exc!r}") from None
    elif login.mechanism == PLAIN:
        await send("\0".join((login.username, login.username, login.password)).encode())
    else:
        raise SaslRefused(f"there is no exchange for the mechanism {login.mechanism}")


async def _authenticate_by_scram(login: Credentials, send: SendToken) -> None:
    nonce = secrets.token_hex(16)
    client_first = f"n={login.username.translate(_QUOTED)},r={nonce}"
    server_first = (await send(f"n,,{client_first}".encode())).decode()
    challenge = _attributes(server_first)
    if not challenge.get("r", "").startswith(nonce):
        raise SaslRefused("the broker answered another login than ours (SCRAM: its nonce does not begin with our own)")
    client_final = f"c=biws,r={challenge['r']}"
    signed = f"{client_first},{server_first},{client_final}".encode()
    iterations = int(challenge["i"])
    if iterations not in _ITERATIONS:
        limits = f"{_ITERATIONS.start:,} to {_ITERATIONS.stop - 1:,}"
        raise SaslRefused(f"the broker asks for {iterations:,} iterations of the hash (SCRAM: {limits} are accepted)")
    hash_name = login.mechanism.removeprefix(_SCRAM_PREFIX).replace("-", "").lower()
    # A thread hashes thousands of times, so the event loop goes on meanwhile.
    salted_password = await asyncio.to_thread(
        hashlib.pbkdf2_hmac,
        hash_name,
        login.password.encode(),
        base64.b64decode(challenge["s"]),
        iterations,
    )
    client_key = hmac.digest(salted_password, b"Client Key", hash_name)
    signature = hmac.digest(hashlib.new(hash_name, client_key).digest(), signed, hash_name)
    proof = bytes(key_byte ^ signature_byte for key_byte, signature_byte in zip(client_key, signature, strict=True))
    server_final = await send(f"{client_final},p={base64.b64encode(proof).decode()}".encode())
    server_key = hmac.digest(salted_password, b"Server Key", hash_name)
    expected = base64.b64encode(hmac.digest(server_key, signed, hash_name)).decode()
    if not hmac.compare_digest(_attributes(server_final.decode()).get("v", ""), expected):
        raise SaslRefused("the broker does not prove that it knows the password (SCRAM: its signature is wrong)")


def _attributes(token: str) -> dict[str, str]:
    """Return the attributes of a SCRAM token by their letters."""
    return {letter: value for letter, _, value in (part.partition("=") for part in token.split(","))}
