"""Which workloads there are: one for each service and flow, by the same rules as the services' own."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lockstep_config.loader.configuration import build_configuration
from lockstep_config.strimzi.resource import read_resource
from lockstep_config.text.properties import PropertiesText
from lockstep_ops.services import plan_services
from tests.chart.helm import NEEDS_PINNED_HELM, SEEDS, Objects, refused, rendered

pytestmark = NEEDS_PINNED_HELM


def resource(*mirrors: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a KafkaMirrorMaker2 of v1beta2 whose mirrors have `from` and `to` in the place of the clusters' fields."""
    aliases = list(dict.fromkeys(alias for mirror in mirrors for alias in (mirror["from"], mirror["to"])))
    return {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": "my-mirror"},
        "spec": {
            "connectCluster": mirrors[0]["to"],
            "clusters": [{"alias": alias, "bootstrapServers": f"{alias.lower()}:9092"} for alias in aliases],
            "mirrors": [
                {"sourceCluster": described["from"], "targetCluster": described["to"]}
                | {key: value for key, value in described.items() if key not in ("from", "to")}
                for described in mirrors
            ],
            **spec,
        },
    }


def v1(**connectors: Any) -> dict[str, Any]:
    """Return a KafkaMirrorMaker2 of v1 with one mirror."""
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": "my-mirror"},
        "spec": {
            "target": {
                "alias": "B",
                "bootstrapServers": "b:9092",
                "groupId": "group",
                "offsetStorageTopic": "offsets",
                "configStorageTopic": "configs",
                "statusStorageTopic": "status",
            },
            "mirrors": [{"source": {"alias": "A", "bootstrapServers": "a:9092"}, **connectors}],
        },
    }


EVERYTHING: dict[str, Any] = {"sourceConnector": {}, "checkpointConnector": {}, "heartbeatConnector": {}}


def off(connector: str, key: str, value: Any = False) -> dict[str, Any]:
    return {**EVERYTHING, connector: {"config": {key: value}}}


RESOURCES = {
    "everything": resource({"from": "A", "to": "B", **EVERYTHING}),
    "v1": v1(**EVERYTHING),
    "v1, source only": v1(sourceConnector={}),
    "heartbeats only": resource({"from": "A", "to": "B", "heartbeatConnector": {}}),
    "checkpoints only": resource({"from": "A", "to": "B", "checkpointConnector": {}}),
    "two mirrors": resource({"from": "A", "to": "B", **EVERYTHING}, {"from": "C", "to": "B", "sourceConnector": {}}),
    "empty connectors": resource({"from": "A", "to": "B", "sourceConnector": None, "heartbeatConnector": {}}),
    "no ACLs": resource({"from": "A", "to": "B", **off("sourceConnector", "sync.topic.acls.enabled", "False")}),
    "no checkpoints": resource({"from": "A", "to": "B", **off("checkpointConnector", "emit.checkpoints.enabled")}),
    "no syncs": resource(
        {
            "from": "A",
            "to": "B",
            "sourceConnector": {"config": {"emit.offset-syncs.enabled": "false"}},
            "checkpointConnector": {"config": {"emit.offset-syncs.enabled": "false"}},
        }
    ),
    "no heartbeats": resource({"from": "A", "to": "B", **off("heartbeatConnector", "emit.heartbeats.enabled")}),
    "source off": resource({"from": "A", "to": "B", **off("sourceConnector", "enabled", "false")}),
    "checkpoint off": resource({"from": "A", "to": "B", **off("checkpointConnector", "enabled")}),
    "stopped": resource({"from": "A", "to": "B", **EVERYTHING, "sourceConnector": {"state": "stopped"}}),
}


