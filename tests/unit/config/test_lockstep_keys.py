"""Lockstep's own keys: MM2's version, first starts, ACLs, failing back, restarts, switches."""

from datetime import timedelta

import pytest

from lockstep_config.flow.connector_settings import AutoRestart
from lockstep_rules.filters import DEFAULT_TOPICS_EXCLUDE
from lockstep_rules.switch.switch_readiness import SwitchLimits
from lockstep_state.names import Flow

from .conftest import A_TO_B, LoadText, MistakesOf, ab, excluded, patterns

BA = Flow("B", "A")


def test_the_version_chooses_names_cycles_and_the_defaults_of_excludes(load_text: LoadText) -> None:
    usual = ab(load_text, "")
    assert (usual.rules.version, patterns(usual.topics).exclude) == ("4.3", DEFAULT_TOPICS_EXCLUDE)
    old = ab(load_text, "lockstep.mm2.version = 3.9.1\n")
    assert patterns(old.topics).exclude == (r".*[\-\.]internal", r".*\.replica", "__.*")
    assert old.policy.is_internal_topic("foo.internal")
    assert not usual.policy.is_internal_topic("foo.internal")
    assert old.config_properties.should_replicate_config_property("log.message.timestamp.after.max.ms")
    oldest = ab(load_text, "lockstep.mm2.version = 3.0\nreplication.policy.separator = _\n")
    assert oldest.policy.checkpoints_topic("A") == "A.checkpoints.internal"
    assert ab(load_text, "lockstep.mm2.version = 4.4\n").rules.cycle_by_source


def test_key_set_in_the_file_overrides_the_default_of_every_version(load_text: LoadText) -> None:
    old = ab(load_text, "lockstep.mm2.version = 3.9\ntopics.exclude = x.*\nconfig.properties.exclude = y\n")
    assert (patterns(old.topics).exclude, excluded(old.config_properties).exclude) == (("x.*",), ("y",))
    older = ab(load_text, "lockstep.mm2.version = 3.9\ntopics.blacklist = x.*\n")
    assert patterns(older.topics).exclude == ("x.*",)


def test_flows_may_have_different_versions(load_text: LoadText) -> None:
    loaded = load_text("B->A.enabled = true\nB->A.lockstep.mm2.version = 3.9\n")
    assert [loaded.flow(flow).rules.version for flow in (A_TO_B, BA)] == ["4.3", "3.9"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("lockstep.mm2.version = 2.8", "known from 3.0 to 4.4"),
        ("lockstep.mm2.version = newest", "write it as 4.3"),
        ("lockstep.delay = 30", "write 90s, 30m, 2h or 1d, or 0 for none"),
        ("lockstep.delay = 30m, orders=-5m", "write 90s, 30m, 2h or 1d, or 0 for none"),
        ("lockstep.delay = 366d", "the most it may be is 365d"),
        ("lockstep.delay = 999999999999d", "the most it may be is 365d"),
        ("lockstep.start.timestamp = yesterday", "write Unix milliseconds, or 2026-01-31T12:00:00Z"),
        ("lockstep.start.timestamp = 2026-01-31T12:00:00", "write 2026-01-31T12:00:00Z for UTC"),
        ("lockstep.start.timestamp = orders=-5", "the least it may be is 0"),
        ("lockstep.start.timestamp = 99999999999999999999999", "the most it may be is 253402300799999"),
        ("lockstep.start.timestamp = 9999-12-31T23:59:59-23:59", "after the year 9999"),
        ("lockstep.acls.delete = perhaps", "write true or false"),
        ("lockstep.acls.delete.max = 0", "the least it may be is 1"),
        ("lockstep.auto.restart.max = 0", "the least it may be is 1"),
        ("lockstep.switch.max.lag.seconds = 0", "the least it may be is 1"),
    ],
)
def test_lockstep_key_with_a_bad_value_names_the_accepted_values(
    mistakes_of: MistakesOf, line: str, expected: str
) -> None:
    (mistake,) = mistakes_of(line + "\n")
    assert mistake.startswith(f"5 {line.partition(' ')[0]}: ")
    assert expected in mistake


