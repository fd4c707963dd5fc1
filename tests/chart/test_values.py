"""Values that YAML reads as something other than a text, or that are taken away with null."""

from typing import Any

import yaml

from tests.chart.helm import CHART, NEEDS_TOOLS, Objects, rendered
from tests.chart.test_workloads import EVERYTHING, resource

pytestmark = NEEDS_TOOLS

CI = {file.stem.removesuffix("-values"): file for file in CHART.glob("ci/*-values.yaml")}
FLOW: dict[str, Any] = {"from": "A", "to": "B", **EVERYTHING}


def pods(objects: Objects) -> list[dict[str, Any]]:
    """Every pod template: of the workloads, the check, `helm test` and the executors."""
    found = [one["spec"]["template"] for one in (*objects.workloads(), *objects.by_kind("Job").values())]
    found += objects.by_kind("Pod").values()
    return found + [yaml.safe_load(text) for name, text in objects.config().items() if name.startswith("executor-")]


def test_limits_that_are_null_are_not_written() -> None:
    nulls = ("common.terminationGracePeriodSeconds=null", "revisionHistoryLimit=null", "common.tmpSizeLimit=null")
    objects = rendered(resource(FLOW), sets=(*nulls, "dataPlane.executors=1", "check.timeoutSeconds=null"))
    assert all("revisionHistoryLimit" not in one["spec"] for one in objects.workloads())
    assert all("terminationGracePeriodSeconds" not in one["spec"] for one in pods(objects))
    assert None not in [volume.get("emptyDir") for one in pods(objects) for volume in one["spec"]["volumes"][:1]]
    assert "activeDeadlineSeconds" not in objects.by_kind("Job")["my-mirror-check"]["spec"]


def test_jvm_options_that_are_numbers_have_no_exponent() -> None:
    jvm = {
        "-Xms": 536870912,
        "-XX": {"MaxDirectMemorySize": 268435456},
        "javaSystemProperties": [{"name": "a", "value": 20240101}, {"name": "b", "value": 0.5}],
    }
    text = rendered(resource(FLOW, jvmOptions=jvm)).config()["data-plane-a-to-b.properties"]
    options = "-Xms536870912 -XX:MaxDirectMemorySize=268435456 -Da=20240101 -Db=0.5"
    assert f"defaultJavaOptions={options}\n" in text