def asked_for(data: str) -> set[tuple[str, str]]:
    """Return (service, flow) as `lockstep run` would start them."""
    read = read_resource(data.encode(), Path("mirror.yaml"))
    # Where secrets are does not matter here: what names them is left out.
    entries = tuple(entry for entry in read.entries if "${" not in entry.value and ".ssl." not in entry.key)
    entries = tuple(setting for setting in entries if not setting.key.endswith("security.protocol"))
    plans = plan_services(build_configuration(PropertiesText(entries, read.problems), Path("mirror.yaml"), {}))
    return {(plan.name, str(flow)) for plan in plans for flow in plan.flows}


def present(objects: Objects) -> set[tuple[str, str]]:
    return {
        (
            workload["metadata"]["labels"]["app.kubernetes.io/component"],
            workload["metadata"]["annotations"]["lockstep/flow"],
        )
        for workload in objects.workloads()
    }


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.stem)
def test_a_seed_has_the_workloads_that_its_services_need(seed: Path) -> None:
    assert present(rendered(seed)) == asked_for(seed.read_text())


@pytest.mark.parametrize("name", RESOURCES)
def test_a_connector_that_is_absent_or_off_has_no_workload(name: str) -> None:
    values = RESOURCES[name]
    assert present(rendered(values)) == asked_for(yaml.safe_dump(values))


def test_settings_switch_services_too() -> None:
    flow, settings = resource({"from": "A", "to": "B", **EVERYTHING}), {"A->B.sync.topic.acls.enabled": False}
    assert ("acl-sync", "A->B") not in present(rendered(flow, {"settings": settings}))
    legacy = next(seed for seed in SEEDS if seed.stem == "strimzi-0.18-mirror-maker")
    beats = {"source->target.emit.heartbeats.enabled": "true"}
    assert present(rendered(legacy)) == {("data-plane", "source->target"), ("topic-sync", "source->target")}
    assert ("heartbeat", "source->target") in present(rendered(legacy, {"settings": beats}))


def test_a_service_can_be_left_out_and_nothing_at_all_is_refused() -> None:
    flow = RESOURCES["everything"]
    less = rendered(flow, {"services": {"aclSync": {"enabled": False}}})
    assert {service for service, _ in present(less)} == {"topic-sync", "checkpoint", "heartbeat", "data-plane"}
    of_flow = rendered(RESOURCES["two mirrors"], {"flows": {"C->B": {"topicSync": {"enabled": False}}}})
    assert ("topic-sync", "C->B") not in present(of_flow)
    assert ("topic-sync", "A->B") in present(of_flow)
    nothing = resource({"from": "A", "to": "B", "sourceConnector": None})
    assert "nothing would run" in refused(nothing)


def test_flows_with_equal_kubernetes_names_have_distinct_workloads() -> None:
    flows = resource(*({"from": alias, "to": "T", "sourceConnector": {}} for alias in ("a_b", "A-B", "c")))
    objects = rendered(flows)
    names = [workload["metadata"]["name"] for workload in objects.workloads()]
    assert len(names) == len(set(names)) == 3 * 3
    flow_of = {
        workload["spec"]["selector"]["matchLabels"]["lockstep/flow"]: workload["metadata"]["annotations"][
            "lockstep/flow"
        ]
        for workload in objects.workloads()
    }
    assert sorted(flow_of.values()) == ["A-B->T", "a_b->T", "c->T"]
    assert "c-to-t" in flow_of  # whose name is its own anyway


def test_names_are_never_too_long() -> None:
    long = resource({"from": "source-" + "x" * 90, "to": "target-" + "y" * 90, **EVERYTHING})
    long["metadata"]["name"] = "a-name.with-dots." + "z" * 120
    objects = rendered(long, {"dataPlane": {"executors": 1}, "metrics": {"serviceMonitor": {"enabled": True}}})
    for manifest in objects.all:
        limit = 52 if manifest in objects.workloads() else 63
        assert len(manifest["metadata"]["name"]) <= limit
        labels = manifest["metadata"]["labels"] | manifest.get("spec", {}).get("selector", {}).get("matchLabels", {})
        assert all(len(str(value)) <= 63 for value in labels.values())
    assert len({workload["metadata"]["name"] for workload in objects.workloads()}) == 5
