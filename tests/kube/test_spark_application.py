"""The data plane as a SparkApplication, under the Apache Spark operator itself, which runs beside the cluster. Each
test goes on where the one before it ended."""

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kube.conftest import Stage
from tests.kube.course import pauses, say
from tests.kube.kubernetes import is_ready, name_of, run
from tests.kube.resource import mirror_maker
from tests.support import spark_operator
from tests.support.clusters import create_topic
from tests.support.eventually import wait_until
from tests.support.traffic import Traffic

RELEASE, NAME, FLOW, ORDERS = "operated", "operated", "a->b", "operated-orders"
APPLICATIONS = "sparkapplications.spark.apache.org"
OPERATED = ("--set", "dataPlane.executors=1,dataPlane.sparkApplication.enabled=true")
ANOTHER_SETTING = ("--set-string", r"settings.lockstep\.spark\.conf\.spark\.network\.timeout=100s")
LONGEST_PAUSE = 90.0  # seconds; usual is 20 to 30, for the operator looks at most five times in 15 s

pytestmark = [
    pytest.mark.timeout(420),
    pytest.mark.skipif(not spark_operator.built(), reason=spark_operator.WHY),
]


@pytest.fixture(scope="module")
def operator(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the operator, and its log."""
    if not stage.in_lab:
        pytest.skip("the operator is run beside a cluster of the tests' own only")
    run("kubectl", "create", "-f", str(spark_operator.CRDS))
    # They are of more than a megabyte each, which takes an API server on two cores some time.
    run("kubectl", "wait", "--for=condition=Established", "crd", "--all", "--timeout=120s", within=130)
    with spark_operator.running(stage.namespace.name, tmp_path_factory.mktemp("operator")) as log:
        yield log


def values(stage: Stage) -> dict[str, Any]:
    return mirror_maker(stage.source, stage.target, topics=f"{ORDERS}.*", name=NAME)


def application(stage: Stage) -> dict[str, Any]:
    """Return the only SparkApplication. Raises AssertionError while there are several."""
    applications = stage.namespace.get(APPLICATIONS)
    assert len(applications) == 1, [name_of(resource) for resource in applications]
    return dict(applications[0])


def state(stage: Stage) -> str:
    said: str = application(stage).get("status", {}).get("currentState", {}).get("currentStateSummary", "")
    return said


def healthy(stage: Stage) -> dict[str, Any]:
    """Return the driver's pod, once the operator calls its application healthy, which takes an executor."""

    def healthy_driver() -> dict[str, Any]:
        assert state(stage) == "RunningHealthy", state(stage)
        [driver] = stage.namespace.pods("data-plane")
        assert is_ready(driver)
        return dict(driver)

    return wait_until(healthy_driver, within=150, every=0.5, what="the application runs well")


def test_the_operator_makes_what_copies(stage: Stage, operator: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create_topic(stage.source, ORDERS, partitions=2)
    with Traffic(stage.source, ORDERS, partitions=2, rate=200) as traffic:
        seconds = stage.namespace.install("install", RELEASE, values(stage), *OPERATED)
        driver = healthy(stage)
        traffic.wait_for_more(400)
    records = stage.mirrored.wait_copied(ORDERS)
    say(capsys, f"helm install --wait of a SparkApplication: {seconds:.1f} s; {len(records)} records compared")
    assert not stage.namespace.get("statefulsets")
    [owner] = driver["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("SparkApplication", name_of(application(stage)))
    [executor] = stage.namespace.pods("executor")
    [owner] = executor["metadata"]["ownerReferences"]
    assert owner["name"] == name_of(driver)
    assert executor["metadata"]["labels"]["spark.operator/spark-app-name"] == name_of(application(stage))
    rack = stage.namespace.kubectl("exec", name_of(driver), "--", "cat", "/etc/lockstep/rack/rack.properties")
    assert rack.strip() == f"rack={driver['spec']['nodeName']}"
    assert stage.namespace.page(name_of(driver), "/metrics")
    assert "Succeeded" in stage.namespace.helm("test", RELEASE, within=120)


def test_killed_driver_is_created_anew_without_loss_or_doubles(
    stage: Stage, operator: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = healthy(stage)
    with Traffic(stage.source, ORDERS, partitions=2, rate=200) as traffic, pauses(stage, ORDERS) as pause:
        traffic.wait_for_more(400)
        stage.namespace.kill(name_of(before))
        wait_until(lambda: another_than(stage, before), within=120, every=0.5, what="another driver")
        healthy(stage)
        traffic.wait_for_more(1000)
    records = stage.mirrored.wait_copied(ORDERS)
    say(capsys, f"driver killed under load: {len(records)} records, 0 lost, 0 doubled; pause {pause}")
    assert pause.longest < LONGEST_PAUSE


def test_a_changed_setting_is_a_new_application_and_the_old_one_drains(
    stage: Stage, operator: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, before = name_of(application(stage)), healthy(stage)
    said: list[str] = []
    listening = threading.Thread(target=listen, args=(stage, name_of(before), said), daemon=True)
    listening.start()
    with Traffic(stage.source, ORDERS, partitions=2, rate=200) as traffic, pauses(stage, ORDERS) as pause:
        traffic.wait_for_more(200)
        stage.namespace.install("upgrade", RELEASE, values(stage), *OPERATED, *ANOTHER_SETTING)
        wait_until(lambda: application(stage), within=60, every=0.5, what="the old application is gone")
        after = healthy(stage)
        traffic.wait_for_more(400)
    stage.mirrored.wait_copied(ORDERS)
    listening.join(30)
    say(capsys, f"helm upgrade with another setting: pause {pause}; the old driver's last words: {said[-1:]}")
    assert name_of(application(stage)) != old
    assert name_of(after) != name_of(before)
    assert any("ended" in line for line in said[-3:]), said[-10:]
    assert not any("before everything was drained" in line for line in said)
    assert pause.longest < LONGEST_PAUSE


def test_standby_is_another_application_and_leads_after_the_first(
    stage: Stage, operator: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = name_of(application(stage))
    stage.namespace.install("upgrade", RELEASE, values(stage), *OPERATED, "--set", "services.dataPlane.replicas=2")
    wait_until(lambda: gone(stage, before), within=60, every=0.5, what="the old application is gone")
    stage.namespace.wait_ready("data-plane", 2, within=150)
    stage.namespace.wait_ready("executor", 2, within=150)
    assert len(stage.namespace.get(APPLICATIONS)) == 2
    [budget] = [
        disruption_budget
        for disruption_budget in stage.namespace.get("poddisruptionbudgets")
        if "data-plane" in name_of(disruption_budget)
    ]
    wait_until(lambda: may_be_evicted(stage, name_of(budget)) == 1, every=0.5, what="one may be evicted")
    acting = wait_until(lambda: stage.namespace.acting("data-plane", FLOW), within=60, every=0.5, what="one acts")
    with Traffic(stage.source, ORDERS, partitions=2, rate=200) as traffic, pauses(stage, ORDERS) as pause:
        traffic.wait_for_more(400)
        stage.namespace.kill(acting)
        traffic.wait_for_more(2000)
    records = stage.mirrored.wait_copied(ORDERS)
    say(capsys, f"acting driver killed, another stands by: {len(records)} records, 0 lost, 0 doubled; pause {pause}")
    assert wait_until(lambda: stage.namespace.acting("data-plane", FLOW), within=60, every=0.5) != acting


def test_uninstall_leaves_nothing_but_topics(stage: Stage, operator: Path) -> None:
    stage.namespace.helm("uninstall", RELEASE, "--wait")
    wait_until(lambda: stage.namespace.left() == [], within=60, every=0.5, what="nothing left")
    wait_until(lambda: stage.namespace.get(APPLICATIONS) == [], within=60, every=0.5, what="no application left")
    stage.mirrored.wait_copied(ORDERS)


def another_than(stage: Stage, before: dict[str, Any]) -> bool:
    drivers = [name_of(pod) for pod in stage.namespace.pods("data-plane")]
    assert drivers
    assert name_of(before) not in drivers, drivers
    return True


def gone(stage: Stage, name: str) -> bool:
    assert name not in [name_of(resource) for resource in stage.namespace.get(APPLICATIONS)]
    return True


def may_be_evicted(stage: Stage, budget: str) -> int:
    [disrupted] = [resource for resource in stage.namespace.get("poddisruptionbudgets") if name_of(resource) == budget]
    allowed: int = disrupted["status"]["disruptionsAllowed"]
    return allowed


def listen(stage: Stage, pod: str, said: list[str]) -> None:
    """Keep what a pod says from now on, until it ends."""
    command = ["kubectl", "--namespace", stage.namespace.name, "logs", "--follow", "--tail=1", pod]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    said += ran.stdout.splitlines()
