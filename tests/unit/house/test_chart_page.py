"""The chart's README names every value, and what becomes of every field of the resource that is the chart's."""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from lockstep_config.strimzi.fields import Use
from lockstep_config.strimzi.schema import KINDS
from tools.docs.chart import CHART, PAGE, VALUES, described

VALUES_TEXT = VALUES.read_text(encoding="utf-8")
PAGE_TEXT = PAGE.read_text(encoding="utf-8")
DOCS = CHART.parents[2] / "docs"
OBSERVING = ("metrics", "alerts", "dashboards")
"""The values about what watches Lockstep."""


def test_every_value_is_described() -> None:
    assert undescribed(VALUES_TEXT) == []


def test_guides_name_each_switch_about_observing_that_is_off() -> None:
    """An operator who follows only a guide gets no alert otherwise."""
    off = {path for path, value in _leaves(yaml.safe_load(VALUES_TEXT)) if path.endswith(".enabled") and not value}
    wanted = {path for path in off if path.startswith(OBSERVING)} - {"metrics.serviceMonitor.enabled"}
    assert wanted == {"metrics.podMonitor.enabled", "alerts.enabled", "dashboards.enabled"}
    (block,) = re.findall(r"^```yaml\n(.*?)^```", (DOCS / "guides" / "kubernetes.md").read_text("utf-8"), re.M | re.S)
    assert {path for path, value in _leaves(yaml.safe_load(block)) if value is True} == wanted
    page = (DOCS / "guides" / "disaster-recovery.md").read_text("utf-8")
    assert {path for path in wanted if f"`{path}`" not in page} == set()


def test_pages_name_existing_values_about_observing() -> None:
    known = {path for path, _ in _leaves(yaml.safe_load(VALUES_TEXT))}
    named = re.compile(r"`((?:alerts|dashboards|networkPolicy|metrics\.(?:pod|service)Monitor)(?:\.\w+)+)")
    texts = {page.name: page.read_text("utf-8") for page in DOCS.rglob("*.md")}
    wrong = {name: [path for path in named.findall(text) if path not in known] for name, text in texts.items()}
    assert {name: paths for name, paths in wrong.items() if paths} == {}


def undescribed(text: str) -> list[str]:
    """The values that neither have a description nor are a part of one that has."""
    having = tuple(f"{value.path}." for value in described(text))
    leaves = (path for path, value in _leaves(yaml.safe_load(text)) if not isinstance(value, dict) or not value)
    return [path for path in leaves if not f"{path}.".startswith(having)]


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The path of each value, and of each mapping, with what is there."""
    for name, value in node.items():
        here = f"{path}.{name}" if path else name
        yield here, value
        if isinstance(value, dict):
            yield from _leaves(value, here)


def test_comments_are_read_as_descriptions() -> None:
    text = "# About all.\n# -- First\n# and more.\na: 1\nb:\n  # -- Inner\n  c: {d: 2}\n  # no description\n  e: 3\n"
    assert [(value.path, value.default, value.text) for value in described(text)] == [
        ("a", 1, "First and more."),
        ("b.c", {"d": 2}, "Inner"),
    ]
    assert undescribed(text) == ["b.e"]


def test_chart_schema_and_values_yaml_have_the_same_keys() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(yaml.safe_load(VALUES_TEXT)) | {"status"} == set(schema["properties"])
    # global is shared with other charts; the others are the resource's.
    assert sorted(_open(schema, schema, "")) == ["global", "metadata", "spec", "status"]


def _open(node: Any, schema: Any, path: str) -> Iterator[str]:
    """The mappings that take a key which the schema does not know, and are not Kubernetes' own."""
    for name, value in node.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        while "$ref" in value:
            value = schema["$defs"][value["$ref"].rpartition("/")[2]]
        if "object" in value.get("type", []):
            if "additionalProperties" in value:
                yield from _open(value, schema, here)
            elif path == "" or "properties" in value:
                yield here


def test_every_field_that_is_the_charts_has_a_line() -> None:
    rows = set(re.findall(r"`([^`|]+)`", " ".join(re.findall(r"^\|([^|]*)\|", PAGE_TEXT, re.MULTILINE))))
    fields = {
        f"spec.{name}"
        for kind in KINDS.values()
        for name, field in kind["spec"].fields.items()
        if field.use is Use.CHART or name in ("metrics", "metricsConfig", "jmxOptions")
    }
    assert (
        sorted(field for field in fields if not any(row == field or row.startswith(f"{field}.") for row in rows)) == []
    )
