"""What the chart's schema says of a resource is what the declared fields make of it."""

import json
from typing import Any

from lockstep_config.strimzi.api_versions import API_VERSIONS
from lockstep_config.strimzi.schema import CHART_VALUES, KINDS
from tools.docs.values_schema import SCHEMA


def test_chart_schema_top_level_keys_are_closed_unless_another_kind() -> None:
    schema: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    (rule,) = (rule for rule in schema["allOf"] if "apiVersion" not in rule["if"]["properties"])
    assert rule["if"]["properties"]["kind"]["enum"] == ["", *API_VERSIONS]
    top = schema["$defs"][rule["then"]["$ref"].split("/")[-1]]
    assert (set(top["properties"]), top["additionalProperties"]) == (set(schema["properties"]), False)


def test_each_kind_in_each_version_has_its_fields_and_no_others() -> None:
    schema: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    definitions = {
        (rule["if"]["properties"]["kind"]["const"], version): rule["then"]["properties"]["spec"]["$ref"].split("/")[-1]
        for rule in schema["allOf"]
        if "apiVersion" in rule["if"]["properties"]
        for version in rule["if"]["properties"]["apiVersion"]["enum"]
    }
    assert set(definitions) == {(kind, version) for kind, versions in API_VERSIONS.items() for version in versions}
    for name in definitions.values():
        assert schema["$defs"][name]["additionalProperties"] is False
    fields = schema["$defs"][definitions["KafkaMirrorMaker2", "kafka.strimzi.io/v1"]]["properties"]
    assert "target" in fields
    assert "connectCluster" not in fields


def test_the_services_know_each_value_of_the_chart() -> None:
    schema: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for fields in KINDS.values():
        assert sorted([*fields, *CHART_VALUES]) == sorted({*schema["properties"], "status"})
