"""The resource reaches the services as it was given, and the loader reads it as it reads the original."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from lockstep_cli.__main__ import main
from lockstep_config.text.yaml_nodes import read_yaml
from tests.chart.helm import NEEDS_PINNED_HELM, SEEDS, refused, rendered

pytestmark = NEEDS_PINNED_HELM

NUMBERS = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
  name: numbers
  labels: {app: "1e6", "on": "yes"}
spec:
  version: "3.10"
  connectCluster: B
  clusters:
  - {alias: A, bootstrapServers: "a:9092"}
  - alias: B
    bootstrapServers: "b:9092"
    config: {offset.storage.replication.factor: -1, offset.flush.interval.ms: 0}
  mirrors:
  - sourceCluster: A
    targetCluster: B
    topicsPattern: "orders\\\\..*|#hash|'quote'|\\"double\\"|über"
    sourceConnector:
      tasksMax: 1000000
      config:
        replication.factor: -1
        offset.lag.max: 0
        consumer.fetch.max.bytes: 1073741824
        consumer.max.partition.fetch.bytes: 2147483647
        producer.override.buffer.memory: 9007199254740991
        producer.override.max.block.ms: 9223372036854775807
        refresh.topics.interval.seconds: 16777217
        sync.topic.acls.enabled: "false"
        topics.exclude: |
          first.*,
          second.*
status:
  observedGeneration: 100000000
  conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-01-31T12:00:00Z"}]
"""
"""What passing through 64-bit floats and a printer of YAML might spoil."""


def texts(data: str) -> Any:
    """Return the document with each value as the loader reads it."""
    (document,), problems = read_yaml(data.encode(), Path("resource.yaml"))
    assert not problems
    return _plain(document)


def _plain(node: Any) -> Any:
    if hasattr(node, "lines"):
        return {key: _plain(value) for key, value in node.items.items() if _plain(value) != {}}
    return [_plain(item) for item in node.items] if hasattr(node, "items") else node.value


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.stem)
def test_the_resource_is_passed_on_unchanged(seed: Path) -> None:
    passed = rendered(seed).config()["mirror.yaml"]
    assert yaml.safe_load(passed) == yaml.safe_load(seed.read_text())
    assert texts(passed) == texts(seed.read_text())


def test_numbers_and_texts_stay_what_they_are(tmp_path: Path) -> None:
    given = tmp_path / "numbers.yaml"
    given.write_text(NUMBERS)
    passed = rendered(given).config()["mirror.yaml"]
    assert texts(passed) == texts(NUMBERS)
    assert not re.search(r": [\"']?-?[0-9.]+e[+-]?[0-9]+", passed.replace('"1e6"', ""))


def said_by(command: list[str], file: Path, *secrets: str) -> list[str]:
    """Return what `lockstep config` prints about a file, sorted: without its name and lines, and without what it says
    of the chart's fields, which it names in the order of the file."""
    answer = CliRunner().invoke(main, ["config", *command, str(file), *secrets])
    lines = answer.output.replace(str(file), "FILE").splitlines()
    return sorted(re.sub(r"FILE:\d+|in line \d+|# .*", "", line) for line in lines if "is the Helm chart's" not in line)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.stem)
def test_the_loader_reads_the_same(seed: Path, tmp_path: Path) -> None:
    passed = tmp_path / "mirror.yaml"
    passed.write_text(rendered(seed).config()["mirror.yaml"])
    for command in (["check"], ["convert"]):
        assert said_by(command, passed) == said_by(command, seed)


def test_a_number_that_helm_would_change_is_refused(tmp_path: Path) -> None:
    given = tmp_path / "numbers.yaml"
    given.write_text(NUMBERS.replace("9007199254740991", "9007199254740993"))
    said = refused(given)
    assert "spec.mirrors[0].sourceConnector.config.producer.override.buffer.memory is a number of more than 53" in said
    assert "put it in quotes" in said
