"""A console that is asked for things by its API, as its page does."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.support.eventually import wait_until
from tests.support.services import ServiceProcess

TOKEN = "a token of a test"
USER_HEADER = "X-Forwarded-User"
ACTS = {"Content-Type": "application/json", "X-Lockstep-Request": "1"}


class ActingConsole(ServiceProcess):
    """A console with a token, which trusts `USER_HEADER`. A context manager; several of one file have other names."""

    def __init__(self, file: Path, *flows: str, instance: str = "console-1") -> None:
        super().__init__(
            "lockstep_console",
            file,
            *flows,
            instance=instance,
            arguments=["--port", "0", "--trust-header", USER_HEADER],
            environment={"LOCKSTEP_TOKEN": TOKEN},
        )

    def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        user: str = "",
        token: str = TOKEN,
        headers: Mapping[str, str] = ACTS,
    ) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of a request to the API. `user`: it comes through the proxy, without token."""
        identity = {USER_HEADER: user} if user else {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(  # noqa: S310 - our own address
            f"{self.address}/api/v1{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={**identity, **(headers if method != "GET" else {})},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=60.0) as answer:  # noqa: S310 - our own address
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def path(self, flow: object, path: str) -> str:
        """Return the path of something about a flow."""
        return f"/flows/{quote(str(flow), safe='')}{path}"

    def post(
        self, flow: object, path: str, body: Mapping[str, Any], *, user: str = "", code: int = 202
    ) -> dict[str, Any]:
        """Return the body of the answer to a POST about a flow, which has this status."""
        status, answer = self.ask("POST", self.path(flow, path), body, user=user)
        assert status == code, answer
        return answer

    def get(self, flow: object, path: str, code: int = 200) -> dict[str, Any]:
        """Return the body of the answer to a GET about a flow, which has this status."""
        status, answer = self.ask("GET", self.path(flow, path))
        assert status == code, answer
        return answer

    def outcome(self, flow: object, asked: Mapping[str, Any], within: float = 90.0) -> dict[str, Any]:
        """Return the outcome of a command once it is not running any more."""

        def ended() -> dict[str, Any] | None:
            body = self.get(flow, f"/commands/{asked['id']}")
            return body if body["phase"] != "running" else None

        return wait_until(ended, within=within, every=0.1, what=f"the outcome of {asked}")
