"""ACLs that a flow's users need: no more on the source than Strimzi lists, each with its purpose."""

import pytest

from lockstep_config.credentials.permissions import (
    Access,
    Grant,
    grant_command,
    needed_access,
    source_grants,
    target_grants,
)
from lockstep_config.flow.client_settings import offset_syncs_consumer, target_consumer

from .conftest import A_TO_B, LoadText

IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
LOGIN = (
    "B.security.protocol = SASL_SSL\nB.sasl.mechanism = PLAIN\nB.sasl.jaas.config = "
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="mirror" password="x";\n'
)

SEED = {
    ("topic", "mm2-offset-syncs.B.internal"): {"Create", "DescribeConfigs", "Read", "Write"},
    ("topic", "*"): {"DescribeConfigs", "Read"},
    ("cluster", "kafka-cluster"): {"Describe"},
    ("group", "*"): {"Describe"},
}
"""Of MirrorMaker 2's source user, in the documentation of Streams for Apache Kafka, 9.9.7."""


def test_key_partitioning_needs_a_transactional_id(load_text: LoadText) -> None:
    lines = "A->B.lockstep.legacy.group = mm1\nA->B.lockstep.legacy.partitioning = key\n"
    grants = target_grants(load_text(lines).flow(A_TO_B))
    (transactional,) = [grant for grant in grants if grant.resource == "transactional-id"]
    assert (transactional.operation, transactional.feature) == (
        "Write",
        "transactions (lockstep.legacy.partitioning=key)",
    )
    assert "Alter" not in {grant.operation for grant in grants}


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "sync.group.offsets.enabled = true\nlockstep.acls.delete = true\n",
        "exactly.once.source.support = enabled\nlockstep.on.refused = quarantine\n",
        IDENTITY,
        IDENTITY + "B->A.enabled = true\n",
        "group.id = second\n",
    ],
)
def test_source_grants_are_within_the_list(load_text: LoadText, lines: str) -> None:
    opposite = {"mm2-lockstep-state.B.internal", "mm2-lockstep-second-state.B.internal"}
    for grant in source_grants(load_text(lines).flow(A_TO_B)):
        if grant.name in opposite:
            assert grant.operation == "Read"  # which Read of every topic covers
        else:
            assert grant.operation in SEED[grant.resource, grant.name]


def test_source_grants_with_offset_syncs_on_the_target_are_read_only(load_text: LoadText) -> None:
    settings = load_text("offset-syncs.topic.location = target\n").flow(A_TO_B)
    assert {grant.operation for grant in source_grants(settings)} == {"Read", "Describe", "DescribeConfigs"}
    assert Grant("topic", "mm2-offset-syncs.A.internal", "Write", "") in [
        Grant(grant.resource, grant.name, grant.operation, "") for grant in target_grants(settings)
    ]


@pytest.mark.parametrize("lines", ["", "B.group.id = second\n", "offset-syncs.topic.location = target\n"])
def test_the_group_that_readers_on_the_target_name_may_be_read(load_text: LoadText, lines: str) -> None:
    """They join none, but librdkafka looks for its coordinator."""
    settings = load_text(lines).flow(A_TO_B)
    confs = [target_consumer(settings, "reader")]
    if settings.data_plane.offset_syncs_location == "target":
        confs.append(offset_syncs_consumer(settings))
    granted = [grant for grant in target_grants(settings) if grant.resource == "group"]
    for conf in confs:
        assert any(grant.covers("group", conf["group.id"], "Describe") for grant in granted)


def test_a_legacy_flow_commits_as_its_group_and_needs_no_other(load_text: LoadText) -> None:
    legacy = load_text("A->B.lockstep.legacy.group = mm1\n").flow(A_TO_B)
    assert [(grant.resource, grant.name, grant.operation) for grant in source_grants(legacy)] == [
        ("topic", "*", "Read"),
        ("topic", "*", "DescribeConfigs"),
        ("group", "mm1", "Read"),
    ]


