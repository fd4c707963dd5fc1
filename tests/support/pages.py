"""The pages over real sockets: a server, requests as bytes, certificates, and crowds of clients."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from lockstep_runtime.http.access import AccessPolicy
from lockstep_runtime.http.server import PageServer
from lockstep_runtime.telemetry.metrics import Metrics
from tests.support.certificates import Authority

WITHIN = 20.0


@asynccontextmanager
async def served(
    access: AccessPolicy, warn: Callable[[str], None] = lambda _: None, why_not: str | None = "not read yet: A->B"
) -> AsyncIterator[str]:
    """Yield the address of pages while they are open. The process is live, and not ready for a reason."""
    pages = PageServer(Metrics(), live=lambda: None, ready=lambda: why_not, status=lambda: {"service": "x"}, warn=warn)
    address = await pages.open(access)
    try:
        yield address
    finally:
        await pages.close()


async def sent(address: str, request: bytes, tls: ssl.SSLContext | None = None) -> bytes:
    """Send a request. Return all that comes back."""
    host, _, port = address.partition("://")[2].rpartition(":")
    async with asyncio.timeout(WITHIN):
        reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=tls, limit=1 << 20)
        try:
            writer.write(request)
            return await reader.read()
        finally:
            writer.close()


async def got(
    address: str, path: str, token: str = "", method: str = "GET", tls: ssl.SSLContext | None = None
) -> tuple[int, str]:
    """Ask for a page. Return status and body."""
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    request = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}\r\n".encode()
    head, _, body = (await sent(address, request, tls)).decode().partition("\r\n\r\n")
    return int(head.split()[1]), body


def pages_access(folder: Path, *, tls: bool) -> tuple[AccessPolicy, ssl.SSLContext | None]:
    """Return the policy of pages with or without TLS, and what trusts them."""
    if not tls:
        return AccessPolicy(), None
    made, key = certificate(folder, "one")
    return AccessPolicy(certificate=made, key=key), ssl.create_default_context(cafile=str(made))


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Return the files of a new certificate for `localhost`, with the one that signed it, and of its key."""
    certified = Authority(name).server("localhost", "127.0.0.1")
    made, key = folder / f"{name}.crt", folder / f"{name}.key"
    made.write_text(certified.chain_pem)
    key.write_text(certified.key_pem())
    return made, key


Opened = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def crowd(address: str, number: int, says: bytes) -> AsyncIterator[list[Opened]]:
    """Yield so many connections that have sent this and wait."""
    host, _, port = address.partition("://")[2].rpartition(":")
    opened: list[Opened] = []
    try:
        for _ in range(number):
            opened.append(await asyncio.open_connection(host, int(port)))
            opened[-1][1].write(says)
        yield opened
    finally:
        for _, writer in opened:
            writer.transport.abort()
