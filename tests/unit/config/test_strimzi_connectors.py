"""Connectors of a KafkaMirrorMaker2: their config, their state, and what they have in common."""

from datetime import timedelta

import pytest

from lockstep_config.flow.connector_settings import AutoRestart
from lockstep_config.flow.model import FlowSettings
from lockstep_rules.policy import DefaultReplicationPolicy, IdentityReplicationPolicy
from tests.support.mirror_maker_2_resources import old
from tests.support.strimzi_resources import Resources


def test_key_in_the_wrong_connector_names_the_right_one(resources: Resources) -> None:
    mirror = "sourceConnector: {config: {sync.group.offsets.enabled: true}}\n    checkpointConnector: {}"
    (settings,) = resources.load(old(mirror)).flows
    assert not settings.checkpoint.sync_group_offsets, "MirrorMaker does not read it there either"
    assert "write it into checkpointConnector.config" in resources.remarked(old(mirror))


def test_strimzi_reserved_connector_key_is_ignored_with_a_note(resources: Resources) -> None:
    remarks = resources.remarks(old("sourceConnector: {config: {tasks.max: 3, name: x, connector.class: y}}"))
    assert sum("is ignored, as Strimzi does: it sets it itself" in remark for remark in remarks) == 3
    assert any("write tasksMax" in remark for remark in remarks)


def test_values_are_texts_as_connect_has_them(resources: Resources) -> None:
    mirror = 'sourceConnector: {config: {a: 1, b: true, c: yes, d: "x", e: 1.50, f: "  y"}}'
    entries = resources.entries(old(mirror))
    assert [entries[f"A->B.{key}"] for key in "abcdef"] == ["1", "true", "true", "x", "1.50", "  y"]


def test_auto_restart_and_tasks_are_each_connectors_own(resources: Resources) -> None:
    mirror = (
        "sourceConnector: {tasksMax: 4, autoRestart: {maxRestarts: 5}}\n"
        "    checkpointConnector: {tasksMax: 2, autoRestart: {enabled: false, maxRestarts: 3}}\n"
        "    heartbeatConnector: {tasksMax: 2, autoRestart: {maxRestarts: 0}}"
    )
    (settings,) = resources.load(old(mirror)).flows
    assert (settings.data_plane.tasks_max, settings.checkpoint.tasks_max) == (4, 2)
    assert settings.auto_restart.source == AutoRestart(enabled=True, max_restarts=5)
    assert settings.auto_restart.checkpoint == AutoRestart(enabled=False)
    assert settings.auto_restart.heartbeat == AutoRestart(enabled=False)
    assert "heartbeats need one task" in resources.remarked(old(mirror))


@pytest.mark.parametrize(
    ("said", "phase"),
    [
        ("state: paused", "paused"),
        ("state: stopped", "stopped"),
        ("state: running", None),
        ("pause: true", "paused"),
        ("pause: false", None),
        ("pause: true, state: running", None),
        ("pause: false, state: stopped", "stopped"),
        ("", None),
    ],
)
def test_pause_true_is_state_paused_and_state_counts(resources: Resources, said: str, phase: str | None) -> None:
    (settings,) = resources.load(old(f"sourceConnector: {{{said}}}\n    checkpointConnector: {{}}")).flows
    stated = settings.states.source
    assert (stated.phase if stated else None) == phase
    assert settings.states.checkpoint is None
    if stated:
        assert f"{resources.file}:16: spec.mirrors[0].sourceConnector." in stated.key
    remarks = resources.remarked(old(f"sourceConnector: {{{said}}}"))
    assert ("pause: has no effect: state counts" in remarks) == ("pause:" in said and "state:" in said)


def test_strimzi_setting_common_to_connectors_is_read_once(resources: Resources) -> None:
    policy = "config: {replication.policy.separator: _, admin.timeout.ms: 5000}"
    entries = resources.entries(
        old("\n    ".join(f"{name}Connector: {{{policy}}}" for name in ("source", "checkpoint", "heartbeat")))
    )
    assert entries["A->B.replication.policy.separator"] == "_"
    assert entries["A->B.admin.timeout.ms"] == "5000"
    assert not [key for key in entries if "lockstep.connector" in key]