def test_a_first_copy_begins_at_a_time_of_its_topic(load_text: LoadText) -> None:
    plane = ab(load_text, "lockstep.start.timestamp = 1800000000000, orders.*=2026-01-31T12:00:00+01:00\n").data_plane
    assert plane.start_timestamp.for_topic("payments") == 1_800_000_000_000
    assert plane.start_timestamp.for_topic("orders-eu") == 1_769_857_200_000
    assert ab(load_text, "").data_plane.start_timestamp.for_topic("orders") is None


def test_acls_follow_mm2s_rule_unless_asked(load_text: LoadText) -> None:
    usual = ab(load_text, "").acl_sync
    assert (usual.prefixed, usual.groups, usual.delete, usual.delete_max) == (False, False, False, 10)
    asked = ab(
        load_text,
        "lockstep.acls.prefixed = true\nlockstep.acls.groups = true\nlockstep.acls.delete = true\n"
        "A->B.lockstep.acls.delete.max = 3\n",
    ).acl_sync
    assert (asked.prefixed, asked.groups, asked.delete, asked.delete_max) == (True, True, True, 3)


THREE = "clusters = A, B, C\n" + "".join(f"{alias}.bootstrap.servers = {alias.lower()}:9092\n" for alias in "ABC")
IDENTITY = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"


@pytest.mark.parametrize(
    ("flows", "lines", "shared"),
    [
        ("A->B", IDENTITY, ()),
        ("A->B B->A", "", ()),
        ("A->B B->A", IDENTITY, ("B->A",)),
        ("A->B B->A", "lockstep.acls.groups = true\n", ("B->A",)),
        ("A->B B->A", IDENTITY + "B->A.sync.topic.acls.enabled = false\n", ()),
        ("A->B C->B", IDENTITY, ("C->B",)),
        ("C->A A->B", IDENTITY, ()),
        ("A->B B->C C->A", IDENTITY, ("C->A",)),
    ],
)
def test_acls_that_keep_their_name_are_shared_with_other_flows(
    load_text: LoadText, flows: str, lines: str, shared: tuple[str, ...]
) -> None:
    enabled = "".join(f"{flow}.enabled = true\n" for flow in flows.split())
    loaded = load_text(whole=THREE + enabled + lines).flow(Flow("A", "B"))
    assert tuple(str(flow) for flow in loaded.acl_sync.shared) == shared


def test_groups_fail_back_by_the_flow_in_the_opposite_direction(load_text: LoadText) -> None:
    assert ab(load_text, "").checkpoint.opposite is None, "B->A only beats"
    pair = load_text("B->A.enabled = true\nA.group.id = two\n")
    assert pair.flow(A_TO_B).checkpoint.opposite == "mm2-lockstep-two-state.B.internal"
    assert pair.flow(BA).checkpoint.opposite == "mm2-lockstep-state.A.internal"
    elsewhere = ab(load_text, "lockstep.checkpoint.opposite = mm2-lockstep-x-state.B.internal\nB->A.enabled = true\n")
    assert elsewhere.checkpoint.opposite == "mm2-lockstep-x-state.B.internal"


def test_groups_rewound_on_the_source_stay_unless_follow_is_set(load_text: LoadText) -> None:
    assert not ab(load_text, "").checkpoint.follow_rewinds
    assert ab(load_text, "lockstep.groups.on.rewind = follow\n").checkpoint.follow_rewinds
    assert ab(load_text, "A->B.lockstep.groups.on.rewind = follow\n").checkpoint.follow_rewinds


