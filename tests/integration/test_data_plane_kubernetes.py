"""What Spark asks Kubernetes for with our settings: its own backend in client mode, speaking to an API that writes down
what it is asked, allows what the chart's Role allows, and gives no pod a machine."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from tests.support.eventually import wait_until
from tests.support.services import ServiceProcess, two_cluster_file

NAMESPACE = "mirror"
DRIVER = "data-plane-0"


RBAC = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "lockstep" / "templates" / "rbac.yaml"

Right = tuple[str, str]
"""A verb and a kind of resource."""


def rights_of_the_driver() -> frozenset[Right]:
    """What the chart's Role for the driver allows."""
    role = RBAC.read_text().partition("kind: Role\n")[2]
    rules = yaml.safe_load(role.partition("rules:")[2].partition("---")[0])
    assert [rule["apiGroups"] for rule in rules] == [[""]] * len(rules)
    return frozenset((verb, kind) for rule in rules for verb in rule["verbs"] for kind in rule["resources"])


def right_for(method: str, path: str) -> Right:
    """The right that Kubernetes wants for a request of a namespace."""
    parts = urlsplit(path)
    kind, *name = parts.path.partition(f"/namespaces/{NAMESPACE}/")[2].split("/")
    match method:
        case "GET" if parse_qs(parts.query).get("watch") == ["true"]:
            return "watch", kind
        case "GET":
            return "get" if name else "list", kind
        case "DELETE":
            return "delete" if name else "deletecollection", kind
    return {"POST": "create", "PATCH": "patch", "PUT": "update"}[method], kind


class Api:
    """The pods that were asked for, and the rights that it took."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.pods: list[dict[str, Any]] = []
        self.used: set[Right] = set()


@contextmanager
def api_server() -> Iterator[Api]:
    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def parse_request(self) -> bool:
            """Refuse what the Role does not allow, before anything else is looked at."""
            if not super().parse_request():
                return False
            right = right_for(self.command, self.path)
            api.used.add(right)
            if right in allowed:
                return True
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self._say(403, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403})
            return False

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path.endswith(f"/pods/{DRIVER}"):
                self._say(200, {"kind": "Pod", "apiVersion": "v1", "metadata": _metadata(DRIVER)})
            else:
                self._say(
                    200, {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
                )

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body["metadata"] |= _metadata(body["metadata"]["name"])
            self._say(201, body)
            if body["kind"] == "Pod":
                api.pods.append(body)

        def do_PATCH(self) -> None:
            self.do_POST()

        def do_DELETE(self) -> None:
            self._say(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})

        def _say(self, status: int, body: object) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    allowed = rights_of_the_driver()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    api = Api(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def _metadata(name: str) -> dict[str, str]:
    return {"name": name, "namespace": NAMESPACE, "uid": f"uid-of-{name}", "resourceVersion": "1"}


@pytest.mark.long
def test_spark_asks_for_a_pod_for_each_slots_core(tmp_path: Path) -> None:
    template = tmp_path / "executor.yaml"
    template.write_text("apiVersion: v1\nkind: Pod\nspec:\n  nodeSelector:\n    disk: none\n")
    conf = {
        "kubernetes.container.image": "registry.example.org/lockstep:1.0",
        "kubernetes.namespace": NAMESPACE,
        "kubernetes.driver.pod.name": DRIVER,
        "kubernetes.authenticate.executor.serviceAccountName": "lockstep-executor",
        "kubernetes.executor.podTemplateFile": str(template),
        "executor.cores": "2",
        "driver.host": "127.0.0.1",
        "driver.port": "0",
        "driver.blockManager.port": "0",
    }
    with api_server() as api:
        file = two_cluster_file(
            tmp_path,
            ("a", "127.0.0.1:1"),  # Spark starts whether the clusters can be reached or not
            ("b", "127.0.0.1:1"),
            "a->b.enabled = true",
            "a->b.tasks.max = 3",
            f"lockstep.spark.master = k8s://http://127.0.0.1:{api.port}",
            *(f"lockstep.spark.conf.spark.{key} = {value}" for key, value in conf.items()),
        )
        with ServiceProcess("lockstep_data_plane", file, "a->b") as service:
            wait_until(lambda: len(api.pods) >= 2 or not service.running, within=120, what="Spark asks for pods")
            assert service.running, service.text()
            assert service.stop() == 0
    assert api.used <= rights_of_the_driver(), "Spark asks for nothing that the Role does not allow"
    assert ("create", "pods") in api.used
    pod = api.pods[0]
    (container,) = pod["spec"]["containers"]
    assert container["image"] == conf["kubernetes.container.image"]
    assert container["resources"]["requests"]["cpu"] == "2"
    variables = {one["name"]: one.get("value", "") for one in container["env"]}
    assert "@127.0.0.1:" in variables["SPARK_DRIVER_URL"], (
        "spark.driver.host, not the address that the driver is bound to"
    )
    assert container["resources"]["limits"]["memory"] == f"{512 + 2 * 512}Mi", "the JVM, and Python for two slots"
    assert pod["spec"]["serviceAccountName"] == "lockstep-executor"
    assert pod["spec"]["nodeSelector"]["disk"] == "none"
    assert [owner["name"] for owner in pod["metadata"]["ownerReferences"]] == [DRIVER]
    assert len({pod["metadata"]["name"] for pod in api.pods}) == 2, "three slots on pods of two cores"
