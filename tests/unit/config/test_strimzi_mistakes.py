"""Mistakes in resources: all of them at once, each with its line and its YAML path."""

from pathlib import Path

import pytest

from lockstep_config.strimzi.schema import KINDS
from tests.support.mirror_maker_2_resources import V1, old
from tests.support.strimzi_resources import Resources

NO_CONFIG = "sourceConnector: {}"
WHOLE = (Path(__file__).parents[2] / "seeds" / "streams-9.9-whole.yaml").read_text()


def test_strimzi_mistakes_are_reported_together(resources: Resources) -> None:
    text = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
spec:
  replica: 3
  connectCluster: B
  clusters:
  - alias: A
    bootstrapServer: a:9092
  - alias: B
    bootstrapServers: b
  mirrors:
  - sourceCluster: A
    targetCluster: B
    sourceConnector:
      taskMax: 3
      tasksMax: "3"
      config:
        replication.factor: 1
        refresh.topics.interval.seconds: soon
        replication.policy.clas: x
  livenessProbe:
    initialDelaySecond: 5
"""
    assert resources.mistakes(text) == [
        "4 spec.replica: is no field that Strimzi has there; did you mean spec.replicas?",
        "7 spec.clusters[0].bootstrapServers: is empty: write HOST:PORT, several between commas",
        "8 spec.clusters[0].bootstrapServer: is no field that Strimzi has there; did you mean "
        "spec.clusters[0].bootstrapServers?",
        "10 spec.clusters[1].bootstrapServers: has 'b', which is no HOST:PORT",
        "15 spec.mirrors[0].sourceConnector.taskMax: is no field that Strimzi has there; did you mean "
        "spec.mirrors[0].sourceConnector.tasksMax?",
        "16 spec.mirrors[0].sourceConnector.tasksMax: is a text, but takes a whole number",
        "19 spec.mirrors[0].sourceConnector.config.refresh.topics.interval.seconds: is 'soon', which is no whole "
        "number",
        "20 spec.mirrors[0].sourceConnector.config.replication.policy.clas: is no key that MirrorMaker or "
        "Lockstep knows; did you mean spec.mirrors[0].sourceConnector.config.replication.policy.class?",
        "22 spec.livenessProbe.initialDelaySecond: is no field that Strimzi has there; did you mean "
        "spec.livenessProbe.initialDelaySeconds?",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "0 : has no kind: write KafkaMirrorMaker2 or KafkaMirrorMaker"),
        ("# nothing\n", "0 : has no kind"),
        ("just text\n", "1 : is no resource: it takes apiVersion, kind, metadata and spec"),
        ("- a\n", "1 : is no resource"),
        ("kind: KafkaMirrorMaker2\n", "1 apiVersion: is missing: KafkaMirrorMaker2 has kafka.strimzi.io/v1alpha1, "),
        ("kind: KafkaMirrorMaker2\napiVersion: v1\n", "2 apiVersion: is 'v1': KafkaMirrorMaker2 has "),
        ("kind: KafkaMirrorMaker\napiVersion: kafka.strimzi.io/v1\n", "2 apiVersion: is 'kafka.strimzi.io/v1': "),
        ("kind: KafkaMirrorMaker2\napiVersion: kafka.strimzi.io/v1\n", "1 spec: is missing: it says what is mirrored"),
        ("kind: KafkaMirrorMakerTwo\n", "0 : has the kind 'KafkaMirrorMakerTwo'; did you mean KafkaMirrorMaker?"),
        ("kind: KafkaConnect\nspec: {}\n", "0 : has KafkaConnect, but no KafkaMirrorMaker2 or KafkaMirrorMaker"),
        ("services:\n  mm2:\n    image: x\n", "0 : is no resource: it takes apiVersion, kind, metadata and spec"),
        ("spec: {}\n", "0 : has no kind: write KafkaMirrorMaker2 or KafkaMirrorMaker"),
        (
            "kind: ConfigMap\ndata:\n  mm2.properties: |\n    clusters = A, B\n",
            "0 : is a ConfigMap: write the text of its mm2.properties into a file, and name that file",
        ),
        (
            old().replace("    sourceConnector:", "    config: {}\n    sourceConnector:", 1),
            "spec.mirrors[0].config: is no field that Strimzi has there; write it into spec.mirrors[0].source, "
            "spec.mirrors[0].sourceConnector, spec.mirrors[0].checkpointConnector or spec.mirrors[0].heartbeat",
        ),
        ("kind: Kafka\n---\nkind: Secret\n", "0 : has Kafka, Secret, but no KafkaMirrorMaker2 or KafkaMirrorMaker"),
        (old() + "---\n" + old(), "20 kind: is a second one: the file holds KafkaMirrorMaker2 kafka/mirror "),
        ("kind: KafkaMirrorMaker2\napiVersion: {VERSION}\n", "2 apiVersion: is {VERSION}, a placeholder that was"),
        (old().replace("spec:", "spec: []\nother:"), "4 spec: is a list, but takes a mapping"),
        (old() + "spec: 1\n", "19 spec: is set twice, first in line 4: keep one"),
        ("a: [\n", ": is no YAML: "),
        (V1[: V1.index("  mirrors:")] + "  mirrors: []\n", "spec.mirrors: is empty: write at least one mirror"),
    ],
)
def test_resource_mistake_is_named(resources: Resources, text: str, said: str) -> None:
    assert any(said in mistake for mistake in resources.mistakes(text)), resources.mistakes(text)


@pytest.mark.parametrize("text", [old(), V1], ids=["with clusters", "with a target"])
@pytest.mark.parametrize("version", ["kafka.strimzi.io/v1beta1", "kafka.strimzi.io", "example.com/v9", "{X}"])
def test_a_wrong_api_version_is_the_only_mistake(resources: Resources, text: str, version: str) -> None:
    version_line, _, rest = text.partition("\n")
    (only,) = resources.mistakes(f"apiVersion: {version}\n{rest}")
    assert version_line.startswith("apiVersion: ")
    assert " apiVersion: is " in only


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("connectCluster: B", "connectCluster: A"), "targetCluster: is 'B', but spec.connectCluster is 'A': Kafka"),
        (("connectCluster: B", "connectCluster: X"), "5 spec.connectCluster: is 'X', which is not in spec.clusters"),
        (("  connectCluster: B\n", ""), "4 spec.connectCluster: is missing: name the alias of the mirrors' target"),
        (("sourceCluster: A", "sourceCluster: AA"), "14 spec.mirrors[0].sourceCluster: is 'AA', which is not in"),
        (("sourceCluster: A", "sourceCluster: B"), "14 spec.mirrors[0]: leads from B to itself"),
        (("  - sourceCluster: A\n    ", "  - "), "14 spec.mirrors[0].sourceCluster: is missing"),
        (("alias: A\n", "alias: A.b\n"), "7 spec.clusters[0].alias: is 'A.b': an alias may hold letters, digits,"),
        (("alias: A", "alias: B"), "10 spec.clusters[1].alias: is 'B', as spec.clusters[0].alias is already"),
        (("    targetCluster: B\n", "    targetCluster: B\n    source: {}\n"), "source.alias: is missing"),
        (("spec:\n", "spec:\n  target: {alias: B}\n"), "connectCluster: is there beside spec.target: keep one of"),
        ((NO_CONFIG, "sourceConnector: yes"), "sourceConnector: is true or false, but takes a mapping"),
        ((NO_CONFIG, "sourceConnector: {state: pausd}"), "is 'pausd': it takes running, paused, stopped; did "),
        ((NO_CONFIG, "sourceConnector: {tasksMax: 0}"), "tasksMax: is 0: the least it may be is 1"),
        ((NO_CONFIG, "sourceConnector: {config: {topics: [a, b]}}"), "topics: is a list: write its elements"),
        ((NO_CONFIG, "sourceConnector: {config: {sync: {topic.acls.enabled: false}}}"), "write its keys whole"),
        ((NO_CONFIG, "sourceConnector: {config: {topics: }}"), "topics: has no value: write one"),
        (
            (NO_CONFIG, "sourceConnector: {config: {transforms: x}}"),
            "transforms: names 'x', but there is no transforms.x.type",
        ),
        ((NO_CONFIG, "sourceConnector: {config: {consumer.interceptor.classes: x}}"), "which is refused"),
        ((NO_CONFIG, "topicsPattern: '('"), "topicsPattern: "),
        (("  mirrors:", "  livenessProbe: 5\n  mirrors:"), "livenessProbe: is a number, but takes a mapping"),
        (("  mirrors:", "  logging: {type: inlined}\n  mirrors:"), "logging.type: is 'inlined': it takes inline,"),
        (("  mirrors:", "  jvmOptions: {-Xmn: 1g}\n  mirrors:"), "spec.jvmOptions.-Xmn: is no field that Strimzi has"),
    ],
)
def test_mistakes_of_the_older_layout(resources: Resources, change: tuple[str, str], said: str) -> None:
    text = old().replace(*change)
    if "A.b" in change[1]:
        text = text.replace("sourceCluster: A", "sourceCluster: A.b")
    assert text != old()
    assert any(said in mistake for mistake in resources.mistakes(text)), resources.mistakes(text)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("    groupId: my-group\n", ""), "7 spec.target.groupId: is missing: name the group: `TARGET.group.id`"),
        (("    sourceConnector: {}", "    topicsBlacklistPattern: x"), "is a field of v1alpha1 and v1beta2, not of"),
        (("    sourceConnector: {}", "    sourceConnector: {pause: true}"), "pause: is a field of v1alpha1 and"),
        (("    sourceConnector: {}", "    sourceCluster: A"), "write spec.target and spec.mirrors[].source"),
        (("  replicas: 1", "  connectCluster: B"), "spec.connectCluster: is a field of v1alpha1 and v1beta2, not of"),
        (('  - source: {alias: A, bootstrapServers: "a:9092"}\n    ', "  - "), "mirrors[0].source: is missing"),
        (("alias: A,", "alias: B,"), "spec.mirrors[0]: leads from B to itself"),
    ],
)
def test_mistakes_of_v1(resources: Resources, change: tuple[str, str], said: str) -> None:
    text = V1.replace(*change)
    assert text != V1
    assert any(said in mistake for mistake in resources.mistakes(text)), resources.mistakes(text)


def test_strimzi_mirror_listed_twice_is_refused(resources: Resources) -> None:
    text = V1 + '  - source: {alias: A, bootstrapServers: "a:9092"}\n    sourceConnector: {}\n'
    assert "17 spec.mirrors[1]: mirrors A->B again, after spec.mirrors[0] in line 14: keep one" in resources.mistakes(
        text
    )


def test_misplaced_secret_is_not_shown(resources: Resources) -> None:
    text = old().replace(
        "bootstrapServers: a:9092",
        "bootstrapServers: a:9092\n    authentication: {type: plain, passwordSecret: hunter2}",
    )
    mistakes = resources.mistakes(text)
    assert any("passwordSecret: is a text, but takes a mapping" in mistake for mistake in mistakes)
    assert "hunter2" not in " ".join(mistakes)


def test_every_field_has_a_form_and_the_probes_are_judged_by_name(resources: Resources) -> None:
    text = WHOLE.replace("    initialDelaySeconds: 15", "    initialDelaySeconds: fifteen").replace(
        "timeoutSeconds: 5", "timeoutSecond: 5"
    )
    assert sum("Probe" in mistake for mistake in resources.mistakes(text)) == 4
    assert set(KINDS) == {"KafkaMirrorMaker2", "KafkaMirrorMaker"}
