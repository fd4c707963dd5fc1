"""MM2's own MirrorMakerConfigTest as far as it applies here; the numbers are those of `mm2-behaviour.md` §7."""

from datetime import timedelta

import pytest

from lockstep_config import Configuration, FlowSettings
from lockstep_config.flow.client_settings import client_id, source_consumer, target_producer
from lockstep_config.keys.mm2_keys import KEYS
from lockstep_rules.policy import DefaultReplicationPolicy
from lockstep_state.names import Flow

from .conftest import LoadText, MistakesOf, excluded, patterns


def clusters(*aliases: str) -> str:
    return "\n".join([f"clusters = {','.join(aliases)}", *(f"{a}.bootstrap.servers = {a}:9092" for a in aliases), ""])


def pairs(configuration: Configuration) -> list[str]:
    return [str(settings.flow) for settings in configuration.flows]


def flow(configuration: Configuration, source: str = "A", target: str = "B") -> FlowSettings:
    return configuration.flow(Flow(source, target))


def test_mm2_085_each_cluster_has_its_address_and_the_common_security(load_text: LoadText) -> None:
    settings = flow(load_text("security.protocol = SSL\nssl.endpoint.identification.algorithm =\n"))
    assert (settings.source.bootstrap, settings.target.bootstrap) == ("a:9092", "b:9092")
    for properties in (settings.source.properties, settings.clients.source_consumer, settings.clients.target_producer):
        assert properties["security.protocol"] == "SSL"


def test_mm2_086_a_setting_of_the_flow_reaches_it_and_no_other(load_text: LoadText) -> None:
    loaded = load_text("A->B.tasks.max = 123\nB->A.tasks.max = 456\n")
    assert flow(loaded).data_plane.tasks_max == 123
    assert flow(loaded, "B", "A").data_plane.tasks_max == 456


def test_mm2_087_client_property_of_a_cluster_overrides_cluster_and_file(load_text: LoadText) -> None:
    settings = flow(
        load_text(
            "replication.policy.separator = __\n"
            "ssl.key.password = ${env:TOP}\n"
            "A.ssl.key.password = cluster\n"
            "A.producer.ssl.key.password = producer\n"
            "metric.reporters = com.example.Reporter\n"
            "config.providers = env\n"
            "config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider\n",
            environment={"TOP": "top"},
        )
    )
    assert settings.policy.format_remote_topic("A", "t") == "A__t"
    assert settings.clients.source_consumer["ssl.key.password"] == "cluster"
    assert settings.clients.source_producer["ssl.key.password"] == "producer"
    assert settings.clients.target_consumer["ssl.key.password"] == "top"


def test_mm2_088_connector_property_at_the_top_applies_to_every_flow(load_text: LoadText) -> None:
    loaded = load_text("tasks.max = 100\ntopics = topic-1\ngroups = group-2\nreplication.policy.separator = _\n")
    for settings in loaded.flows:
        assert settings.data_plane.tasks_max == 100
        assert (patterns(settings.topics).include, patterns(settings.groups).include) == (("topic-1",), ("group-2",))
        assert settings.policy == DefaultReplicationPolicy("_", True)


def test_mm2_088_an_unknown_one_is_named_where_mm2_drops_it_silently(load_text: LoadText) -> None:
    assert [f"{remark.line} {remark.key}: {remark.message}" for remark in load_text("xxx = yyy\n").unused] == [
        "5 xxx: has no effect: it is no key that MirrorMaker or Lockstep knows; nothing like it is known: remove it"
    ]


def test_mm2_089_a_flows_own_topics_and_exclusions_reach_its_filter(load_text: LoadText) -> None:
    loaded = load_text("A->B.topics = topic1, topic2\nA->B.topics.exclude = topic3\nB->A.topics = topic4\n")
    assert flow(loaded).topics.matches("topic2")
    assert not flow(loaded).topics.matches("topic3")
    assert not flow(loaded).topics.matches("topic4")
    assert flow(loaded, "B", "A").topics.matches("topic4")


