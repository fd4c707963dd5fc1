"""The life of a release on a real Kubernetes, in the order in which it happens: each test goes on where the one before
it ended, so `make e2e` ends with the first that fails."""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.kube.conftest import Stage
from tests.kube.course import copied, pauses, say
from tests.kube.kubernetes import COMPONENTS, CommandFailed, Namespace, is_ready, name_of, run
from tests.kube.prometheus import Prometheus
from tests.kube.resource import mirror_maker
from tests.kube.usage import MEBIBYTE, usage_of
from tests.support.clusters import Record, commit_offset, committed_offset, create_topic, end_offsets, produce
from tests.support.eventually import wait_until
from tests.support.traffic import Traffic
from tests.support.watched import RULES, dashboard, expressions, filled_in

RELEASE, FLOW, ENCODED_FLOW = "mirror", "a->b", "a-%3Eb"
ORDERS, PAYMENTS, AFTER_THE_KILL = "orders", "payments", "orders-after-the-kill"
BURST, BURST_RECORDS = "orders-burst", 150_000
FIRST_RECORD_WITHIN = 60.0  # seconds from `helm install` on
CONTROL_BELOW = 55 * MEBIBYTE  # 48 and 49 are usual; who reads a file of the image first is charged with its pages too
TAKEN_OVER_WITHIN = 60.0  # seconds; usual is 10, but the node has two cores for everything
LONGEST_PAUSE = 60.0  # seconds without a record while pods are exchanged
WITHOUT_SAMPLES = {
    "Offsets given up",
    "Quarantined",
    "Partitions that are halted, stuck or paused",
    "Checkpoint latency",
    "Differences between copies and sources",
    "Records not verified",
    "Verified until",
    "What prevents a switch",
    "Heartbeats from upstream",
    "Certificates",
}
"""Panels that show nothing where nothing is wrong, no group moves, no third cluster is upstream, TLS is not used and
copies are not verified."""

CONSOLE_TOKEN = "of-the-kubernetes-tests"
ASK_CONSOLE = """
import json, sys, urllib.error, urllib.request
address, path, token, body = sys.argv[1:]
headers = {"Content-Type": "application/json", "X-Lockstep-Request": "1"}
headers |= {"Authorization": "Bearer " + token} if token else {}
request = urllib.request.Request(address + path, body.encode() or None, headers)
try:
    with urllib.request.urlopen(request, timeout=30) as answer:
        status, content = answer.status, answer.read()
except urllib.error.HTTPError as refused:
    status, content = refused.code, refused.read()
print(json.dumps([status, json.loads(content)]))
"""
"""What a pod of the release runs to ask the console through its Service."""

pytestmark = pytest.mark.timeout(420)


