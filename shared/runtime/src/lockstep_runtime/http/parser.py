"""The little of HTTP/1.1 that the pages speak: one GET or HEAD a connection, no body. No I/O.

A server of our own, of a page: what it cannot read it cannot be made to do, and its limits are all here.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

__all__ = ["HEAD_BYTES", "METHODS", "BadRequest", "Request", "parse", "rendered", "same_token"]

HEAD_BYTES = 8_192
"""A request's line and headers at most; answered with 431 beyond."""

METHODS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Request:
    """A request's head. `path` is as it was sent, without its query; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def token(self) -> str:
        """The bearer token it came with; "" without one."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""


class BadRequest(Exception):
    """What came is no request that is answered. `status` says why."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


def parse(head: bytes) -> Request:
    """A request's head, up to and without the empty line that ends it. Raises BadRequest."""
    try:
        line, *rest = head.decode("latin-1").split("\r\n")
        method, target, version = line.split(" ")
    except ValueError as exc:
        raise BadRequest(HTTPStatus.BAD_REQUEST) from exc
    if not version.startswith("HTTP/1.") or not target.startswith("/"):
        raise BadRequest(HTTPStatus.BAD_REQUEST)
    if method not in METHODS:
        raise BadRequest(HTTPStatus.METHOD_NOT_ALLOWED)
    headers: dict[str, str] = {}
    for one in rest:
        name, colon, value = one.partition(":")
        if not colon or not name or name != name.strip() or name.lower() in headers:
            raise BadRequest(HTTPStatus.BAD_REQUEST)  # folded and repeated headers are how parsers are told apart
        headers[name.lower()] = value.strip()
    return Request(method, target.partition("?")[0], headers)


def rendered(
    status: HTTPStatus,
    body: bytes,
    content_type: str = "text/plain; charset=utf-8",
    *,
    head_only: bool = False,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """The whole answer. It names no server and no version, and is for nobody to keep."""
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
    ]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (b"" if head_only else body)


def same_token(given: str, wanted: str) -> bool:
    """Whether they are the same, in a time that tells nothing of where they differ. No token is never the right one."""
    return bool(wanted) and hmac.compare_digest(given.encode(), wanted.encode())
