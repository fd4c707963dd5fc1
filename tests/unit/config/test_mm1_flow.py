"""A legacy flow in an mm2.properties file."""

import pytest

from lockstep_state.names import Flow

from .conftest import A_TO_B, LoadText, MistakesOf


def test_the_group_makes_a_flow_a_legacy_one(load_text: LoadText) -> None:
    flow = load_text("A->B.lockstep.legacy.group = mm1\n").flow(A_TO_B)
    assert flow.data_plane.legacy is not None
    assert flow.data_plane.legacy.group == "mm1"
    assert flow.policy.format_remote_topic("A", "orders") == "orders"
    assert not flow.checkpoint.enabled


def test_legacy_key_leaves_other_flows_of_the_file_unchanged(load_text: LoadText) -> None:
    loaded = load_text("A->B.lockstep.legacy.group = mm1\nB->A.enabled = true\n")
    flow = loaded.flow(Flow("B", "A"))
    assert flow.data_plane.legacy is None
    assert flow.checkpoint.enabled
    assert flow.policy.format_remote_topic("B", "orders") == "B.orders"
    assert flow.data_plane.auto_offset_reset == "earliest"


def test_without_a_group_its_keys_change_nothing(load_text: LoadText) -> None:
    loaded = load_text("A->B.lockstep.legacy.partitioning = key\n")
    assert [problem.key for problem in loaded.unused] == ["A->B.lockstep.legacy.partitioning"]


BY_KEY = "A->B.lockstep.legacy.group = mm1\nA->B.lockstep.legacy.partitioning = key\n"


def test_partitions_by_key_go_in_transactions_and_leave_the_targets_counts(load_text: LoadText) -> None:
    flow = load_text(BY_KEY).flow(A_TO_B)
    assert flow.data_plane.by_key
    assert flow.data_plane.exactly_once
    assert flow.topic_sync.keeps_counts
    kept = load_text(BY_KEY.replace("= key", "= preserve")).flow(A_TO_B)
    assert not kept.data_plane.by_key
    assert not kept.data_plane.exactly_once
    assert not kept.topic_sync.keeps_counts


@pytest.mark.parametrize("key", ["emit.checkpoints.enabled", "emit.offset-syncs.enabled"])
def test_key_partitioning_refuses_offset_translation_keys(
    mistakes_of: MistakesOf, load_text: LoadText, key: str
) -> None:
    messages = mistakes_of(BY_KEY + f"A->B.{key} = true\n")
    assert [
        message
        for message in messages
        if message.startswith(f"7 A->B.{key}: is true, but with lockstep.legacy.partitioning=key")
    ]
    load_text(BY_KEY + f"A->B.{key} = false\n")


def test_partitions_by_key_and_several_origins_exclude_each_other(mistakes_of: MistakesOf) -> None:
    lines = BY_KEY + "B->A.enabled = true\nB->A.lockstep.legacy.group = mm2\nA->B.lockstep.provenance = relay\n"
    [messages] = mistakes_of(lines)
    assert "lockstep.legacy.partitioning=key: a transactional id cannot distinguish several origins" in messages
    assert "A->B.lockstep.legacy.partitioning=preserve" in messages


def test_renamed_topics_and_a_legacy_flow_exclude_each_other(mistakes_of: MistakesOf) -> None:
    policy = "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
    [messages] = mistakes_of(f"A->B.lockstep.legacy.group = mm1\nA->B.replication.policy.class = {policy}\n")
    assert "topics keep their names" in messages


def test_quarantine_and_ending_exclude_each_other(mistakes_of: MistakesOf, load_text: LoadText) -> None:
    lines = "A->B.lockstep.legacy.group = mm1\nA->B.lockstep.on.refused = quarantine\n"
    [messages] = mistakes_of(lines)
    assert "lockstep.legacy.abort.on.send.failure=false" in messages
    load_text(lines + "A->B.lockstep.legacy.abort.on.send.failure = false\n")


def test_legacy_group_of_two_flows_is_refused(mistakes_of: MistakesOf, load_text: LoadText) -> None:
    lines = "clusters = A, B, C\nC.bootstrap.servers = c:1\nA->C.enabled = true\n"
    lines += "A->B.lockstep.legacy.group = mm1\nA->C.lockstep.legacy.group = "
    messages = mistakes_of(lines + "mm1\n")
    assert any("give each a group of its own" in message for message in messages), messages
    load_text(lines + "mm1-c\n")