def test_a_connector_may_be_disabled_by_its_config_as_in_mirror_maker(resources: Resources) -> None:
    off = "config: {enabled: false}"
    (settings,) = resources.load(old(f"sourceConnector: {{{off}}}\n    checkpointConnector: {{}}")).flows
    assert (settings.enabled, settings.data_plane.enabled, settings.checkpoint.enabled) == (True, False, True)
    mirror = f"sourceConnector: {{}}\n    heartbeatConnector: {{{off}}}"
    assert resources.load(old(mirror)).flows[0].heartbeat.enabled
    assert "heartbeats do not depend on it" in resources.remarked(old(mirror))


def test_strimzi_setting_may_differ_between_connectors(resources: Resources) -> None:
    mirror = (
        "sourceConnector: {config: {admin.timeout.ms: 1000}}\n"
        "    checkpointConnector: {config: {admin.timeout.ms: 2000, consumer.fetch.min.bytes: 7}}"
    )
    (settings,) = resources.load(old(mirror)).flows
    assert settings.admin_timeout == timedelta(seconds=1)
    assert settings.as_seen_by("checkpoint").admin_timeout == timedelta(seconds=2)
    assert settings.as_seen_by("checkpoint").clients.source_consumer["fetch.min.bytes"] == "7"
    assert "fetch.min.bytes" not in settings.clients.source_consumer
    assert settings.as_seen_by("heartbeat") is settings


def test_transform_of_the_checkpoint_connector_renames_no_topic(resources: Resources) -> None:
    router = (
        "{transforms: r, transforms.r.type: org.apache.kafka.connect.transforms.RegexRouter, "
        "transforms.r.regex: a, transforms.r.replacement: b}"
    )
    mirror = f"sourceConnector: {{}}\n    checkpointConnector: {{config: {router}}}"
    (settings,) = resources.load(old(mirror)).flows
    assert settings.remote_topic("A.a") == "A.A.a"
    assert not settings.renames
    assert "sourceConnector.config.transforms, which is unset, is '', and counts for both" in resources.remarked(
        old(mirror)
    )
    (settings,) = resources.load(old(f"sourceConnector: {{config: {router.replace('regex: a', 'regex: A.a')}}}")).flows
    assert settings.remote_topic("a") == "b"


def test_connection_property_of_a_connector_overrides_its_cluster(resources: Resources) -> None:
    mirror = "sourceConnector: {config: {consumer.ssl.protocol: TLSv1.3, target.producer.client.id: me}}"
    (settings,) = resources.load(old(mirror, source="ssl.protocol: TLSv1.2")).flows
    assert settings.clients.source_consumer["ssl.protocol"] == "TLSv1.3"
    assert settings.clients.source_admin["ssl.protocol"] == "TLSv1.2"
    assert settings.clients.target_producer["client.id"] == "me"


IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
DEFAULT = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
NO_COPY = "In MirrorMaker checkpoints then name A.orders, but the copy of orders on B is orders."
NO_SYNCS = "So it writes no checkpoints and moves no groups."
WORKS = "both find the same topics, so there it works as here."


def with_version(text: str, version: str) -> str:
    return text.replace("spec:\n", f'spec:\n  version: "{version}"\n', 1)


