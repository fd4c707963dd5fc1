"""The console as a workload: off by default, one for all flows, and open to those alone who are named."""

import json
from typing import Any

import pytest

from lockstep_console.__main__ import main
from tests.chart.helm import CHART, NEEDS_PINNED_HELM, Objects, refused, rendered
from tests.chart.test_workloads import EVERYTHING, resource

pytestmark = NEEDS_PINNED_HELM

FLOWS = resource({"from": "A", "to": "B", **EVERYTHING}, {"from": "C", "to": "B", **EVERYTHING})
ON = {"console": {"enabled": True}}
WHOLE = CHART / "ci" / "console-values.yaml"
PROXY = {"podSelector": {"matchLabels": {"app": "oauth2-proxy"}}}
PROMETHEUS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
CONSOLE = {
    "app.kubernetes.io/name": "lockstep",
    "app.kubernetes.io/instance": "mirror",
    "app.kubernetes.io/component": "console",
}


def console(objects: Objects) -> dict[str, Any]:
    (workload,) = (each for name, each in objects.by_kind("Deployment").items() if name.endswith("-console"))
    return workload


def pod(objects: Objects) -> dict[str, Any]:
    spec: dict[str, Any] = console(objects)["spec"]["template"]["spec"]
    return spec


def container(objects: Objects) -> dict[str, Any]:
    only: dict[str, Any]
    (only,) = pod(objects)["containers"]
    return only


def parsed(arguments: list[str]) -> dict[str, Any]:
    """Return what the console's own command takes of its arguments."""
    with main.make_context("lockstep-console", list(arguments), resilient_parsing=True) as context:
        assert context.args == []
        return dict(context.params)


def test_console_is_off_by_default_and_changes_nothing_else() -> None:
    off, on = rendered(FLOWS), rendered(FLOWS, ON)
    assert "console" not in off.text
    names = {(each["kind"], each["metadata"]["name"]) for each in on.all}
    assert names - {(each["kind"], each["metadata"]["name"]) for each in off.all} == {
        (kind, "my-mirror-console") for kind in ("Deployment", "Service", "NetworkPolicy")
    }
    assert [each for each in off.workloads() if each not in on.workloads()] == []


