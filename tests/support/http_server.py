"""An HTTP server of a test's own, in a thread."""

import ssl
import threading
from collections.abc import Callable
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self


class Request(NamedTuple):
    path: str
    headers: Message
    body: bytes


class Answer(NamedTuple):
    status: int
    body: str = ""
    content_type: str = "application/json"


class HttpServer:
    """Has a port at once, and answers each GET and POST as `answer` says from `start` on. A context manager."""

    def __init__(
        self, answer: Callable[[Request], Answer], port: int = 0, *, tls: ssl.SSLContext | None = None
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                status, text, content_type = answer(Request(self.path, self.headers, body))
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)

    def start(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), name="http server", daemon=True).start()
        return self

    def close(self) -> None:
        """End it, and give its port back."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
