"""What the connectors call their clusters, where that is another name than the arrow's: read as MM2 reads it
(`tests/contract/test_java_mm2_aliases.py` asks MM2), or refused where two flows would get in each other's way."""

import json
from pathlib import Path
from typing import Any

import pytest

from lockstep_config import Configuration, ConfigurationError, load
from lockstep_config.credentials.permissions import source_grants, target_grants
from lockstep_config.resolve.cells import read_cells
from lockstep_config.resolve.precedence import aliases, sort_layers
from lockstep_config.text.properties import read_properties
from lockstep_state.names import Flow
from tests.unit.config.conftest import TWO_CLUSTERS, LoadText, MistakesOf
from tests.unit.config.test_connect import config

AB, BA = Flow("A", "B"), Flow("B", "A")
OLD_WAY = "replication.policy.separator =\nsource.cluster.alias =\ntarget.cluster.alias =\n"
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
C = "clusters = A, B, C\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nC.bootstrap.servers = c:1\n"


@pytest.mark.parametrize(
    ("lines", "to_b", "to_a"),
    [
        ("", "A->B", "B->A"),
        ("source.cluster.alias = x\ntarget.cluster.alias = y", "x->y", "x->y"),
        ("source.cluster.alias = x\nA->B.source.cluster.alias = z", "z->B", "x->A"),
        ("A.alias = x\nB.alias = y", "x->y", "y->x"),
        ("A.alias = x\nsource.cluster.alias = y", "x->B", "y->x"),
        ("A.alias = x\nA->B.source.cluster.alias =", "->B", "B->x"),
        ("A.source.cluster.alias = x\nalias = y", "A->B", "B->A"),
    ],
)
def test_alias_line_that_counts(lines: str, to_b: str, to_a: str) -> None:
    layers = sort_layers(read_cells(read_properties(lines.encode(), Path("f")).entries, ("A", "B")))
    assert (str(aliases(layers, AB)), str(aliases(layers, BA))) == (to_b, to_a)


def test_aliases_name_topics_and_progress_but_not_control_topics(load_text: LoadText) -> None:
    settings = load_text("source.cluster.alias = dc1\nA->B.target.cluster.alias = dc2\n").flow(AB)
    assert (settings.flow, settings.aliases) == (AB, Flow("dc1", "dc2"))
    assert settings.remote_topic("orders") == "dc1.orders"
    assert settings.checkpoints_topic == "dc1.checkpoints.internal"
    assert settings.offset_syncs_topic == "mm2-offset-syncs.dc2.internal"
    assert settings.control.offset_storage_topic == "mm2-offsets.A.internal"
    assert not settings.replicates("dc2.orders")
    assert settings.replicates("B.orders")
    named = {grant.name for grant in (*target_grants(settings), *source_grants(settings))}
    assert {"dc1.", "dc1.checkpoints.internal", "mm2-offset-syncs.dc2.internal"} <= named


def test_aliases_are_read_as_kafka_trims_them_without_a_note(load_text: LoadText) -> None:
    lines = "A->B.source.cluster.alias = eu \nB.alias = us\\u0020\n"
    assert load_text(lines).flow(AB).aliases == Flow("eu", "us")
    configuration = load_text("source.cluster.alias = dc1\n")
    assert (configuration.unused, configuration.notes) == ((), ())


def test_the_old_way_to_keep_names(load_text: LoadText) -> None:
    settings = load_text(OLD_WAY).flow(AB)
    assert settings.keeps_names
    assert settings.remote_topic("orders") == "orders"
    assert settings.data_plane.provenance is not None
    only = load_text("replication.policy.separator =\n").flow(AB)
    assert (only.keeps_names, only.remote_topic("orders")) == (False, "Aorders")


@pytest.mark.parametrize("names", [OLD_WAY, IDENTITY])
def test_aliases_that_make_a_cycle_are_noted(load_text: LoadText, names: str) -> None:
    loaded = load_text(names + "B->A.enabled = true\n")
    said = [note.message for note in loaded.notes if "without end" in note.message]
    assert len(said) == 1
    assert "topics of A->B and B->A come back to their source under the same names" in said[0]
    assert "A->B copies what was written on its source, B->A copies what was written on its source" in said[0]
    assert [settings.data_plane.provenance for settings in loaded.flows] == ["local", "local"]
    assert not any("without end" in note.message for note in load_text(names).notes)


