"""Files with common mistakes: the remark says what works instead, and the file starts where MirrorMaker starts."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from lockstep_cli.commands.config import command
from lockstep_config import Configuration, ConfigurationError, load
from lockstep_config.flow.client_settings import source_consumer
from lockstep_config.loader.settings_file import SETTINGS_VARIABLE

from .conftest import A_TO_B, TWO_CLUSTERS, LoadText, MistakesOf

IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
PLAIN = "A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\n"
NO_GROUP = (
    "MirrorMaker's consumers have no group that it could name, and groups keep their names on the target: remove it"
)
NAMED_ITSELF = "MirrorMaker names this topic itself (offset-syncs.topic.location says which cluster has that of offset"
DROPPED = "has no effect: MirrorMaker reads only the connection there: write "

WARNED = [
    ("A.consumer.auto.offset.reset = none", "MirrorMaker then never copies a partition that it has no progress of"),
    (
        "A.consumer.auto.offset.reset = none",
        "A gap halts the partition whatever is written here (lockstep.on.gap=halt)",
    ),
    ("offset-syncs.topic = x", NAMED_ITSELF),
    ("A->B.offset-syncs.topic = x", NAMED_ITSELF),
    ("A->B.checkpoints.topic = x", NAMED_ITSELF),
    ("replication.facotr = 1", "did you mean replication.factor?"),
    ("A->B.replication-factor = 1", "did you mean A->B.replication.factor?"),
    ("checkpoints.topic.replication.fator = 1", "did you mean checkpoints.topic.replication.factor?"),
    ("A->B.offset-sync.topic.replication.factr = 1", "has no effect: it is no key that MirrorMaker or Lockstep knows"),
    ("A->B.topics.blacklist = x", "MirrorMaker ignores this line since 4.0, and here it counts: write topics.exclude"),
    ("groups.blacklist = x", "MirrorMaker ignores this line since 4.0, and here it counts: write groups.exclude"),
    ("A.consumer.group.prefix = x", NO_GROUP),
    ("A->B.consumer.group.prefix = x", NO_GROUP),
    ("consumer.group.prefix = x", NO_GROUP),
    ("consumer.isolation.levl = x", "did you mean ALIAS.consumer.isolation.level?"),
    ("A->B.heartbeat.interval.seconds = 5", "write A->B.emit.heartbeats.interval.seconds"),
    ("heartbeats.interval.seconds = 5", "write emit.heartbeats.interval.seconds"),
    ("checkpoint.interval.seconds = 5", "write emit.checkpoints.interval.seconds"),
    (
        "A->B.groups = ''",
        "has '', which matches none of the groups: quotes belong to the value; to name no groups, write nothing behind",
    ),
    ('A->B.topics = ""', 'has "", which matches none of the topics'),
    (
        "B.producer.override.compression.type = lz4",
        "MirrorMaker has overrides of flows, not of clusters: write B.producer.compression.type, or "
        "SOURCE->B.producer.override.compression.type for the records of one flow",
    ),
    (
        "A.consumer.override.isolation.level = read_committed",
        "MirrorMaker has overrides of flows, not of clusters: write A.consumer.isolation.level",
    ),
    (
        "A->B.source.cluster.producer.security.protocol = SSL",
        f"{DROPPED}A->B.source.cluster.security.protocol for every client, or A->B.source.producer.security.protocol",
    ),
    ("A->B.target.cluster.consumer.fetch.min.bytes = 1", f"{DROPPED}A->B.target.consumer.fetch.min.bytes"),
    ("A->B.source.bootstrap.servers = a:1", "write A->B.source.cluster.bootstrap.servers, or ALIAS.bootstrap.servers"),
    ("A.java.security.auth.login.config = /x", "write A.sasl.jaas.config; a file of a JVM's logins is not read here"),
    ("java.security.auth.login.config = /x", "the value is what KafkaClient { } has in that file, in one line"),
    (
        "A->B.topics = orders, payments-*",
        "* repeats the character before it only: for any text there, write payments-.*",
    ),
    (
        "A->B.groups = app*",
        "has 'app*', in which * repeats the character before it only: for any text there, write app.*",
    ),
    ("A->B.partitions = 4", "a topic on the target has as many partitions as on the source: remove it"),
]
NOT_GLOBS = ["orders-.*", "a*b.*", "(x-*)", "[a-z]*", "orders.*x*y+"]
REFUSED_LINES = [
    ("A->B.topics = *", "* has nothing to repeat (.* is any text), at character 1"),
    ("A<->B.topics = x", "is no key of a flow, which has one direction: write A->B.topics and B->A.topics"),
    ("A->B.include = x", "write A->B.topics; without that line every one is selected"),
    ("A->B.exclude = x", "write A->B.topics.exclude"),
    ("A->B.consumer.groups = g", "write A->B.groups; without that line every one is selected"),
    ("A.consumer.groups = g", "write SOURCE->TARGET.groups; without that line every one is selected"),
    ("consumer.groups = g", "write groups; without that line every one is selected"),
    ("A->B.sync.topic.offsets.enabled = true", "write A->B.sync.group.offsets.enabled"),
    ("lockstep.delay.ms = 600000", "write lockstep.delay; a time with its unit, such as 10m"),
    (
        "replication.policy.class = IdentityReplicationPolicy",
        "which no class is called: write it with its package, org.apache.kafka.connect.mirror.IdentityReplication",
    ),
]


@pytest.mark.parametrize(("line", "said"), WARNED)
def test_line_that_mm2_ignores_is_a_warning_with_what_works(load_text: LoadText, line: str, said: str) -> None:
    loaded = load_text(line + "\n")
    assert loaded.flow(A_TO_B).enabled
    remarks = [note for note in (*loaded.notes, *loaded.unused) if note.line == 5]
    assert any(said in remark.message for remark in remarks), remarks


@pytest.mark.parametrize("pattern", NOT_GLOBS)
def test_regular_expression_with_a_star_is_no_glob(load_text: LoadText, pattern: str) -> None:
    loaded = load_text(f"A->B.topics = {pattern}\n")
    assert not [note for note in loaded.notes if "repeats the character before it" in note.message]


@pytest.mark.parametrize(("line", "said"), REFUSED_LINES)
def test_line_that_means_something_else_is_refused_with_what_works(
    mistakes_of: MistakesOf, line: str, said: str
) -> None:
    (mistake,) = mistakes_of(line + "\n")
    assert mistake.startswith("5 ")
    assert said in mistake


@pytest.mark.parametrize("aliases", ["A B", "A;B", "A | B", "A/B"])
def test_aliases_without_commas_are_named_and_their_lines_judged(mistakes_of: MistakesOf, aliases: str) -> None:
    separated, flow = mistakes_of(whole=TWO_CLUSTERS.replace("A, B", aliases) + "A->B.topcs = x\n")
    assert separated.endswith("aliases are separated by commas: write A, B")
    assert flow.startswith("5 A->B.topcs: ")


@pytest.mark.parametrize("servers", ["a:1;b:1", "a:1 b:1", "PLAINTEXT://a:1;PLAINTEXT://b:1", "a:1 | b:1"])
def test_addresses_without_commas_are_refused(mistakes_of: MistakesOf, servers: str) -> None:
    (mistake,) = mistakes_of(whole=TWO_CLUSTERS.replace("a:9092", servers))
    assert mistake.startswith(f"2 A.bootstrap.servers: has '{servers}', and ")
    assert mistake.endswith(" is no host; addresses are separated by commas")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            "bootstrap.servers = a:1\ngroup.id = mm1\n",
            "MirrorMaker 1's files are for lockstep legacy --consumer.config",
        ),
        ("bootstrap.servers = a:1\noffset.storage.topic = o\n", "name the file of its connector"),
        ("topics = x\n", "for example clusters = A, B"),
    ],
)
def test_file_of_another_program_is_called_so(mistakes_of: MistakesOf, lines: str, said: str) -> None:
    (mistake,) = mistakes_of(whole=lines)
    assert mistake.startswith("0 clusters: is missing")
    assert mistake.partition("clusters = A, B; ")[2].startswith(said) or mistake.endswith(said)


def test_no_reset_begins_at_the_earliest_record(load_text: LoadText) -> None:
    settings = load_text("A.consumer.auto.offset.reset = none\n").flow(A_TO_B)
    assert settings.data_plane.auto_offset_reset == "earliest"
    assert source_consumer(settings, "replication-consumer")["auto.offset.reset"] == "earliest"


def test_admin_class_that_is_mm2s_default_loads_without_a_remark(load_text: LoadText) -> None:
    loaded = load_text("A->B.forwarding.admin.class = org.apache.kafka.clients.admin.ForwardingAdmin\n")
    assert (loaded.notes, loaded.unused) == ((), ())


def test_one_address_for_both_sides_with_names_kept_is_refused(mistakes_of: MistakesOf, load_text: LoadText) -> None:
    whole = TWO_CLUSTERS.replace("b:9092", "c:1,A:9092")
    (mistake,) = mistakes_of(whole=whole + IDENTITY)
    assert mistake.startswith("3 B.bootstrap.servers: has a:9092, which A has as well: A and B are one cluster, and ")
    assert "A->B keeps the names of topics, so a topic would be copied onto itself" in mistake
    bare = "replication.policy.separator =\nA->B.source.cluster.alias =\n"
    assert "copied onto itself" in mistakes_of(whole=whole + bare)[0], "an alias of nothing keeps names too"
    (note,) = [note for note in load_text(whole=whole).notes if "one cluster" in note.message]
    assert "topics whose names begin with either alias are not mirrored" in note.message


def test_missing_login_names_the_place_for_that_of_a_jvm(mistakes_of: MistakesOf, load_text: LoadText) -> None:
    (mistake,) = mistakes_of(PLAIN + "java.security.auth.login.config = /etc/kafka/jaas.conf\n")
    assert mistake.startswith("0 A.sasl.jaas.config: is missing: PLAIN needs one, as in ")
    assert "java.security.auth.login.config is not read: copy here what its KafkaClient { } has, in one line" in mistake


LoadFile = Callable[[str, str], Configuration]


@pytest.fixture
def load_file(tmp_path: Path) -> LoadFile:
    """Load a text under a name; the topic with the progress is named beside it."""

    def loaded(name: str, text: str) -> Configuration:
        file, settings = tmp_path / name, tmp_path / "more.properties"
        file.write_text(text, encoding="utf-8")
        settings.write_text("B.offset.storage.topic = offsets\n", encoding="utf-8")
        return load(file, {SETTINGS_VARIABLE: str(settings)})

    return loaded


CONNECTOR = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:9098",
    "target.cluster.bootstrap.servers": "b:9098",
}
SECURITY = ("security.protocol", "sasl.mechanism", "sasl.jaas.config", "sasl.client.callback.handler.class")


def test_address_of_a_standalone_connector_is_proposed(load_file: LoadFile) -> None:
    lines = {"name": "mm2", **CONNECTOR, "source.bootstrap.servers": "a:1", "target.bootstrap.servers": "b:1"}
    del lines["source.cluster.bootstrap.servers"]
    with pytest.raises(ConfigurationError) as raised:
        load_file("mm2.properties", "".join(f"{key} = {value}\n" for key, value in lines.items()))
    (problem,) = raised.value.problems
    assert (problem.line, problem.key) == (6, "source.bootstrap.servers")
    assert problem.message.endswith("write source.cluster.bootstrap.servers")


def test_clients_behind_a_connectors_cluster_are_named_once(load_file: LoadFile) -> None:
    clients = {
        f"{side}.cluster.{kind}.{name}": "x"
        for side in ("source", "target")
        for kind in ("producer", "consumer", "admin")
        for name in SECURITY
    }
    loaded = load_file("msk.json", json.dumps({"name": "mm2-msc", "config": CONNECTOR | clients}, indent=1))
    remarks = [remark for remark in loaded.unused if "reads only the connection" in remark.message]
    assert len(remarks) == 6, "one for each client of each side, not one for each line"
    remark = next(remark for remark in remarks if "source.cluster.producer" in remark.key)
    assert remark.message == (
        "has no effect, as 3 more that begin with source.cluster.producer.: MirrorMaker reads only the connection "
        "there: write source.cluster.security.protocol for every client, or source.producer.security.protocol"
    )


HELM = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
  name: {{ .Values.name }}
spec:
  {{- if .Values.big }}
  replicas: 3
  {{- end }}
"""
TEMPLATES = [
    ("mirror.yaml", HELM, 4, "is a Helm template, by '{{ .Values.name }}'", "helm template"),
    (
        "mirror.yaml",
        HELM.replace("{{ .Values.name }}", "x"),
        6,
        "is a Helm template, by '{{- if .Values.big }}'",
        "helm",
    ),
    (
        "mm2.properties",
        "clusters = {{ a }}, B\n{% for c in all %}\n{{ c }}.bootstrap.servers = x:1\n{% endfor %}\n",
        2,
        "is a Jinja template, by '{% for c in all %}'",
        "Ansible's module template",
    ),
    (
        "mm2.yaml.j2",
        "{# ours #}\n{% if x %}\nkind: KafkaMirrorMaker2\n{% endif %}\n",
        2,
        "is a Jinja template",
        "Jinja",
    ),
    ("mm2.json", '{"name": {{ name }}, "config": {}}', 1, "is a Jinja template, by '{{ name }}'", "render it first"),
    ("mm2.yml", "kind: KafkaMirrorMaker2\nspec: {{ spec }}\n", 2, "is a Jinja template", "render it first"),
    ("mm2.properties.erb", "<% @clusters.each do |c| %>\nclusters = A\n<% end %>\n", 1, "is an ERB template", "Puppet"),
]