def test_install_to_first_mirrored_record(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    create_topic(stage.source, ORDERS, partitions=2)
    create_topic(stage.source, PAYMENTS, partitions=1)
    produce(stage.source, ORDERS, [Record(key=b"%d" % i, value=b"early %d" % i, partition=i % 2) for i in range(500)])
    produce(stage.source, PAYMENTS, [Record(value=b"paid %d" % i, partition=0) for i in range(100)])
    began = time.monotonic()
    ready = stage.namespace.install("install", RELEASE, mirror_maker(stage.source, stage.target))
    wait_until(lambda: copied(stage, ORDERS) > 0, within=120, every=0.2, what="a record on the target")
    first = time.monotonic() - began
    say(capsys, f"helm install --wait: {ready:.1f} s; first mirrored record after {first:.1f} s")
    stage.mirrored.wait_copied(ORDERS)
    assert first < FIRST_RECORD_WITHIN


def test_every_pod_runs_as_restricted_asks(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    labels = run("kubectl", "get", "namespace", stage.namespace.name, "--output", "jsonpath={.metadata.labels}")
    assert '"pod-security.kubernetes.io/enforce":"restricted"' in labels
    for component in COMPONENTS:
        [pod] = stage.namespace.pods(component)
        assert is_ready(pod), component
        assert not any(container_status["restartCount"] for container_status in pod["status"]["containerStatuses"]), (
            component
        )
        assert pod["metadata"]["labels"]["team"] == "payments"
        printed = stage.namespace.kubectl(
            "exec", name_of(pod), "--", "sh", "-c", "id -u; id -un; touch /x 2>&1 || true"
        )
        assert printed.split()[:2] == ["10001", "lockstep"]
        assert "Read-only file system" in printed
    [pod] = stage.namespace.pods("data-plane")
    rack = stage.namespace.kubectl("exec", name_of(pod), "--", "cat", "/etc/lockstep/rack/rack.properties")
    assert rack.strip() == f"rack={pod['spec']['nodeName']}"


def test_control_services_are_small(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    pods = {component: name_of(stage.namespace.pods(component)[0]) for component in COMPONENTS}
    before, began = {name: usage_of(stage.namespace, pod) for name, pod in pods.items()}, time.monotonic()
    time.sleep(10)
    for component, pod in pods.items():
        usage, lasted = usage_of(stage.namespace, pod), time.monotonic() - began
        cores = (usage.processor_s - before[component].processor_s) / lasted
        say(capsys, f"{component} at rest: {usage}, {cores * 1000:.0f}m of a core")
        assert component == "data-plane" or usage.own < CONTROL_BELOW, component


def test_groups_and_heartbeats_arrive(stage: Stage) -> None:
    commit_offset(stage.source, "readers", ORDERS, 0, 200)
    remote = stage.mirrored.remote(ORDERS)
    offset = wait_until(lambda: committed_offset(stage.target, "readers", remote, 0), within=60, every=1)
    assert offset == 200
    wait_until(lambda: sum(end_offsets(stage.target, "heartbeats").values()) > 0)


def test_helm_test_of_a_running_release_succeeds(stage: Stage) -> None:
    said = stage.namespace.helm("test", RELEASE, within=120)
    assert "Phase:          Succeeded" in said


def test_other_pod_leads_after_the_acting_one_is_killed(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    values = mirror_maker(stage.source, stage.target)
    more = f"services.topicSync.replicas=2,helmTest.canaryTopic={AFTER_THE_KILL}"
    stage.namespace.install("upgrade", RELEASE, values, "--set", more)
    stage.namespace.wait_ready("topic-sync", 2)
    acting = wait_until(lambda: stage.namespace.acting("topic-sync", FLOW), within=60, what="one acts")
    began = time.monotonic()
    stage.namespace.kill(acting)
    create_topic(stage.source, AFTER_THE_KILL)
    produce(stage.source, AFTER_THE_KILL, [Record(value=b"1", partition=0)])
    stage.mirrored.wait_copied(AFTER_THE_KILL, within=TAKEN_OVER_WITHIN)
    say(capsys, f"acting topic-sync killed: a new topic's record mirrored {time.monotonic() - began:.1f} s later")
    assert wait_until(lambda: stage.namespace.acting("topic-sync", FLOW), within=60) != acting
    stage.namespace.wait_ready("topic-sync", 2)


def test_memory_of_the_data_plane_while_it_catches_up(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    """Slots fill what they may hold in flight while there is more to copy than they can write."""
    [pod] = stage.namespace.pods("data-plane")
    create_topic(stage.source, BURST, partitions=4)
    began = time.monotonic()
    block = os.urandom(1000)
    records = (Record(value=b"%d " % n + block, partition=n % 4) for n in range(BURST_RECORDS))
    produce(stage.source, BURST, records)
    used = [usage_of(stage.namespace, name_of(pod))]

    def whole() -> bool:
        used.append(usage_of(stage.namespace, name_of(pod)))
        return copied(stage, BURST) >= BURST_RECORDS

    wait_until(whole, within=120, every=0.2, what="everything is copied")
    most = max(used, key=lambda usage: usage.working)
    say(capsys, f"data-plane while it copies {BURST_RECORDS // 1000} MB: {most}, in {time.monotonic() - began:.0f} s")


def test_a_canary_goes_through_where_one_is_asked_for(stage: Stage) -> None:
    said = stage.namespace.helm("test", RELEASE, within=120)
    assert "Phase:          Succeeded" in said
    assert sum(end_offsets(stage.source, AFTER_THE_KILL).values()) == 2
    stage.mirrored.wait_copied(AFTER_THE_KILL)


def test_killed_under_load_the_data_plane_loses_and_doubles_nothing(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    [pod] = stage.namespace.pods("data-plane")
    with Traffic(stage.source, ORDERS, partitions=2, rate=400) as traffic:
        traffic.wait_for_more(2000)
        say(capsys, f"data-plane under load: {usage_of(stage.namespace, name_of(pod))}")
        with pauses(stage, ORDERS) as pause:
            stage.namespace.kill(name_of(pod))
            traffic.wait_for_more(2000)
            stage.namespace.wait_ready("data-plane")
            traffic.wait_for_more(400)
    records = stage.mirrored.wait_copied(ORDERS)
    say(capsys, f"data-plane killed under load: {len(records)} records, 0 lost, 0 doubled; pause {pause}")


def test_an_upgrade_adds_topics_and_the_rest_keeps_flowing(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    assert stage.mirrored.mirrored(PAYMENTS) is None
    values = mirror_maker(stage.source, stage.target, topics=f"{ORDERS}.*|{PAYMENTS}")
    with Traffic(stage.source, ORDERS, partitions=2, rate=200) as traffic, pauses(stage, ORDERS) as pause:
        seconds = stage.namespace.install("upgrade", RELEASE, values)
        stage.mirrored.wait_copied(PAYMENTS)
        traffic.wait_for_more(200)
    stage.mirrored.wait_copied(ORDERS)
    say(capsys, f"helm upgrade --wait: {seconds:.1f} s; longest pause {pause}")
    assert pause.longest < LONGEST_PAUSE


def test_prometheus_finds_what_rules_and_dashboard_ask_for(
    stage: Stage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not stage.in_lab:
        pytest.skip("Prometheus runs beside the pods, which a cluster elsewhere does not let it reach")
    [monitor] = stage.namespace.get("podmonitors")
    with (
        Traffic(stage.source, ORDERS, partitions=2, rate=200) as traffic,
        Prometheus(tmp_path, monitor, stage.namespace.pods(), RULES) as prometheus,
    ):

        def scraped() -> bool:
            targets = prometheus.targets()
            assert len(targets) == len(COMPONENTS), [target["labels"] for target in targets]
            assert all(target["health"] == "up" for target in targets), [target["lastError"] for target in targets]
            return True

        wait_until(scraped, within=60, every=1, what="every service's pod is scraped")
        traffic.wait_for_more(4000)  # for rates there have to be some scrapes
        rules = wait_until(lambda: evaluated(prometheus), within=60, every=1, what="every rule is evaluated")
        firing = [rule["name"] for rule in rules if rule["state"] != "inactive"]
        empty = [title for title, query in expressions(dashboard()) if not prometheus.query(filled_in(query))]
        strimzis = prometheus.query('kafka_consumer_fetch_manager_records_lag{strimzi_io_kind="KafkaMirrorMaker2"}')
        expression_count = sum(1 for _ in expressions(dashboard()))
    say(capsys, f"Prometheus: {len(rules)} rules evaluated, {expression_count} queries asked, without samples: {empty}")
    assert firing == [], "nothing is wrong"
    assert strimzis, "Strimzi's dashboard selects by its own labels"
    assert set(empty) <= WITHOUT_SAMPLES


def test_slots_in_executors(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    values = mirror_maker(stage.source, stage.target, topics=f"{ORDERS}.*|{PAYMENTS}")
    with Traffic(stage.source, ORDERS, partitions=2, rate=200) as traffic:
        stage.namespace.install("upgrade", RELEASE, values, "--set", "dataPlane.executors=1")
        [executor] = wait_until(lambda: running(stage.namespace, "executor"), within=120, what="an executor")
        began = end_offsets(stage.target, stage.mirrored.remote(ORDERS))
        wait_until(lambda: end_offsets(stage.target, stage.mirrored.remote(ORDERS)) != began, within=120)
        traffic.wait_for_more(400)
    stage.mirrored.wait_copied(ORDERS)
    [owner] = executor["metadata"]["ownerReferences"]
    assert owner["name"] == name_of(stage.namespace.pods("data-plane")[0])
    say(capsys, f"executor: {usage_of(stage.namespace, name_of(executor))}")
    [driver] = stage.namespace.pods("data-plane")
    say(capsys, f"driver beside it: {usage_of(stage.namespace, name_of(driver))}")


def test_rollback_of_a_release_copies_what_is_new(stage: Stage) -> None:
    stage.namespace.helm("rollback", RELEASE, "3", "--wait")
    wait_until(lambda: not stage.namespace.pods("executor"), within=60, what="the executor goes with its driver")
    stage.namespace.wait_ready("data-plane")
    produce(stage.source, ORDERS, [Record(value=b"late", partition=0)])
    produce(stage.source, PAYMENTS, [Record(value=b"late", partition=0)])
    stage.mirrored.wait_copied(ORDERS)
    stage.mirrored.wait_copied(PAYMENTS)


def test_console_reads_and_acts_through_its_service(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    secret = ("create", "secret", "generic", "console", f"--from-literal=token={CONSOLE_TOKEN}")
    stage.namespace.kubectl(*secret)
    values = mirror_maker(stage.source, stage.target, topics=f"{ORDERS}.*|{PAYMENTS}")
    credentials = "metrics.podMonitor.authorization.credentials"
    console = (
        f"console.enabled=true,console.tokenSecret.name=console,{credentials}.name=console,{credentials}.key=token"
    )
    stage.namespace.install("upgrade", RELEASE, values, "--set", console)
    [pod] = stage.namespace.wait_ready("console")
    assert ask_console(stage, "/flows", token="")[0] == 401

    def is_read() -> bool:
        status, body = ask_console(stage, "/flows")
        assert (status, [flow["flow"] for flow in body["flows"]]) == (200, [FLOW])
        assert body["flows"][0]["fine"], body["flows"][0]
        return True

    wait_until(is_read, within=60, every=1, what="the console says that the flow is fine")
    say(capsys, f"console that was asked: {usage_of(stage.namespace, name_of(pod))}")

    pause = {"verb": "pause", "subject": f"topic:{ORDERS}"}
    status, asked = ask_console(stage, f"/flows/{ENCODED_FLOW}/commands", body=pause)
    assert status == 202, asked
    stage.namespace.kill(name_of(pod))
    stage.namespace.wait_ready("console")

    def is_done() -> bool:
        _, outcome = ask_console(stage, f"/flows/{ENCODED_FLOW}/commands/{asked['id']}")
        assert outcome["phase"] == "done", outcome
        return True

    wait_until(is_done, within=60, every=1, what="the console after the killed one shows what came of the command")
    before = copied(stage, ORDERS)
    produce(stage.source, ORDERS, [Record(value=b"while it is paused", partition=0)])
    produce(stage.source, PAYMENTS, [Record(value=b"while the other is paused", partition=0)])
    stage.mirrored.wait_copied(PAYMENTS)
    assert copied(stage, ORDERS) == before
    assert ask_console(stage, f"/flows/{ENCODED_FLOW}/commands", body={**pause, "verb": "resume"})[0] == 202
    stage.mirrored.wait_copied(ORDERS)
    stage.namespace.kubectl("delete", "secret", "console")


def test_upgrade_that_config_check_refuses_changes_nothing(stage: Stage) -> None:
    values = mirror_maker(stage.source, stage.target)
    config = values["spec"]["mirrors"][0]["sourceConnector"]["config"]
    before = {name_of(pod): pod["metadata"]["uid"] for pod in stage.namespace.pods()}
    config["replication.policy.class"] = "com.example.OwnPolicy"
    with pytest.raises(CommandFailed, match="pre-upgrade hooks failed"):
        stage.namespace.install("upgrade", RELEASE, values)
    said = stage.namespace.kubectl("logs", "--selector", "app.kubernetes.io/component=check", "--tail", "-1")
    assert "com.example.OwnPolicy" in said
    pod_ids = {name_of(pod): pod["metadata"]["uid"] for pod in stage.namespace.pods()}
    assert pod_ids.items() >= before.items(), "every pod goes on"
    del config["replication.policy.class"]
    stage.namespace.install("upgrade", RELEASE, values)
    assert not stage.namespace.get("jobs"), "what the refused upgrade left goes with the next one"


def test_uninstall_leaves_nothing_but_topics(stage: Stage) -> None:
    stage.namespace.helm("uninstall", RELEASE, "--wait")
    wait_until(lambda: stage.namespace.left() == [], within=60, every=0.5, what="nothing left")
    whole = run("kubectl", "get", "clusterrole,clusterrolebinding", "-l", f"app.kubernetes.io/instance={RELEASE}")
    assert whole.strip() in ("", "No resources found")
    stage.mirrored.wait_copied(ORDERS)


def test_pod_names_the_secret_it_waits_for(stage: Stage) -> None:
    values: dict[str, Any] = mirror_maker(stage.source, stage.target, name="waiting")
    secret = {"secretName": "not-there", "password": "password"}
    values["spec"]["clusters"][0]["authentication"] = {"type": "plain", "username": "u", "passwordSecret": secret}
    stage.namespace.install("install", "waiting", values, wait=False)

    def names_the_secret() -> bool:
        events = stage.namespace.get("events")
        about = [event["message"] for event in events if event["involvedObject"]["name"].startswith("waiting")]
        assert any('secret "not-there" not found' in message for message in about), about[-5:]
        return True

    try:
        wait_until(names_the_secret, within=60, every=1, what="the pods' events name the secret")
    finally:
        stage.namespace.helm("uninstall", "waiting", "--wait")
        wait_until(lambda: stage.namespace.left() == [], within=60, every=0.5, what="nothing left")


# -- what the cluster and Prometheus show ------------------------------------------------------------------------------


def evaluated(prometheus: Prometheus) -> list[Mapping[str, Any]]:
    """Return every rule, once all were evaluated."""
    rules = list(prometheus.rules())
    assert rules
    assert all(rule["health"] == "ok" for rule in rules), [(rule["name"], rule.get("lastError")) for rule in rules]
    return rules


def ask_console(
    stage: Stage, path: str, *, token: str = CONSOLE_TOKEN, body: Mapping[str, Any] | None = None
) -> tuple[int, Any]:
    """Return the status and the body of an answer of the console to another pod."""
    [pod] = stage.namespace.pods("heartbeat")
    address = f"http://{RELEASE}-console:9405/api/v1"
    sent = "" if body is None else json.dumps(body)
    printed = stage.namespace.kubectl(
        "exec", name_of(pod), "--", "python3", "-c", ASK_CONSOLE, address, path, token, sent
    )
    status, answer = json.loads(printed)
    return status, answer


def running(namespace: Namespace, component: str) -> list[Any]:
    return [pod for pod in namespace.pods(component) if is_ready(pod)]
