"""kubectl and helm as subprocesses, and what a namespace holds."""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.support.eventually import wait_until

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "lockstep"
COMPONENTS = ("topic-sync", "heartbeat", "checkpoint", "acl-sync", "data-plane")
RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
WHAT_THERE_IS_ANYWAY = {"configmap/kube-root-ca.crt", "serviceaccount/default"}
KINDS = "all,configmap,secret,serviceaccount,role,rolebinding,poddisruptionbudget,networkpolicy,persistentvolumeclaim"

Object = Mapping[str, Any]


class CommandFailed(AssertionError):
    """kubectl or helm ended with an error; the message is what it said. An AssertionError: waits go on."""


def run(*command: str, given: str | None = None, within: float = 60.0) -> str:
    """Run a command. Return what it prints. Raises CommandFailed."""
    ended = subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=within)
    if ended.returncode:
        said = (ended.stderr or ended.stdout).strip()
        raise CommandFailed(f"{' '.join(command[:6])} ended with {ended.returncode}: {said[-3000:]}")
    return ended.stdout


@contextmanager
def applied(document: Object) -> Iterator[None]:
    """Apply an object, and delete it at the end."""
    text = json.dumps(document)
    run("kubectl", "apply", "-f", "-", given=text)
    try:
        yield
    finally:
        run("kubectl", "delete", "--ignore-not-found", "--wait=false", "-f", "-", given=text)


def pods_of(pods: Sequence[Object], component: str) -> list[Object]:
    """Return the pods of a service."""
    return [pod for pod in pods if pod["metadata"]["labels"].get("app.kubernetes.io/component") == component]


class Namespace:
    """A namespace under Pod Security's `restricted`, and what helm does in it."""

    def __init__(self, name: str, values: Sequence[str]) -> None:
        """`values`: what every installation is given beside its values file, as helm's --set."""
        self.name = name
        self._values = [word for value in values for word in ("--set", value)]

    @contextmanager
    def made(self) -> Iterator["Namespace"]:
        with applied(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name, "labels": dict(RESTRICTED)}}
        ):
            yield self

    def kubectl(self, *words: str, within: float = 60.0, given: str | None = None) -> str:
        return run("kubectl", "--namespace", self.name, *words, within=within, given=given)

    def helm(self, verb: str, *words: str, within: float = 300.0) -> str:
        return run("helm", verb, "--namespace", self.name, *words, "--timeout", f"{within:.0f}s", within=within + 30)

    def install(self, verb: str, release: str, values: Object, *words: str, wait: bool = True) -> float:
        """Run helm install or upgrade. Return how many seconds it took."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump(dict(values), file)
            file.flush()
            began = time.monotonic()
            waiting = ["--wait"] if wait else []
            self.helm(verb, release, str(CHART), "--values", file.name, *self._values, *waiting, *words)
            return time.monotonic() - began

    def get(self, what: str, *words: str) -> list[Object]:
        """Return the objects of a kind."""
        objects: list[Object] = json.loads(self.kubectl("get", what, *words, "--output", "json"))["items"]
        return objects

    def pods(self, component: str | None = None) -> list[Object]:
        """Return the pods that are there and are not about to go."""
        pods = [pod for pod in self.get("pods") if "deletionTimestamp" not in pod["metadata"]]
        return pods if component is None else pods_of(pods, component)

    def page(self, pod: str, path: str) -> str:
        """Return a page of a service, through the API server."""
        return run("kubectl", "get", "--raw", f"/api/v1/namespaces/{self.name}/pods/{pod}:9404/proxy{path}")

    def status(self, pod: str, flow: str) -> Mapping[str, Any]:
        """Return what a service says about a flow."""
        flow_status: Mapping[str, Any] = json.loads(self.page(pod, "/status"))["flows"][flow]
        return flow_status

    def acting(self, component: str, flow: str) -> str:
        """Return the name of the pod that acts in the flow. Raises AssertionError while none does."""
        acting_pods = [name for name in map(name_of, self.pods(component)) if self.status(name, flow)["acting"]]
        assert len(acting_pods) == 1, f"{component}: {acting_pods} act"
        return acting_pods[0]

    def kill(self, pod: str) -> None:
        """End a pod as a node that is lost does: at once, without a word."""
        self.kubectl("delete", "pod", pod, "--grace-period=0", "--force", "--wait=false")

    def wait_ready(self, component: str, replicas: int = 1, within: float = 120.0) -> list[Object]:
        """Return the pods of a service, once there are so many and all are ready."""

        def ready() -> list[Object]:
            pods = self.pods(component)
            assert len(pods) == replicas, [name_of(pod) for pod in pods]
            assert all(is_ready(pod) for pod in pods), [unready.get("status") for unready in pods]
            return pods

        return wait_until(ready, within=within, every=0.5, what=f"{replicas} ready pods of {component}")

    def left(self) -> list[str]:
        """Return the names of all objects but those that every namespace has."""
        kinds = run("kubectl", "api-resources", "--api-group=monitoring.coreos.com", "--output", "name").split()
        names = self.kubectl("get", ",".join([KINDS, *kinds]), "--output", "name").split()
        return sorted(set(names) - WHAT_THERE_IS_ANYWAY)

    def describe(self) -> str:
        """Return everything that helps to understand what went wrong: pods, events, the ends of the logs."""
        parts = [self.kubectl("get", "pods", "--output", "wide")]
        parts.append(self.kubectl("get", "events", "--sort-by=.lastTimestamp")[-6000:])
        for pod in map(name_of, self.get("pods")):
            for previous in ([], ["--previous"]):
                try:
                    parts.append(f"--- {pod} {previous}\n{self.kubectl('logs', pod, '--tail=40', *previous)}")
                except CommandFailed as failed:
                    parts.append(f"--- {pod} {previous}: {failed}" if not previous else "")
        return "\n".join(parts)


def name_of(pod: Object) -> str:
    return str(pod["metadata"]["name"])


def is_ready(pod: Object) -> bool:
    """Return whether a pod is ready."""
    conditions = pod.get("status", {}).get("conditions", ())
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def environment(name: str) -> str | None:
    """Return a variable that says where something is, where the cluster is not ours."""
    return os.environ.get(name) or None