@pytest.mark.parametrize(
    ("source", "checkpoint", "version", "said"),
    [
        (
            f"replication.policy.class: {IDENTITY}",
            "",
            "4.3",
            f"spec.mirrors[0].checkpointConnector.config.replication.policy.class: is not set, so it would be "
            f"'{DEFAULT}', but spec.mirrors[0].sourceConnector.config.replication.policy.class in line 17 is "
            f"'{IDENTITY}', and counts for both here. {NO_COPY} So no position that it writes is of a topic that is "
            f"there. To have one value in both, write replication.policy.class: '{IDENTITY}' here. To have no "
            "checkpoints, leave the checkpoint connector out",
        ),
        (f"replication.policy.class: {IDENTITY}", "", "3.0", NO_COPY),
        (f"replication.policy.class: {IDENTITY}", "replication.policy.class: x.Y", "4.3", "by another rule"),
        ("replication.policy.separator: _", "", "4.3", NO_SYNCS),
        ("replication.policy.separator: _", "", "3.1", NO_SYNCS),
        ("replication.policy.separator: _", "", "3.0", "checkpoints then name A.orders, but the copy of orders on B"),
        (
            f"replication.policy.separator: _, replication.policy.class: {IDENTITY}",
            f"replication.policy.class: {IDENTITY}",
            "3.0",
            WORKS,
        ),
        (
            f"replication.policy.separator: _, replication.policy.class: {IDENTITY}",
            f"replication.policy.class: {IDENTITY}",
            "3.1",
            "reads offset syncs from mm2-offset-syncs.B.internal on the source, but the source connector writes them "
            "to mm2-offset-syncs_B_internal on the source",
        ),
        ("replication.policy.internal.topic.separator.enabled: false", "", "4.3", WORKS),
        (
            "offset-syncs.topic.location: target",
            "",
            "4.3",
            "from mm2-offset-syncs.B.internal on the source, but the source connector writes them to "
            "mm2-offset-syncs.A.internal on the target",
        ),
        ("offset-syncs.topic.location: target", "offset-syncs.topic.location: source", "4.3", NO_SYNCS),
        ("", "offset-syncs.topic.location: target", "4.3", "config.offset-syncs.topic.location, which is unset, is"),
        ("", "topics: orders", "4.3", "of those mirrored topics alone that the checkpoint connector selects"),
        ("topics: a", "topics: b", "4.3", "is 'b', but spec.mirrors[0].sourceConnector.config.topics in line 17 is"),
    ],
)
def test_connectors_that_differ_start_with_the_sources_value(
    resources: Resources, source: str, checkpoint: str, version: str, said: str
) -> None:
    mirror = f"sourceConnector: {{config: {{{source}}}}}\n    checkpointConnector: {{config: {{{checkpoint}}}}}"
    text = with_version(old(mirror), version)
    alone = with_version(old(f"sourceConnector: {{config: {{{source}}}}}\n    checkpointConnector: {{}}"), version)

    def counting(settings: FlowSettings) -> tuple[object, ...]:
        return settings.policy, settings.topics, settings.data_plane.offset_syncs_location

    assert counting(resources.load(text).flows[0]) == counting(resources.load(alone).flows[0])
    (note,) = [remark for remark in resources.remarks(text) if "counts for both here" in remark]
    assert said in note
    assert note.startswith("18 spec.mirrors[0].checkpointConnector.config.")


def test_policy_of_the_checkpoint_connector_alone_renames_nothing(resources: Resources) -> None:
    mirror = f"sourceConnector: {{}}\n    checkpointConnector: {{config: {{replication.policy.class: {IDENTITY}}}}}"
    (settings,) = resources.load(old(mirror)).flows
    assert isinstance(settings.policy, DefaultReplicationPolicy)
    assert not isinstance(settings.policy, IdentityReplicationPolicy)
    (note,) = [remark for remark in resources.remarks(old(mirror)) if "counts for both here" in remark]
    assert "In MirrorMaker checkpoints then name orders, but the copy of orders on B is A.orders." in note


@pytest.mark.parametrize(
    "mirror",
    [
        f"sourceConnector: {{config: {{replication.policy.class: {IDENTITY}}}}}\n    heartbeatConnector: {{}}",
        "sourceConnector: {config: {topics: orders}}\n    checkpointConnector: {}",
        f"sourceConnector: {{config: {{replication.policy.class: {DEFAULT}}}}}\n    checkpointConnector: {{}}",
    ],
)
def test_connectors_that_name_the_same_topics_have_no_remark(resources: Resources, mirror: str) -> None:
    assert not [remark for remark in resources.remarks(old(mirror)) if "counts for both here" in remark]