def test_mm2_090_the_worker_is_the_targets(load_text: LoadText) -> None:
    settings = flow(
        load_text(
            "offset.storage.replication.factor = 5\nB.offset.storage.replication.factor = 7\n"
            "B.producer.max.request.size = 4000000\nB.offset.storage.partitions = 9\nA.offset.storage.partitions = 8\n"
            "B.ssl.key.password = secret\n"
        )
    )
    assert settings.control.storage_replication_factor == 5  # the top beats the target's own, here only
    assert settings.control.offset_storage_partitions == 9
    assert settings.control.offset_storage_topic == "mm2-offsets.A.internal"
    assert settings.clients.data_producer["max.request.size"] == "4000000"
    assert settings.clients.data_producer["ssl.key.password"] == "secret"
    assert client_id(settings, "replication-consumer", {}) == "A->B|MirrorSourceConnector|replication-consumer"


def test_mm2_072_091_every_ordered_pair_has_heartbeats(load_text: LoadText) -> None:
    loaded = load_text(whole=clusters("A", "B", "C"))
    assert pairs(loaded) == ["A->B", "A->C", "B->A", "B->C", "C->A", "C->B"]
    assert not any(settings.enabled for settings in loaded.flows)
    assert all(settings.heartbeat.enabled for settings in loaded.flows)


def test_mm2_071_092_without_heartbeats_nothing_runs(load_text: LoadText) -> None:
    loaded = load_text(whole=clusters("A", "B", "C") + "emit.heartbeats.enabled = false\n")
    assert loaded.flows == ()
    assert any("no flow runs" in note.message for note in loaded.notes)


def test_mm2_071_093_heartbeats_can_be_off_for_two_pairs(load_text: LoadText) -> None:
    lines = "A->B.emit.heartbeats.enabled = false\nA->C.emit.heartbeats.enabled = false\n"
    assert pairs(load_text(whole=clusters("A", "B", "C") + lines)) == ["B->A", "B->C", "C->A", "C->B"]


def test_mm2_031_037_disabled_flow_has_no_checkpoints_and_no_mistakes(
    load_text: LoadText, mistakes_of: MistakesOf
) -> None:
    at_odds = "A->B.emit.offset-syncs.enabled = false\nA->B.offset-syncs.topic.location = target\n"
    (mistake,) = mistakes_of(at_odds)
    assert "A->B writes no offset syncs" in mistake
    off = "A->B.enabled = false\n"
    loaded = load_text(whole=clusters("A", "B") + off + at_odds)
    assert not flow(loaded).checkpoint.enabled
    assert flow(loaded).heartbeat.enabled
    assert not any("checkpoints" in note.message for note in loaded.notes)
    assert not flow(load_text(whole=clusters("A", "B") + off)).checkpoint.enabled
    assert flow(load_text()).checkpoint.enabled


@pytest.mark.parametrize(
    ("lines", "notes"),
    [
        (
            "emit.offset-syncs.enabled = false\n",
            ["is false, so A->B has no checkpoints: set emit.checkpoints.enabled=false to say so"],
        ),
        ("emit.checkpoints.enabled = false\n", ["is false, so A->B has no checkpoints"]),
        (
            "emit.checkpoints.enabled = false\nsync.group.offsets.enabled = true\n",
            ["is false, so A->B has no checkpoints and moves no group, although sync.group.offsets.enabled is true"],
        ),
        (
            "emit.checkpoints.enabled = false\nemit.offset-syncs.enabled = false\n",
            ["is false, so A->B has no checkpoints"],
        ),
        ("emit.checkpoints.enabled = true\nsync.group.offsets.enabled = true\n", []),
    ],
)
def test_mm2_032_flow_without_checkpoints_or_offset_syncs_is_noted(
    load_text: LoadText, lines: str, notes: list[str]
) -> None:
    loaded = load_text(lines)
    assert flow(loaded).checkpoint.enabled is not bool(notes)
    assert [(note.line, note.message) for note in loaded.notes] == [(5, note) for note in notes]


