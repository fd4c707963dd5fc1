"""The endpoint of a managed identity, as Azure's App Service and Container Apps have it, in a thread."""

import json
import time
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, urlsplit

from tests.support.http_server import Answer, HttpServer, Request

SECRET = "of-the-tests"
LIFE_S = 3600


class ManagedIdentity(HttpServer):
    """Answers with what `token` returns to those who know the secret. `status` is its answer's, `asked` the queries."""

    def __init__(self, token: Callable[[], str]) -> None:
        self.asked: list[dict[str, list[str]]] = []
        self.status = 200
        self._token = token
        super().__init__(self._answer)

    @property
    def environment(self) -> Mapping[str, str]:
        """Return what Azure sets for the processes of an application."""
        return {
            "IDENTITY_ENDPOINT": f"http://127.0.0.1:{self.port}/msi/token",
            "IDENTITY_HEADER": SECRET,
            "NO_PROXY": "127.0.0.1",
        }

    def _answer(self, request: Request) -> Answer:
        query = parse_qs(urlsplit(request.path).query)
        self.asked.append(query)
        status = self.status if request.headers.get("X-IDENTITY-HEADER") == SECRET else 401
        if status != 200:
            return Answer(status, json.dumps({"statusCode": status, "message": "no such identity"}))
        content = {
            "access_token": self._token(),
            "expires_on": str(int(time.time()) + LIFE_S),
            "resource": query["resource"][0],
            "token_type": "Bearer",
        }
        return Answer(status, json.dumps(content))
