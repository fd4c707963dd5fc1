"""What the chart adds to a resource is understood by the loader, and means what it should."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml

from lockstep_config import Configuration, load
from lockstep_config.flow.model import FlowSettings
from lockstep_config.text.properties import read_properties
from lockstep_data_plane.spark.conf import EVALUATING_MEMORY
from lockstep_state import project_address
from lockstep_state.names import Flow
from tests.chart.helm import CHART, NEEDS_PINNED_HELM, rendered

pytestmark = NEEDS_PINNED_HELM

RACK = "/etc/lockstep/rack/rack.properties"


def loaded(folder: Path, values: str, settings: str) -> Configuration:
    """Load the configuration as a pod with these values does."""
    config = rendered(CHART / "ci" / f"{values}-values.yaml").config()
    (folder / "rack.properties").write_text("rack=west-1\n")
    (folder / "mirror.yaml").write_text(config["mirror.yaml"])
    (folder / "settings").write_text(config[settings].replace(RACK, str(folder / "rack.properties")))
    environment = {"POD_NAME": "spread-data-plane-a-to-t-0", "ZONE": "east-1"}
    return load(folder / "mirror.yaml", {**environment, "LOCKSTEP_SETTINGS": str(folder / "settings")})


def flow_of(configuration: Configuration, source: str, target: str) -> FlowSettings:
    return configuration.flow(Flow(source, target))


def test_executors_a_rack_and_the_heap_are_settings_of_the_data_plane(tmp_path: Path) -> None:
    plane = flow_of(loaded(tmp_path, "executors", "data-plane-a-to-t.properties"), "A", "T").data_plane
    assert plane.spark.master == "k8s://https://kubernetes.default.svc"
    assert plane.spark.conf["spark.driver.host"] == "spread-data-plane-a-to-t-0.spread-data-plane.kafka.svc"
    assert plane.spark.conf["spark.executor.instances"] == "3"
    assert plane.spark.conf["spark.executor.cores"] == "4"
    assert (
        plane.spark.conf["spark.kubernetes.container.image"]
        == f"{project_address.IMAGES}/lockstep-data-plane:{version('lockstep-kafka-cli')}"
    )
    assert plane.spark.conf["spark.executor.memory"] == "768m"
    assert plane.fetch.rack == "west-1"
    assert plane.tasks_max == 10


def test_the_other_services_have_none_of_it(tmp_path: Path) -> None:
    plane = flow_of(loaded(tmp_path, "executors", "lockstep.properties"), "A", "T").data_plane
    assert not plane.spark.master
    assert not plane.spark.conf
    assert not plane.fetch.rack


def test_a_rack_may_come_from_the_environment(tmp_path: Path) -> None:
    plane = flow_of(loaded(tmp_path, "own-accounts", "data-plane-a-to-b.properties"), "A", "B").data_plane
    assert plane.fetch.rack == "east-1"


@pytest.mark.parametrize(
    ("values", "settings", "source", "target", "slots"),
    [
        ("minimal", "data-plane-a-to-b.properties", "A", "B", 2),  # dataPlane.slots
        ("executors", "data-plane-c-to-t.properties", "C", "T", 3),  # tasksMax
        ("mirror-maker-1", "data-plane-source-to-target.properties", "source", "target", 2),  # numStreams
    ],
)
def test_slots_are_as_many_as_asked_for(
    values: str, settings: str, source: str, target: str, slots: int, tmp_path: Path
) -> None:
    assert flow_of(loaded(tmp_path, values, settings), source, target).data_plane.tasks_max == slots


def test_the_users_settings_count_last(tmp_path: Path) -> None:
    configuration = loaded(tmp_path, "everything", "lockstep.properties")
    plane = flow_of(configuration, "A", "B").data_plane
    assert plane.max_in_flight_bytes == 134217728
    assert str(plane.on_gap.for_topic("orders")) == "skip"


def test_setting_with_special_characters_arrives_unchanged(tmp_path: Path) -> None:
    texts = {
        "lockstep.spark.conf.spark.a": " a blank, a \\ and a tab\t",
        "lockstep.spark.conf.spark.b": "two\nlines = one: value # no comment",
        "lockstep.spark.conf.spark.c": "C:\\u0041 \u00fcber",
        "lockstep.spark.conf.spark.d": 1073741824,
        "lockstep.spark.conf.spark.e": False,
        "lockstep.spark.conf.spark.f": 0.5,
    }
    config = rendered(CHART / "ci" / "minimal-values.yaml", {"settings": texts}).config()
    (tmp_path / "mirror.yaml").write_text(config["mirror.yaml"])
    (tmp_path / "settings").write_text(config["lockstep.properties"])
    conf = flow_of(
        load(tmp_path / "mirror.yaml", {"LOCKSTEP_SETTINGS": str(tmp_path / "settings")}), "A", "B"
    ).data_plane.spark.conf
    assert [conf[f"spark.{letter}"] for letter in "abcdef"] == [
        "a blank, a \\ and a tab",  # Spark's settings are stripped
        "two\nlines = one: value # no comment",
        "C:\\u0041 \u00fcber",
        "1073741824",
        "false",
        "0.5",
    ]


STATEMENT = {
    "lockstep.transform.pii.topics": "customers",
    "lockstep.transform.pii.mask": "$.name: hash_salted",
    "lockstep.transform.pii.salt": "${env:PII_SALT}",
}
SPREAD = yaml.safe_load((CHART / "ci" / "executors-values.yaml").read_text())


def _spread(config: dict[str, str] | None, **values: Any) -> dict[str, Any]:
    """Return the values of executors, without a heap of the user's. A->T has this configuration."""
    first, second = SPREAD["spec"]["mirrors"]
    mirrors = [{**first, "sourceConnector": {"tasksMax": 10, "config": config or {}}}, second]
    spec = {key: value for key, value in SPREAD["spec"].items() if key != "jvmOptions"}
    return {**SPREAD, "spec": {**spec, "mirrors": mirrors}, **values}


@pytest.mark.parametrize(
    ("values", "evaluates"),
    [
        (_spread(None), {"a-to-t": False, "c-to-t": False}),
        (_spread(STATEMENT), {"a-to-t": True, "c-to-t": False}),
        (_spread(None, settings=STATEMENT), {"a-to-t": True, "c-to-t": True}),
        (
            _spread(None, settings={f"C->T.{key}": value for key, value in STATEMENT.items()}),
            {"a-to-t": False, "c-to-t": True},
        ),
        (_spread({"lockstep.transform.pii.python": "masking:mask"}), {"a-to-t": False, "c-to-t": False}),
    ],
    ids=["none", "of-a-mirror", "of-all", "of-a-flow", "a-function"],
)
def test_executors_that_evaluate_statements_have_the_heap_for_it(
    values: dict[str, Any], evaluates: dict[str, bool]
) -> None:
    """And the limit of their pods stays what the values say: 2 GiB."""
    config = rendered(values).config()
    for flow, has_statement in evaluates.items():
        lines = read_properties(config[f"data-plane-{flow}.properties"].encode(), Path("settings"))
        found = {entry.key: entry.value for entry in lines.entries}
        heap = EVALUATING_MEMORY if has_statement else "512m"
        assert found["lockstep.spark.conf.spark.executor.memory"] == heap
        beside = 2048 - int(heap.removesuffix("m"))
        assert found["lockstep.spark.conf.spark.executor.memoryOverhead"] == f"{beside}m"