@pytest.mark.parametrize(("name", "text", "line", "said", "by"), TEMPLATES)
def test_template_is_called_one(load_file: LoadFile, name: str, text: str, line: int, said: str, by: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load_file(name, text)
    (problem,) = raised.value.problems
    assert problem.line == line
    assert problem.message.startswith(said)
    assert by in problem.message


REFUSED = TWO_CLUSTERS + "A->B.topcs = x\nA.consumer.max.poll.records = 1\ntopics.blacklist = y\n"


def test_refusal_shows_the_warnings_and_names_the_way_out_last(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(REFUSED)
    with pytest.raises(ConfigurationError) as raised:
        load(file, {})
    again = pickle.loads(pickle.dumps(raised.value))  # noqa: S301 our own bytes
    for error in (raised.value, again):
        *said, way_out = str(error).splitlines()
        assert [line.partition(": ")[2].partition(":")[0] for line in said] == [
            "A->B.topcs",
            "topics.blacklist",
            "A.consumer.max.poll.records",
        ]
        assert way_out.startswith("With --unknown warn, this would be a warning")
    result = CliRunner().invoke(command, ["check", str(file)])
    assert result.exit_code == 2
    assert result.stdout.count(str(file)) == 2, "the warnings"
    assert result.stderr.splitlines()[-2:] == [f"{file} cannot be used: 1 mistake", way_out]
    assert CliRunner().invoke(command, ["check", str(file), "--unknown", "warn"]).exit_code == 0
    in_json = json.loads(CliRunner().invoke(command, ["check", str(file), "--output", "json"]).stdout)
    assert [remark["key"] for remark in in_json["notes"]] == ["topics.blacklist"]
    assert [remark["key"] for remark in in_json["without_effect"]] == ["A.consumer.max.poll.records"]


def test_refusal_without_an_unknown_key_names_no_way_out(mistakes_of: MistakesOf, tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(TWO_CLUSTERS + "tasks.max = 0\n")
    with pytest.raises(ConfigurationError) as raised:
        load(file, {})
    assert "--unknown" not in str(raised.value)