ENABLED = "B.exactly.once.source.support = enabled\n"
COMMITTED = "A.consumer.isolation.level = read_committed\n"
REQUIRED = "A->B.exactly.once.support = required\n"


@pytest.mark.parametrize(
    ("lines", "needed"),
    [
        ("", "B.exactly.once.source.support=enabled and A.consumer.isolation.level=read_committed"),
        (ENABLED, "A.consumer.isolation.level=read_committed"),
        (COMMITTED, "B.exactly.once.source.support=enabled"),
        # The flow's own source consumer beats the cluster's.
        (
            ENABLED + COMMITTED + "A->B.source.consumer.isolation.level = read_uncommitted\n",
            "A.consumer.isolation.level=read_committed",
        ),
    ],
)
def test_mm2_129_130_exactly_once_that_is_required_needs_committed_records(
    mistakes_of: MistakesOf, lines: str, needed: str
) -> None:
    assert mistakes_of(REQUIRED + lines) == [f"5 A->B.exactly.once.support: is required, so A->B needs {needed}"]
    beside = mistakes_of(REQUIRED + lines + "tasks.max = none\n")
    assert len(beside) == 2, "any other mistake is said beside it"


def test_mm2_129_130_exactly_once_where_supported_has_no_mistakes(load_text: LoadText) -> None:
    assert flow(load_text(REQUIRED + ENABLED + COMMITTED)).data_plane.exactly_once
    own = "A->B.source.consumer.isolation.level = read_committed\n"
    assert flow(load_text(REQUIRED + ENABLED + own)).data_plane.exactly_once
    assert flow(load_text("A->B.exactly.once.support = requested\n" + ENABLED)).data_plane.exactly_once
    assert not flow(load_text(whole=clusters("A", "B") + REQUIRED)).enabled, "nothing is asked of a flow that is off"


def test_keys_of_source_connectors_alone_have_no_effect_at_the_top(load_text: LoadText) -> None:
    """Dedicated MM2 keeps there only what its own three ConfigDefs name, and these are Connect's."""
    names = {"exactly.once.support": "required", "transaction.boundary": "interval"}
    names["transaction.boundary.interval.ms"] = "250"
    loaded = load_text("".join(f"{key} = {value}\n" for key, value in names.items()))
    assert [(remark.key, remark.message) for remark in loaded.unused] == [
        (key, f"has no effect: MirrorMaker does not read it here: write SOURCE->TARGET.{key}") for key in names
    ]
    assert flow(loaded).data_plane.transaction_interval is None


def test_mm2_094_heartbeats_off_runs_enabled_flows_only(load_text: LoadText) -> None:
    lines = "emit.heartbeats.enabled = false\n" + "".join(
        f"{pair}.enabled = true\n" for pair in ("A->B", "A->D", "E->F")
    )
    assert pairs(load_text(whole=clusters("A", "B", "C", "D", "E", "F") + lines)) == ["A->B", "A->D", "E->F"]


def test_mm2_095_two_regions_feed_a_centre(load_text: LoadText) -> None:
    lines = (
        "emit.heartbeats.enabled = false\ncentral->local1.enabled = true\ncentral->local2.enabled = true\n"
        "central->local1.emit.heartbeats.enabled = true\nlocal1->central.emit.heartbeats.enabled = true\n"
    )
    loaded = load_text(whole=clusters("central", "local1", "local2") + lines)
    assert pairs(loaded) == ["central->local1", "central->local2", "local1->central"]
    assert [settings.enabled for settings in loaded.flows] == [True, True, False]
    assert [settings.heartbeat.enabled for settings in loaded.flows] == [True, False, True]


@pytest.mark.parametrize("key", ["security.protocol", "A.security.protocol", "A.consumer.security.protocol"])
def test_mm2_066_096_097_an_invalid_security_protocol_is_refused(mistakes_of: MistakesOf, key: str) -> None:
    assert mistakes_of(f"{key} = abc\n") == [f"5 {key}: is 'abc': it takes PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"]