OWN_ALIASES = "source.cluster.alias and target.cluster.alias of its own, each cluster the same in all flows"
OWN_SEPARATOR = "give A1->B2 and B2->A1 a replication.policy.separator that is not empty"
JOINED_NAMES = (
    "clusters = A1, B2\nA1.bootstrap.servers = a:1\nB2.bootstrap.servers = b:1\n"
    "A1->B2.enabled = true\nB2->A1.enabled = true\nreplication.policy.separator =\n"
)


@pytest.mark.parametrize(
    ("whole", "remedy"),
    [
        (TWO_CLUSTERS + "source.cluster.alias = dc1\nB->A.enabled = true\n", OWN_ALIASES),
        (
            TWO_CLUSTERS + "A->B.source.cluster.alias = dc1\nB->A.source.cluster.alias = dc2\nB->A.enabled = true\n",
            OWN_ALIASES,
        ),
        (JOINED_NAMES, OWN_SEPARATOR),
    ],
)
def test_aliases_by_which_names_grow_without_end_are_refused(mistakes_of: MistakesOf, whole: str, remedy: str) -> None:
    mistake = mistakes_of(whole=whole)[0]
    assert remedy in mistake
    assert "leads round: " in mistake


def test_the_same_aliases_in_both_directions_are_no_round(load_text: LoadText) -> None:
    both = load_text("A.alias = dc1\nB.alias = dc2\nB->A.enabled = true\n")
    assert [str(settings.aliases) for settings in both.flows] == ["dc1->dc2", "dc2->dc1"]
    assert not both.flow(BA).replicates("dc1.orders")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('source.cluster.alias = ""', "is '\"\"', which a topic's name cannot hold: use letters, digits, '.', '_',"),
        ("A->B.target.cluster.alias = a b", "is 'a b', which a topic's name cannot hold"),
        ("A.alias = x/y", "is 'x/y', which a topic's name cannot hold"),
        ("replication.policy.separator = ''", "quotes are part of a value here, and nothing behind = is empty"),
        (f"source.cluster.alias =\ntarget.cluster.alias =\n{IDENTITY}", "makes both aliases of A->B ''. With a policy"),
    ],
)
def test_alias_that_is_no_legal_topic_name_is_refused(mistakes_of: MistakesOf, line: str, said: str) -> None:
    (mistake,) = mistakes_of(line + "\n")
    assert said in mistake


def test_alias_common_to_two_flows_must_not_share_offset_syncs(mistakes_of: MistakesOf, load_text: LoadText) -> None:
    both = C + OLD_WAY + "A->B.enabled = true\nA->C.enabled = true\n"
    messages = mistakes_of(whole=both)
    assert "lets A->B and A->C both write their offset syncs to mm2-offset-syncsinternal on A" in messages[0]
    assert "give A->C a target.cluster.alias of its own" in messages[0]
    apart = load_text(whole=both + "A->C.target.cluster.alias = C\n")
    assert apart.flow(Flow("A", "C")).offset_syncs_topic == "mm2-offset-syncsCinternal"
    assert load_text(whole=both + "A->B.topics = a.*\nA->C.topics = c.*\n")
    assert load_text(whole=both + "A->C.emit.checkpoints.enabled = false\n")


def test_alias_common_to_two_sources_must_not_share_checkpoints(mistakes_of: MistakesOf) -> None:
    messages = mistakes_of(whole=C + "A->C.enabled = true\nB->C.enabled = true\nsource.cluster.alias = dc\n")
    assert any(
        "lets A->C and B->C both write their checkpoints to dc.checkpoints.internal on C" in message
        for message in messages
    )


# -- connectors and resources -----------------------------------------------------------------------------------------


def loaded(folder: Path, text: Any, more: str = "") -> Configuration:
    file, settings = folder / "m.json", folder / "more.properties"
    file.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    settings.write_text(more, encoding="utf-8")
    return load(file, {"LOCKSTEP_SETTINGS": str(settings)})