def test_console_is_one_for_all_flows_and_nobody_acts_without_a_token() -> None:
    objects = rendered(FLOWS, ON)
    workload, only = console(objects), container(objects)
    assert workload["spec"]["replicas"] == 1
    assert workload["spec"]["selector"]["matchLabels"] == CONSOLE
    assert "lockstep/flow" not in workload["metadata"].get("annotations", {})
    assert only["image"].rpartition("/")[2].startswith("lockstep-console:")
    options = parsed(only["args"])
    assert (options["flows"], options["port"], options["trusted_header"]) == ((), 9404, "")
    assert options["anonymous_read"] is False
    assert not any("token" in word for word in only["args"])
    assert only["resources"]["limits"] == {"memory": "256Mi"}
    assert {only[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")} == {"/live", "/ready"}


def test_token_header_and_reading_are_given_to_the_command() -> None:
    objects = rendered(WHOLE)
    only = container(objects)
    options = parsed(only["args"])
    assert (options["trusted_header"], options["anonymous_read"]) == ("X-Forwarded-User", True)
    assert "--token-file=/etc/lockstep/console/token" in only["args"]
    mounts = {mount["name"]: mount for mount in only["volumeMounts"]}
    assert mounts["console-token"] == {
        "name": "console-token",
        "mountPath": "/etc/lockstep/console",
        "readOnly": True,
    }
    volumes = {volume["name"]: volume for volume in pod(objects)["volumes"]}
    assert volumes["console-token"]["secret"] == {
        "secretName": "shown-token",
        "defaultMode": 0o440,
        "items": [{"key": "acting", "path": "token"}],
    }
    assert only["resources"] == {"limits": {"memory": "300Mi"}}
    assert console(objects)["spec"]["template"]["metadata"]["labels"]["tier"] == "web"


def test_service_leads_to_the_console_alone() -> None:
    service = rendered(WHOLE).by_kind("Service")["shown-console"]
    assert service["spec"] == {
        "type": "ClusterIP",
        "selector": CONSOLE,
        "ports": [{"name": "http", "port": 80, "targetPort": "tcp-prometheus"}],
    }
    assert service["metadata"]["labels"]["team"] == "streams"
    assert service["metadata"]["annotations"]["note"] == "console"
    tls = rendered(FLOWS, ON, sets=("metrics.scheme=https",)).by_kind("Service")["my-mirror-console"]
    assert tls["spec"]["ports"][0]["name"] == "https"


def test_clients_and_who_scrapes_reach_the_console_and_nobody_else() -> None:
    policies = rendered(WHOLE).by_kind("NetworkPolicy")
    assert policies["shown-console"]["spec"]["podSelector"] == {"matchLabels": CONSOLE}
    assert policies["shown-console"]["spec"]["ingress"] == [
        {"ports": [{"port": 9404, "protocol": "TCP"}], "from": [PROXY, PROMETHEUS]}
    ]
    (expression,) = policies["shown"]["spec"]["podSelector"]["matchExpressions"]
    assert expression["values"] == ["executor", "console"], "or this policy would open it to whoever reaches the pages"
    open_to_all = rendered(FLOWS, ON).by_kind("NetworkPolicy")["my-mirror-console"]["spec"]["ingress"]
    assert open_to_all == [{"ports": [{"port": 9404, "protocol": "TCP"}]}]
    assert not rendered(FLOWS, ON, sets=("networkPolicy.enabled=false",)).by_kind("NetworkPolicy")


def test_console_is_scraped_as_every_service() -> None:
    monitor = rendered(WHOLE).by_kind("PodMonitor")["shown"]
    (expression,) = monitor["spec"]["selector"]["matchExpressions"]
    assert expression["values"] == ["topic-sync", "acl-sync", "checkpoint", "heartbeat", "data-plane", "console"]
    without = rendered(FLOWS, {"metrics": {"podMonitor": {"enabled": True}}}).by_kind("PodMonitor")["my-mirror"]
    assert "console" not in without["spec"]["selector"]["matchExpressions"][0]["values"]


def test_changed_patterns_start_the_console_anew() -> None:
    def checksum(**mirror: Any) -> str:
        objects = rendered(resource({"from": "A", "to": "B", **EVERYTHING, **mirror}), ON)
        return str(console(objects)["spec"]["template"]["metadata"]["annotations"]["checksum/config"])

    assert len({checksum(), checksum(topicsPattern="a.*"), checksum(groupsPattern="a.*")}) == 3


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"trustHeader": "X-User"}, "name the pods of the proxy that sets X-User in console.clients"),
        ({"anonymousRead": True}, "console.anonymousRead has no effect"),
        ({"trustHeader": "X User"}, "trustHeader"),
        ({"tokenSecret": {"name": "a", "key": ""}}, "tokenSecret"),
        ({"service": {"type": "ExternalName"}}, "service"),
        ({"url": "javascript:alert(1)"}, "url"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_values_that_open_too_much_or_mean_nothing_are_refused(values: dict[str, Any], words: str) -> None:
    assert words in refused(FLOWS, {"console": {"enabled": True, **values}})


def test_proxy_header_without_network_policies_is_the_users_to_guard() -> None:
    objects = rendered(
        FLOWS, {"console": {"enabled": True, "trustHeader": "X-User"}}, sets=("networkPolicy.enabled=false",)
    )
    assert parsed(container(objects)["args"])["trusted_header"] == "X-User"


def test_monitor_without_the_token_of_the_console_is_refused() -> None:
    console_values = {"enabled": True, "tokenSecret": {"name": "a"}}
    metrics = {"podMonitor": {"enabled": True}}
    said = refused(FLOWS, {"console": console_values, "metrics": metrics})
    assert "the pages of console require a token: set metrics.podMonitor.authorization" in said


def test_volume_with_the_name_of_the_token_is_refused() -> None:
    values = {"extraVolumes": [{"name": "console-token", "emptyDir": {}}]}
    assert 'the volume "console-token"' in refused(FLOWS, ON, {"common": values})


def notes(*values: Any, sets: tuple[str, ...] = ()) -> str:
    """Return the notes of an installation: `helm template` does not print them, so a manifest takes them up."""
    text = (CHART / "templates" / "NOTES.txt").read_text()
    manifest = (
        f'{{{{- define "test.notes" }}}}{text}{{{{ end -}}}}\n'
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\n"
        'data: {text: {{ include "test.notes" . | toJson }}}\n'
    )
    objects = rendered(*values, {"extraManifests": [manifest]}, sets=sets)
    return str(objects.by_kind("ConfigMap")["notes"]["data"]["text"])


def test_notes_say_how_the_console_is_opened() -> None:
    whole = notes(WHOLE)
    assert "  kubectl port-forward -n kafka service/shown-console 80\n  http://localhost:80/\n" in whole
    assert "    console     2  deployment/shown-console\n" in whole
    assert "The console\n" in whole
    assert "The console, where nobody may act: set console.tokenSecret or console.trustHeader\n" in notes(FLOWS, ON)
    assert "onsole" not in notes(FLOWS)


def test_dashboards_lead_to_the_console() -> None:
    def address(**values: Any) -> str:
        objects = rendered(FLOWS, {"dashboards": {"enabled": True}, "console": {"enabled": True, **values}})
        board = json.loads(objects.by_kind("ConfigMap")["my-mirror-dashboard-lockstep"]["data"]["lockstep.json"])
        (variable,) = (each for each in board["templating"]["list"] if each["name"] == "console")
        assert variable["current"]["value"] == variable["query"] == variable["options"][0]["value"]
        assert "${console:raw}/" in [link["url"] for link in board["links"]]
        return str(variable["query"])

    assert address() == "http://localhost:9405"
    assert address(url="https://console.example.org/") == "https://console.example.org"


def test_recording_rules_join_the_alerts_if_asked_for() -> None:
    def groups(**alerts: Any) -> list[str]:
        rule = rendered(FLOWS, {"alerts": {"enabled": True, **alerts}}).by_kind("PrometheusRule")["my-mirror"]
        return [group["name"] for group in rule["spec"]["groups"]]

    assert "lockstep.recorded" not in groups()
    assert groups(recordingRules=True)[-1] == "lockstep.recorded"