@pytest.mark.parametrize("key", ["lockstep.fence", "A->B.lockstep.fence"])
@pytest.mark.parametrize("more", ["", "exactly.once.source.support = enabled\n", "A->B.enabled = false\n"])
def test_provenance_marker_is_refused_with_its_replacement(mistakes_of: MistakesOf, key: str, more: str) -> None:
    (expected,) = mistakes_of(f"{key} = Marker\n{more}")
    assert expected == (
        f"5 {key}: is 'Marker', which was removed: transactions cost 4 to 9 % and close the window that the marker "
        "only narrows. Set exactly.once.source.support=enabled instead (docs/guides/transactions.md), or remove this "
        "line"
    )


def test_fence_accepts_chain_only(load_text: LoadText, mistakes_of: MistakesOf) -> None:
    loaded = load_text("lockstep.fence = Chain\n")
    assert loaded.notes == loaded.unused == ()
    (expected,) = mistakes_of("lockstep.fence = lease\n")
    assert expected == "5 lockstep.fence: is 'lease': it takes chain"


def test_progress_is_kept_under_a_connectors_name(load_text: LoadText) -> None:
    assert ab(load_text, "").control.progress_connector == "MirrorSourceConnector"
    strimzi = ab(load_text, "lockstep.progress.connector = A->B.MirrorSourceConnector\n")
    assert strimzi.control.progress_connector == "A->B.MirrorSourceConnector"


def test_auto_restart_has_no_limit_by_default(load_text: LoadText) -> None:
    assert ab(load_text, "").auto_restart.source == AutoRestart(enabled=True, max_restarts=None)
    limited = ab(load_text, "lockstep.auto.restart.max = 7\n").auto_restart
    assert {limited.source, limited.checkpoint, limited.heartbeat} == {AutoRestart(max_restarts=7)}
    loaded = load_text("lockstep.auto.restart.enabled = false\nlockstep.auto.restart.max = 7\n")
    assert not loaded.flow(A_TO_B).auto_restart.source.enabled
    assert {unused.key for unused in loaded.unused} == {"lockstep.auto.restart.max"}


def test_switch_permits_ten_seconds_of_lag_unless_the_flow_sets_more(load_text: LoadText) -> None:
    assert ab(load_text, "").switch.max_lag == timedelta(seconds=10)
    two = load_text("B->A.enabled = true\nB->A.lockstep.switch.max.lag.seconds = 90\n")
    assert [two.flow(flow).switch.max_lag.total_seconds() for flow in (A_TO_B, BA)] == [10, 90]


def test_switch_limits_follow_group_sync_and_the_flow_back(load_text: LoadText) -> None:
    assert ab(load_text, "").switch_limits == SwitchLimits(
        max_lag_ms=10_000, syncs_groups=False, max_groups_age_ms=120_000
    )
    lines = (
        "sync.group.offsets.enabled = true\nlockstep.switch.max.lag.seconds = 3\n"
        "emit.checkpoints.interval.seconds = 1\n"
    )
    assert ab(load_text, lines).switch_limits == SwitchLimits(max_lag_ms=3000, syncs_groups=True)
    assert ab(load_text, lines + "B->A.enabled = true\n").switch_limits.both_ways
    assert not ab(load_text, lines + "emit.checkpoints.enabled = false\n").switch_limits.syncs_groups


def test_delay_is_a_length_of_time_for_each_topic_but_not_for_heartbeats(load_text: LoadText) -> None:
    settings = ab(load_text, "lockstep.delay = 30m, audit.*=2h, alerts=0, fast=1500ms\n")
    delays = {topic: settings.delay_ms(topic) for topic in ("orders", "audit-eu", "alerts", "fast", "heartbeats")}
    assert delays == {"orders": 1_800_000, "audit-eu": 7_200_000, "alerts": 0, "fast": 1_500, "heartbeats": 0}
    assert settings.data_plane.least_delay == timedelta(milliseconds=1500)
    assert ab(load_text, "").data_plane.least_delay is None
    assert ab(load_text, "").delay_ms("orders") == 0