@pytest.mark.parametrize(
    ("source", "target", "flow", "called"),
    [
        ("", "", "source->target", "->"),
        ("", "B", "source->B", "->B"),
        ("A", "", "A->target", "A->"),
        ("my.dc", "B", "source->B", "my.dc->B"),
        ("A", "A", "A->target", "A->A"),
        (None, None, "source->target", "source->target"),
        ("A", "B", "A->B", "A->B"),
    ],
)
def test_connectors_have_any_alias(
    tmp_path: Path, source: str | None, target: str | None, flow: str, called: str
) -> None:
    kinds = ("Source", "Checkpoint", "Heartbeat")
    more = {"source__cluster__alias": source, "target__cluster__alias": target}
    every = [
        {
            "name": kind,
            "config": config(kind, replication__policy__class=None, replication__policy__separator="", **more),
        }
        for kind in kinds
    ]
    settings = loaded(tmp_path, every, f"{flow.partition('->')[2]}.offset.storage.topic = offsets\n").flows[0]
    assert (str(settings.flow), str(settings.aliases)) == (flow, called)
    assert settings.checkpoint.enabled
    assert settings.heartbeat.enabled


RESOURCE = """\
apiVersion: kafka.strimzi.io/{version}
kind: KafkaMirrorMaker2
metadata: {{name: m}}
spec:
{clusters}
    sourceConnector: {{config: {config}}}
    checkpointConnector: {{config: {config}}}
"""
BY_ALIAS = """\
  connectCluster: B
  clusters:
  - {alias: A, bootstrapServers: "a:1"}
  - {alias: B, bootstrapServers: "b:1"}
  mirrors:
  - sourceCluster: A
    targetCluster: B"""
BY_TARGET = """\
  target:
    {alias: B, bootstrapServers: "b:1", groupId: g, configStorageTopic: c, offsetStorageTopic: o, statusStorageTopic: s}
  mirrors:
  - source: {alias: A, bootstrapServers: "a:1"}"""
EMPTY = '{replication.policy.separator: "", source.cluster.alias: "", target.cluster.alias: ""}'


def resource(folder: Path, version: str, clusters: str, of_connector: str = EMPTY) -> Path:
    file = folder / "m.yaml"
    file.write_text(RESOURCE.format(version=version, clusters=clusters, config=of_connector), encoding="utf-8")
    return file


def test_alias_of_the_connector_counts_in_a_v1_resource(tmp_path: Path) -> None:
    (settings,) = load(resource(tmp_path, "v1", BY_TARGET), {}).flows
    assert (str(settings.flow), str(settings.aliases), settings.remote_topic("orders")) == ("A->B", "->", "orders")
    assert settings.control.progress_connector == "A->B.MirrorSourceConnector"


def test_alias_of_the_cluster_counts_in_a_v1alpha1_resource(tmp_path: Path) -> None:
    configuration = load(resource(tmp_path, "v1alpha1", BY_ALIAS), {})
    (settings,) = configuration.flows
    assert (str(settings.aliases), settings.remote_topic("orders")) == ("A->B", "Aorders")
    assert any("the cluster's alias 'A' counts, as in Strimzi" in remark.message for remark in configuration.unused)


def test_alias_in_a_v1beta2_resource_must_be_the_same_in_both_places(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load(resource(tmp_path, "v1beta2", BY_ALIAS), {})
    assert [problem.key.rpartition("config.")[2] for problem in raised.value.problems] == [
        "source.cluster.alias",
        "target.cluster.alias",
    ] * 2
    assert "older versions of Strimzi use the cluster's and newer ones this line" in raised.value.problems[0].message
    same = "{source.cluster.alias: A, target.cluster.alias: B}"
    assert load(resource(tmp_path, "v1beta2", BY_ALIAS, same), {}).flows[0].aliases == AB


def test_alias_of_one_connector_of_a_resource_counts_for_both(tmp_path: Path) -> None:
    file = resource(tmp_path, "v1", BY_TARGET, "{source.cluster.alias: x}")
    file.write_text(
        file.read_text().replace("checkpointConnector: {config: {source.cluster.alias: x}}", "checkpointConnector: {}")
    )
    loaded = load(file, {})
    assert loaded.flow(AB).aliases.source == "x"
    (note,) = [note for note in loaded.notes if "counts for both here" in note.message]
    assert "is not set, so it would be 'A', but" in note.message
    assert "In MirrorMaker checkpoints then name A.orders, but the copy of orders on B is x.orders" in note.message
