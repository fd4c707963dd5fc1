"""Debian's Prometheus as a process beside the cluster: it scrapes the pods as the PodMonitor that the chart made tells
the Prometheus operator to, and evaluates the chart's alert rules."""

import json
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from tests.support.eventually import NeverHappened, wait_until
from tests.support.ports import free_port
from tests.support.processes import kill, spawn, tail

EVERY = "2s"
"""How often pods are scraped and rules evaluated: a test does not wait for the usual half minute."""

_RENAMED = {"sourceLabels": "source_labels", "targetLabel": "target_label"}


def scraping(monitor: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the scrape configuration that the Prometheus operator makes of a PodMonitor with one endpoint, for these
    pods. Debian's build has no discovery of its own for Kubernetes, so the targets bear the labels that it would
    find."""
    spec = monitor["spec"]
    [endpoint] = spec["podMetricsEndpoints"]
    wanted = [_kept("__meta_kubernetes_pod_container_port_name", endpoint["port"])]
    for label, value in spec["selector"].get("matchLabels", {}).items():
        wanted.append(_kept(f"__meta_kubernetes_pod_label_{_plain(label)}", value))
    for expression in spec["selector"].get("matchExpressions", ()):
        assert expression["operator"] == "In", expression
        wanted.append(_kept(f"__meta_kubernetes_pod_label_{_plain(expression['key'])}", "|".join(expression["values"])))
    shown = [
        {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
        {"source_labels": ["__meta_kubernetes_pod_name"], "target_label": "pod"},
        {"target_label": "job", "replacement": f"{monitor['metadata']['namespace']}/{monitor['metadata']['name']}"},
        {"target_label": "endpoint", "replacement": endpoint["port"]},
    ]
    relabelings = [
        {_RENAMED.get(key, key): value for key, value in relabeling.items()}
        for relabeling in endpoint.get("relabelings", ())
    ]
    names = spec["namespaceSelector"]["matchNames"]
    targets = [target for pod in pods if pod["metadata"]["namespace"] in names for target in _targets(pod)]
    return {
        "job_name": "pods",
        "metrics_path": endpoint["path"],
        "static_configs": targets,
        "relabel_configs": [*wanted, *shown, *relabelings],
    }


def _targets(pod: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a target for each port of a pod, as Prometheus' discovery has it."""
    metadata = pod["metadata"]
    labels = {f"pod_label_{_plain(name)}": value for name, value in metadata["labels"].items()}
    labels |= {"namespace": metadata["namespace"], "pod_name": metadata["name"]}
    labels["pod_node_name"] = pod["spec"]["nodeName"]
    for port in (port for container in pod["spec"]["containers"] for port in container.get("ports", ())):
        named = labels | {"pod_container_port_name": port.get("name", "")}
        yield {
            "targets": [f"{pod['status']['podIP']}:{port['containerPort']}"],
            "labels": {f"__meta_kubernetes_{name}": value for name, value in named.items()},
        }


class Prometheus:
    """A server that scrapes one PodMonitor's pods and evaluates rules; a context manager."""

    def __init__(
        self, folder: Path, monitor: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], rules: Path
    ) -> None:
        self._folder = folder
        self._port = free_port()
        configuration = {
            "global": {"scrape_interval": EVERY, "scrape_timeout": EVERY, "evaluation_interval": EVERY},
            "rule_files": [str(rules)],
            "scrape_configs": [scraping(monitor, pods)],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        self._log = folder / "prometheus.log"

    def __enter__(self) -> Self:
        command = ["prometheus", f"--config.file={self._folder}/prometheus.yml", "--log.level=warn"]
        command += [f"--storage.tsdb.path={self._folder}/data", f"--web.listen-address=127.0.0.1:{self._port}"]
        self._process = spawn(command, output=self._log)
        try:
            wait_until(self._ready, every=0.2, what="Prometheus is ready")
        except NeverHappened as late:
            raise NeverHappened(tail(self._log)) from late
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        kill(self._process)

    def asked(self, path: str, **parameters: str) -> Any:
        """Return `data` of an answer of its API. Raises HTTPError for a query that cannot be evaluated."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/api/v1/{path}?{query}", timeout=20) as answer:
            body: Mapping[str, Any] = json.load(answer)
        assert body["status"] == "success", body
        return body["data"]

    def query(self, expression: str) -> Sequence[Mapping[str, Any]]:
        """Return the samples of an expression now."""
        samples: Sequence[Mapping[str, Any]] = self.asked("query", query=expression)["result"]
        return samples

    def targets(self) -> Sequence[Mapping[str, Any]]:
        """Return what is scraped."""
        active: Sequence[Mapping[str, Any]] = self.asked("targets", state="active")["activeTargets"]
        return active

    def rules(self) -> Sequence[Mapping[str, Any]]:
        """Return every rule with its state and health."""
        return [rule for group in self.asked("rules")["groups"] for rule in group["rules"]]

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _plain(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", label)


def _kept(label: str, value: str) -> dict[str, Any]:
    return {"source_labels": [label], "regex": value, "action": "keep"}
