"""The endpoint of a managed identity, as Azure's App Service and Container Apps have it, in a thread."""

import json
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Self
from urllib.parse import parse_qs, urlsplit

SECRET = "of-the-tests"
LIFE_S = 3600


class ManagedIdentity:
    """Answers with what `token` returns to those who know the secret. `status` is its answer's, `asked` the queries."""

    def __init__(self, token: Callable[[], str]) -> None:
        self.asked: list[dict[str, list[str]]] = []
        self.status = 200
        identity = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                identity.asked.append(parse_qs(urlsplit(self.path).query))
                status = identity.status if self.headers.get("X-IDENTITY-HEADER") == SECRET else 401
                content: dict[str, object] = {"statusCode": status, "message": "no such identity"}
                if status == 200:
                    resource = identity.asked[-1]["resource"][0]
                    until = str(int(time.time()) + LIFE_S)
                    content = {
                        "access_token": token(),
                        "expires_on": until,
                        "resource": resource,
                        "token_type": "Bearer",
                    }
                text = json.dumps(content)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def environment(self) -> Mapping[str, str]:
        """What Azure sets for the processes of an application."""
        return {
            "IDENTITY_ENDPOINT": f"http://127.0.0.1:{self._server.server_port}/msi/token",
            "IDENTITY_HEADER": SECRET,
            "NO_PROXY": "127.0.0.1",
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