def test_less_is_needed_where_less_is_done(load_text: LoadText) -> None:
    least = load_text(
        "emit.checkpoints.enabled = false\nsync.topic.acls.enabled = false\nemit.offset-syncs.enabled = false\n"
        "emit.heartbeats.enabled = false\nsync.topic.configs.enabled = false\n"
    ).flow(A_TO_B)
    assert [(grant.resource, grant.name, grant.operation) for grant in source_grants(least)] == [
        ("topic", "*", "Read"),
        ("topic", "*", "DescribeConfigs"),
    ]
    needed = {(grant.resource, grant.name, grant.operation) for grant in target_grants(least)}
    assert not {need for need in needed if need[0] == "cluster" or need[1] in ("*", "heartbeats")}
    assert ("topic", "A.", "AlterConfigs") not in needed
    assert ("topic", "A.", "DescribeConfigs") in needed


def test_copies_that_keep_their_names_have_no_prefix(load_text: LoadText) -> None:
    grants = target_grants(load_text(IDENTITY).flow(A_TO_B))
    assert {grant.pattern for grant in grants} == {"literal"}
    assert any((grant.name, grant.operation) == ("*", "Write") for grant in grants)


def test_each_grant_is_listed_once_with_all_its_features(load_text: LoadText) -> None:
    for grants in (source_grants(load_text().flow(A_TO_B)), target_grants(load_text().flow(A_TO_B))):
        assert len({(grant.resource, grant.name, grant.operation) for grant in grants}) == len(grants)
    (describe,) = (grant for grant in source_grants(load_text().flow(A_TO_B)) if grant.resource == "cluster")
    assert "consumer groups" in describe.feature
    assert "ACLs" in describe.feature


@pytest.mark.parametrize(
    ("resource", "name", "asked", "lacks", "command"),
    [
        ("topic", "A.orders", "Create", "Create on topic A.orders (topics that", "Create --topic A. --resource"),
        ("topic", "A.orders", "Describe", "Write on topic A.orders (records", "Write --topic A. --resource"),
        ("topic", "A.orders", "DescribeConfigs", "AlterConfigs on topic A.orders", "--operation AlterConfigs --topic"),
        ("topic", "heartbeats", "Write", "Write on topic heartbeats (heartbeats)", "Write --topic heartbeats"),
        ("cluster", "", "Alter", "Alter on the cluster (ACL sync adds", "--operation Alter --cluster"),
        ("group", "readers", "Describe", "Describe on group readers;", "--operation Describe --group readers"),
        ("topic", "else", "Write", "Write on topic else;", "--operation Write --topic else"),
    ],
)
def test_remedy_names_user_permission_feature_and_command(
    load_text: LoadText, resource: str, name: str, asked: str, lacks: str, command: str
) -> None:
    remedy = needed_access(load_text(LOGIN).flow(A_TO_B), "B").remedy(resource, name, asked)
    assert str(remedy).startswith(f"User:mirror lacks {lacks}")
    assert remedy.command.startswith("kafka-acls --bootstrap-server b:9092 --add --allow-principal User:mirror ")
    assert command in remedy.command


def test_a_refusal_names_the_topic_itself_before_all_topics(load_text: LoadText) -> None:
    remedy = needed_access(load_text().flow(A_TO_B), "A").remedy("topic", "mm2-offset-syncs.B.internal", "Read")
    assert "(offset syncs" in remedy.lacks
    assert "User:OURS" in remedy.command  # the file does not say as whom


def test_grant_command_quotes_shell_characters() -> None:
    words = grant_command(Grant("topic", "*", "Read", ""), "User:CN=a b,O=c", "h:1")
    assert words.endswith("--allow-principal 'User:CN=a b,O=c' --operation Read --topic '*'")


def test_remedy_without_a_flow_is_generic() -> None:
    assert Access().remedy("topic", "x", "Read").lacks == "User:OURS lacks Read on topic x"
