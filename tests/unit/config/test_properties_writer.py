"""Writing mm2.properties: the text loads to the model that it was made of."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_config import load
from lockstep_config.loader.configuration import build_configuration, read
from lockstep_config.loader.mm1_files import LegacyFiles, legacy_text, load_legacy
from lockstep_config.text.properties import Entry, read_properties
from lockstep_config.text.properties_writer import as_properties, plain_secrets

FILES = sorted((Path(__file__).parent / "files").glob("*.properties"))
ENVIRONMENT = {"EU_PASSWORD": "p"}
HERE = Path("x.properties")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_example_comes_back_the_same(path: Path) -> None:
    text = read(path, {})
    written = read_properties(as_properties(text.entries, path).encode("ascii"), path)
    assert [(entry.key, entry.value) for entry in written.entries] == [
        (entry.key, entry.value) for entry in text.entries
    ]
    before, after = load(path, ENVIRONMENT), build_configuration(written, path, ENVIRONMENT)
    assert (after.clusters, after.flows) == (before.clusters, before.flows)
    assert [remark.message for remark in after.unused] == [remark.message for remark in before.unused]


def test_mirror_maker_1s_files_come_back_the_same(tmp_path: Path) -> None:
    files = LegacyFiles(tmp_path / "c.properties", tmp_path / "p.properties", {"num.streams": "3"})
    files.consumer.write_text("bootstrap.servers = a:1\ngroup.id = mm1\nfetch.min.bytes = 5\n")
    files.producer.write_text("bootstrap.servers = b:1\ncompression.type = zstd\n")
    text = legacy_text(files)
    written = read_properties(as_properties(text.entries, files.consumer).encode("ascii"), files.consumer)
    before, after = load_legacy(files, {}), build_configuration(written, files.consumer, {})
    assert (after.clusters, after.flows) == (before.clusters, before.flows)


def test_a_strimzi_resource_comes_back_the_same(tmp_path: Path) -> None:
    path = tmp_path / "mirror.yaml"
    path.write_text(RESOURCE)
    text = read(path, {})
    assert not plain_secrets(text.entries, path)
    written = read_properties(as_properties(text.entries, path).encode("ascii"), path)
    before, after = load(path, {}), build_configuration(written, path, {})
    assert (after.clusters, after.flows) == (before.clusters, before.flows)


RESOURCE = """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata: {name: mirror}
spec:
  connectCluster: b
  clusters:
    - {alias: a, bootstrapServers: "a:9092"}
    - {alias: b, bootstrapServers: "b:9092"}
  mirrors:
    - sourceCluster: a
      targetCluster: b
      topicsPattern: "orders\\\\..*"
      sourceConnector: {tasksMax: 2, config: {replication.factor: -1}}
"""

keys = st.text(st.characters(codec="utf-16"), max_size=12)
texts = st.one_of(st.text(max_size=30), st.text(" \t\n\r\f\\:=#!${}ü\u2028😀", max_size=12))


@given(st.dictionaries(st.one_of(keys, st.text(" \t:=#!\\x", max_size=6)), texts, max_size=5))
def test_any_key_and_value_come_back(lines: dict[str, str]) -> None:
    entries = [Entry(key, value, line) for line, (key, value) in enumerate(lines.items(), 1)]
    read_again = read_properties(as_properties(entries, HERE).encode("ascii"), HERE)
    assert read_again.problems == ()
    assert {entry.key: entry.value for entry in read_again.entries} == lines


def test_written_properties_have_comments_with_their_origin() -> None:
    entries = [
        Entry("A->B.topics", "x", 7, file=Path("mirror.yaml"), written="spec.mirrors[0].topicsPattern"),
        Entry("clusters", "A, B", 1),
    ]
    assert as_properties(entries, HERE).splitlines()[2:] == [
        "# mirror.yaml:7 spec.mirrors[0].topicsPattern",
        "A->B.topics = x",
        "# x.properties:1",
        "clusters = A, B",
    ]


@pytest.mark.parametrize(
    ("key", "value", "plain"),
    [
        ("A.ssl.key.password", "x", True),
        ("A.ssl.key.password", "${file:/x:y}", False),
        ("A.ssl.key.password", "x${file:/x:y}", True),
        ("A.ssl.key.password", " ", False),
        ("A.ssl.keystore.location", "/x", False),
        ("A.sasl.jaas.config", 'Plain required username="u" password="p";', True),
        ("A.sasl.jaas.config", 'Plain required username="u" password="${env:P}";', False),
        ("A.sasl.jaas.config", "Plain required username=u password=p;", True),
        ("A.sasl.jaas.config", "${file:/x:jaas}", False),
        ("A.producer.sasl.jaas.config", 'X required clientId="c" clientSecret="s";', True),
        ("A.sasl.jaas.config", 'X required oauth.client.assertion="eyJ";', True),
        ("A.sasl.jaas.config", 'X required oauth.client.assertion="${env:A}";', False),
        ("A.sasl.jaas.config", 'X required oauth.client.assertion.location="/a";', False),
        ("A.sasl.jaas.config", 'X required oauth.client.assertion.type="urn:jwt";', False),
    ],
)
def test_plain_secrets_are_found(key: str, value: str, plain: bool) -> None:
    assert bool(plain_secrets([Entry(key, value, 1)], HERE)) is plain
