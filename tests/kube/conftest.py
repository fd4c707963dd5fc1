"""Two brokers beside the cluster, or those that the environment names, and a namespace for the chart."""

import os
import uuid
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from lockstep_state.names import Flow
from tests.kube import images
from tests.kube.kubernetes import CommandFailed, Namespace, environment, run
from tests.support.broker import Broker, started
from tests.support.kubelab import KIT
from tests.support.mirror import MirroredFlow

GROUP = "mirrormaker2-cluster"
"""The name of a flow's instance, where a Strimzi resource does not say another."""
HOST = "host.kubelab"
"""What pods of the lab call the place where the tests run."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the tests play: the clusters `a` and `b`, as pods and tests reach them, and the namespace."""

    source: str
    target: str
    namespace: Namespace
    in_lab: bool

    @property
    def mirrored(self) -> MirroredFlow:
        return MirroredFlow(Flow("a", "b"), self.source, self.target, GROUP)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests where there is no cluster. `make e2e` has one."""
    for item in items:
        if item.path.parent.name == "kube":
            item.add_marker(pytest.mark.kube)


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    in_lab = "KUBELAB_RUN" in os.environ
    repository = environment("LOCKSTEP_E2E_REPOSITORY") or images.REPOSITORY
    tag = environment("LOCKSTEP_E2E_TAG") or images.TAG
    values = [f"images.registry={repository}", f"images.tag={tag}"]
    with ExitStack() as stack:
        if in_lab:
            a, b = (Broker(alias, host=HOST, authorizer=True, heap="256m") for alias in ("a", "b"))
            stack.enter_context(started(a, b))
            source, target = a.bootstrap, b.bootstrap
            run("kubectl", "create", "-f", str(KIT / "crds"))
            run("kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
            values += ["metrics.podMonitor.enabled=true", "alerts.enabled=true", "dashboards.enabled=true"]
        else:
            source, target = (os.environ[f"LOCKSTEP_E2E_{end}"] for end in ("SOURCE", "TARGET"))
        namespace = Namespace(f"lockstep-e2e-{uuid.uuid4().hex[:6]}", values)
        stack.enter_context(namespace.made())
        yield Stage(source, target, namespace, in_lab)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Let a test that failed tell what the cluster looked like."""
    report = yield
    if report.failed and (stage := getattr(item, "funcargs", {}).get("stage")) is not None:
        try:
            report.sections.append(("the namespace", stage.namespace.describe()))
        except CommandFailed as failed:
            report.sections.append(("the namespace", str(failed)))
    return report
