"""`lockstep rack` against an API server of its own: what it asks, as whom, and what it says where that is in vain."""

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from lockstep_cli.commands import rack
from lockstep_cli.commands.rack import read_rack
from lockstep_ops.exit_codes import CannotUse
from tests.support.certificates import Authority
from tests.support.command_line import lockstep

ZONE = "topology.kubernetes.io/zone"
NODES = {"node-1": {ZONE: "eu-1a"}, "bare": {}, "odd": {ZONE: "${file:/etc/passwd:x}"}}


class Nodes(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path.removeprefix("/api/v1/nodes/")
        code = 403 if self.headers["Authorization"] != "Bearer token-1" else 200 if name in NODES else 404
        self.send_response(code)
        self.end_headers()
        if code == 200:
            self.wfile.write(json.dumps({"metadata": {"labels": NODES[name]}}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("token-1\n")
    return tmp_path


@pytest.fixture
def server(account: Path) -> Iterator[str]:
    authority = Authority()
    (account / "ca.crt").write_text(authority.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.server("127.0.0.1").pem(account / "server.pem"))
    with HTTPServer(("127.0.0.1", 0), Nodes) as listening:
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
        threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True).start()
        yield f"https://127.0.0.1:{listening.server_port}"
        listening.shutdown()


def test_the_label_of_the_node_is_the_rack(server: str, account: Path) -> None:
    assert read_rack(server, "node-1", ZONE, account) == "eu-1a"


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("bare", f"node bare has no label {ZONE}: label the nodes, or name a label that they have"),
        ("nobody", "node nobody cannot be asked for: 404 Not Found"),
        ("odd", f"node odd has the label {ZONE}='${{file:/etc/passwd:x}}', which is no label's value"),
    ],
)
def test_rack_failure_is_one_sentence(server: str, account: Path, node: str, said: str) -> None:
    with pytest.raises(CannotUse) as raised:
        read_rack(server, node, ZONE, account)
    assert str(raised.value) == said


def test_an_account_without_the_right_is_named(server: str, account: Path) -> None:
    (account / "token").write_text("another")
    with pytest.raises(CannotUse, match="the pod's service account may not get nodes"):
        read_rack(server, "node-1", ZONE, account)


def test_the_command_writes_the_file_that_a_reference_reads(
    server: str, account: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rack, "ACCOUNT", account)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", server.rpartition(":")[2])
    to = tmp_path / "rack.properties"
    answer = lockstep("rack", "--topology-key", ZONE, "--node", "node-1", "--to", to)
    assert (answer.exit_code, answer.output, to.read_text()) == (
        0,
        f"node node-1 is in rack eu-1a ({ZONE})\n",
        "rack=eu-1a\n",
    )


def test_rack_outside_of_a_pod_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    answer = lockstep("rack", "--topology-key", ZONE, "--node", "n", "--to", tmp_path / "r")
    assert (answer.exit_code, answer.output) == (
        2,
        "lockstep rack runs in a pod: KUBERNETES_SERVICE_HOST is not set here\n",
    )
