"""Files of several YAML documents: the one that is meant, and its text."""

import json
from pathlib import Path

import pytest
import yaml

from lockstep_config import ConfigurationError
from lockstep_config.loader.configuration import build_configuration
from lockstep_config.strimzi.printing import as_yaml
from lockstep_config.strimzi.resource import find_resource, read_resource

FILE = Path("mirrors.yaml")


def one(name: str, alias: str = "A", namespace: str = "", **metadata: str) -> str:
    metadata |= {"name": name} if name else {}
    metadata |= {"namespace": namespace} if namespace else {}
    clusters = [{"alias": alias, "bootstrapServers": "a:1"}, {"alias": "B", "bootstrapServers": "b:1"}]
    mirror = {"sourceCluster": alias, "targetCluster": "B", "sourceConnector": {}}
    spec = {"connectCluster": "B", "clusters": clusters, "mirrors": [mirror]}
    kind = {"apiVersion": "kafka.strimzi.io/v1beta2", "kind": "KafkaMirrorMaker2"}
    return json.dumps({**kind, "metadata": metadata, "spec": spec})


def documents(*texts: str) -> bytes:
    return "\n---\n".join(texts).encode()


USER = "kind: KafkaUser\nspec: {}"
TWO = documents(USER, one("eu", "EU"), one("us", "US"))


def flows(data: bytes, document: str = "") -> list[str]:
    return [str(flow.flow) for flow in build_configuration(read_resource(data, FILE, document), FILE, {}).flows]


def mistake(data: bytes, document: str = "") -> str:
    with pytest.raises(ConfigurationError) as caught:
        flows(data, document)
    (only,) = caught.value.problems
    return only.message


def test_documents_with_two_mirrors_are_refused_with_their_names() -> None:
    assert mistake(TWO) == (
        "is a second one: the file holds KafkaMirrorMaker2 eu in line 4 and KafkaMirrorMaker2 us in line 6; give each "
        "a file of its own (lockstep config convert --to resource --document eu prints one)"
    )


@pytest.mark.parametrize(("name", "flow"), [("eu", "EU->B"), ("us", "US->B")])
def test_document_selected_by_name_is_read_and_the_others_are_noted(name: str, flow: str) -> None:
    assert flows(TWO, name) == [flow]
    notes = [(note.line, note.message) for note in read_resource(TWO, FILE, name).notes]
    line = 6 if name == "eu" else 4
    assert (1, "is KafkaUser, which is not read here") in notes
    assert (line, "is KafkaMirrorMaker2, which is not read here") in notes


def test_document_with_an_unknown_name_is_refused_with_the_known_names() -> None:
    assert mistake(TWO, "asia").endswith("is called 'asia': there is eu, us")
    assert mistake(documents(USER), "asia").endswith("but no KafkaMirrorMaker2 or KafkaMirrorMaker")


def test_document_is_selected_by_namespace_where_names_are_equal() -> None:
    data = documents(one("m", "EU", namespace="east"), one("m", "US", namespace="west"))
    assert "--document east/m prints one" in mistake(data)
    assert "KafkaMirrorMaker2 west/m in line 3" in mistake(data, "m")
    assert flows(data, "west/m") == ["US->B"]


@pytest.mark.parametrize(
    "data", [documents(one(""), one("")), documents(one("m"), one("m")), documents(one("m"), one(""))]
)
def test_documents_with_equal_names_need_separate_files(data: bytes) -> None:
    assert mistake(data).endswith("give each a file of its own")


def test_document_in_a_list_is_selected_by_name() -> None:
    items = [json.loads(one("eu", "EU")), json.loads(one("us", "US"))]
    data = json.dumps({"kind": "List", "apiVersion": "v1", "items": items}).encode()
    assert "eu in line 1 and KafkaMirrorMaker2 us" in mistake(data)
    assert flows(data, "us") == ["US->B"]


TEXTS = """\
kind: KafkaMirrorMaker2
spec:
  version: 3.10
  texts: ["yes", "1.0", "null", "a: b", "0x10", "x", "", " ", "1e3", "#", "ü", "~", "2026-01-01", "=", "on"]
  others: [yes, no, null, 7, -3, 9007199254740993, 1.50, 1e3, off]
  several: |
    one
    two # three
  anchored: &a {b: 1}
  aliased: *a
"""


def test_printed_document_reads_the_same_here_and_in_helm() -> None:
    """Helm's numbers are 64-bit floats, so a number that it would change is a text."""
    document = find_resource(TEXTS.encode(), FILE)
    assert document is not None
    printed = as_yaml(document)
    spec = yaml.safe_load(printed)["spec"]
    assert spec["version"] == "3.10"
    assert spec["texts"] == [
        *["yes", "1.0", "null"],
        "a: b",
        "0x10",
        "x",
        "",
        " ",
        "1e3",
        "#",
        "ü",
        "~",
        "2026-01-01",
        "=",
        "on",
    ]
    assert spec["others"] == [True, False, None, 7, -3, "9007199254740993", "1.50", "1e3", False]
    assert spec["several"] == "one\ntwo # three\n"
    assert spec["anchored"] == spec["aliased"] == {"b": 1}
    assert "&" not in printed
    again = find_resource(printed.encode(), FILE)
    assert again is not None
    assert as_yaml(again) == printed


def test_printed_document_is_the_named_one_of_two() -> None:
    document = find_resource(TWO, FILE, "us")
    assert document is not None
    assert flows(as_yaml(document).encode()) == ["US->B"]
    assert find_resource(documents(USER), FILE) is None