def test_mm2_067_098_the_security_protocol_may_be_written_in_any_case(load_text: LoadText) -> None:
    settings = flow(load_text("security.protocol = sSl\n"))
    assert settings.source.properties["security.protocol"] == "SSL"
    assert source_consumer(settings, "replication-consumer")["security.protocol"] == "SSL"


def test_mm2_099_the_table_has_the_names_of_all_three_connectors() -> None:
    assert {"topics", "groups", "emit.heartbeats.enabled"} <= set(KEYS)


def test_mm2_100_references_are_resolved_once_for_every_layer(load_text: LoadText) -> None:
    # MM2 hands them on unresolved to its workers; here nothing reads a setting before the file is loaded.
    settings = flow(
        load_text(
            "config.providers = env\nA.consumer.client.rack = ${env:RACK}\n"
            "config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider\n",
            environment={"RACK": "r1"},
        )
    )
    assert source_consumer(settings, "replication-consumer")["client.rack"] == "r1"


def test_a_top_level_enabled_starts_no_pair_but_enables_those_that_run(load_text: LoadText) -> None:
    assert all(settings.enabled for settings in load_text(whole=clusters("A", "B") + "enabled = true\n").flows)
    lines = "enabled = true\nemit.heartbeats.enabled = false\n"
    assert load_text(whole=clusters("A", "B") + lines).flows == ()


def test_the_defaults_are_mm2s(load_text: LoadText) -> None:
    settings = flow(load_text())
    assert settings.enabled
    assert patterns(settings.topics).include == (".*",)
    assert patterns(settings.topics).exclude == (r"mm2.*\.internal", r".*\.replica", "__.*")
    assert patterns(settings.groups).exclude == ("console-consumer-.*", "connect-.*", "__.*")
    assert excluded(settings.config_properties).use_defaults_from == "target"
    assert not settings.config_properties.should_replicate_config_property("min.insync.replicas")
    assert settings.topic_sync.refresh_every == timedelta(seconds=600)
    assert settings.topic_sync.replication_factor == 2
    assert settings.acl_sync.enabled
    assert settings.checkpoint.enabled
    assert settings.checkpoint.emit_every == timedelta(seconds=60)
    assert not settings.checkpoint.sync_group_offsets
    assert settings.checkpoint.topic_replication_factor == 3
    assert settings.heartbeat.every == timedelta(seconds=1)
    assert settings.data_plane.offset_lag_max == 100
    assert settings.data_plane.offset_syncs_location == "source"
    assert settings.data_plane.isolation_level == "read_uncommitted"
    assert settings.data_plane.auto_offset_reset == "earliest"
    assert settings.data_plane.compression_type is None
    assert settings.control.offset_storage_partitions == 25
    assert settings.admin_timeout == timedelta(seconds=60)


def test_where_lockstep_differs_from_mm2s_defaults(load_text: LoadText) -> None:
    settings = flow(load_text("B.offset.flush.interval.ms = 60000\n"))
    assert settings.data_plane.tasks_max is None  # one slot per core, not one
    assert settings.data_plane.offset_flush_every == timedelta(seconds=1)  # never rarer than each second


def test_replication_factors_of_storage_and_control_topics(load_text: LoadText) -> None:
    settings = flow(load_text("replication.factor = -1\noffset.storage.replication.factor = -1\n"))
    assert settings.topic_sync.replication_factor == -1, "the brokers' default"
    assert (settings.control.storage_replication_factor, settings.control.replication_factor) == (-1, -1)
    lines = "offset.storage.replication.factor = 2\n"
    assert flow(load_text(lines)).control.replication_factor == 2
    assert flow(load_text(lines + "lockstep.control.replication.factor = 1\n")).control.replication_factor == 1


def test_the_facts_about_a_producer_are_not_held_back_by_its_batching(load_text: LoadText) -> None:
    producer = target_producer(flow(load_text("B.producer.linger.ms = 50\n")), "state-producer")
    assert "linger.ms" not in producer
    assert producer["acks"] == "all"
