"""The chart as Helm renders it, without a cluster."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.kubelab import WHY_HELM, WHY_TOOLS, helm, tools

REPOSITORY = Path(__file__).resolve().parents[2]
CHART = REPOSITORY / "deploy" / "helm" / "lockstep"
GOLDEN = Path(__file__).resolve().parent / "golden"
RELEASE, NAMESPACE = "mirror", "kafka"
SEEDS: tuple[Path, ...] = tuple(
    file
    for file in sorted((REPOSITORY / "tests" / "seeds").glob("*.yaml"))
    if not file.stem.endswith(("-cluster", "-user"))  # for Strimzi's other operators
)

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
NEEDS_TOOLS = pytest.mark.skipif(tools() is None, reason=WHY_TOOLS)
NEEDS_PINNED_HELM = pytest.mark.skipif(helm() is None, reason=WHY_HELM)
"""For what depends on the version of Helm and on the Kubernetes that it renders for."""
NEEDS_HELM = pytest.mark.skipif(helm() is None and shutil.which("helm") is None, reason=WHY_HELM)
"""For what any Helm can do."""


def run(*command: str | Path, cwd: Path = REPOSITORY, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run one of the tools: the built one, else that on PATH. Nothing of it asks a cluster."""
    folder, path = helm(), os.environ["PATH"]
    environment = {**os.environ, "PATH": f"{folder}:{path}" if folder else path, "KUBECONFIG": "/dev/null"}
    return subprocess.run(
        command, cwd=cwd, env=environment, input=stdin, capture_output=True, text=True, check=False, timeout=120
    )


@dataclass(frozen=True, slots=True)
class Objects:
    """What Helm would apply: `text` as it prints it, `all` parsed."""

    text: str
    all: tuple[dict[str, Any], ...]

    def by_kind(self, kind: str) -> dict[str, dict[str, Any]]:
        """Return the objects of a kind, by name."""
        return {manifest["metadata"]["name"]: manifest for manifest in self.all if manifest["kind"] == kind}

    def workloads(self) -> list[dict[str, Any]]:
        return [*self.by_kind("Deployment").values(), *self.by_kind("StatefulSet").values()]

    def workload(self, service: str, flow: str = "") -> dict[str, Any]:
        """Return the only workload of a service, or that of a flow."""
        (only,) = (
            workload
            for workload in self.workloads()
            if workload["metadata"]["labels"]["app.kubernetes.io/component"] == service
            and flow in ("", workload["metadata"]["annotations"]["lockstep/flow"])
        )
        return only

    def config(self) -> dict[str, str]:
        """Return the files of the ConfigMap."""
        (settings,) = (config_map for name, config_map in self.by_kind("ConfigMap").items() if name.endswith("-config"))
        data: dict[str, str] = settings["data"]
        return data


def _template(values: tuple[Path | Mapping[str, Any], ...], sets: tuple[str, ...], chart: Path) -> list[str | Path]:
    command: list[str | Path] = ["helm", "template", RELEASE, chart, "--namespace", NAMESPACE]
    for given in values:
        if isinstance(given, Path):
            command += ["-f", given]
        else:
            command += [f"--set-json={key}={json.dumps(value)}" for key, value in given.items()]
    for pair in sets:
        command += ["--set", pair]
    return command


def rendered(*values: Path | Mapping[str, Any], sets: tuple[str, ...] = (), chart: Path = CHART) -> Objects:
    """Return the objects for values, each a file or a mapping of top-level keys; `sets` as Helm's --set."""
    return _rendered(tuple(_template(values, sets, chart)))


@cache
def _rendered(command: tuple[str | Path, ...]) -> Objects:
    ran = run(*command)
    assert ran.returncode == 0, ran.stderr
    return Objects(ran.stdout, tuple(document for document in yaml.load_all(ran.stdout, LOADER) if document))


def refused(*values: Path | Mapping[str, Any], sets: tuple[str, ...] = (), chart: Path = CHART) -> str:
    """Return what Helm says when it refuses these values. It must."""
    ran = run(*_template(values, sets, chart))
    assert ran.returncode != 0, "Helm took it"
    return ran.stderr
