"""Answers of the pages: status, headers and body. An answer names no server and is not to be cached."""

from http import HTTPStatus

from aiohttp import web

TEXT = "text/plain; charset=utf-8"
JSON = "application/json; charset=utf-8"

METHODS = ("GET", "HEAD")

_MORE = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": "Bearer"},
    HTTPStatus.METHOD_NOT_ALLOWED: {"Allow": ", ".join(METHODS)},
}


def page(status: HTTPStatus, body: bytes, content_type: str = TEXT) -> web.Response:
    """Return the answer to one request; the connection ends with it."""
    answer = web.Response(status=status, body=body, headers=_headers(status, body, content_type))
    answer.force_close()
    return answer


def refusal(status: HTTPStatus) -> web.Response:
    """Return the answer to a request for a page that does not exist or is not for everybody."""
    return page(status, _phrase(status))


def refusal_bytes(status: HTTPStatus) -> bytes:
    """Return the whole answer to bytes that are no request."""
    lines = (f"{name}: {value}" for name, value in _headers(status, _phrase(status), TEXT).items())
    head = "\r\n".join((f"HTTP/1.1 {status.value} {status.phrase}", *lines))
    return head.encode("latin-1") + b"\r\n\r\n" + _phrase(status)


def _phrase(status: HTTPStatus) -> bytes:
    return f"{status.phrase}\n".encode()


def _headers(status: HTTPStatus, body: bytes, content_type: str) -> dict[str, str]:
    return {
        "Content-Type": content_type,
        "Content-Length": str(len(body)),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Connection": "close",
        **_MORE.get(status, {}),
    }
