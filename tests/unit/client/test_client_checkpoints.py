"""Checkpoints folded into positions. Numbers are those of MM2's own tests (`mm2-behaviour.md` §7)."""

import re
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_client import MirrorClient
from lockstep_client.checkpoints import CheckpointFold, Groups, RemoteOffsets
from lockstep_state.codecs.mm2_codec import Checkpoint, UnsupportedRecordVersion, encode_checkpoint
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


def checkpoint(group: str, topic: str, partition: int, up: int, down: int, metadata: str = "") -> Checkpoint:
    return Checkpoint(group, topic, partition, UpstreamOffset(up), DownstreamOffset(down), metadata)


def folded(groups: Groups, *checkpoints: Checkpoint) -> RemoteOffsets:
    fold = CheckpointFold(groups)
    for committed in checkpoints:
        fold.apply_record(*encode_checkpoint(committed))
    return fold.result()


GROUP_1 = [
    checkpoint("group1", "s.t1", 0, 1, 1),
    checkpoint("group1", "s.t2", 1, 3, 4, "mine"),
    checkpoint("group1", "s.t1", 0, 99, 66),
]
GROUP_2 = [checkpoint("group2", "s.t1", 0, 7, 5), checkpoint("group2", "s.t1", 1, 7, 6)]


@pytest.mark.parametrize("alias", [None, "", 3])
def test_mm2_017_an_alias_is_needed(alias: object) -> None:
    with pytest.raises(ValueError, match="source_alias"):
        MirrorClient(NOWHERE).remote_consumer_offsets(cast(Any, alias), "group")


@pytest.mark.parametrize("groups", [None, "", b"group"])
def test_mm2_017_a_group_or_a_pattern_is_needed(groups: object) -> None:
    with pytest.raises(ValueError, match="groups"):
        MirrorClient(NOWHERE).remote_consumer_offsets("A", cast(Any, groups))


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan")])
def test_mm2_017_a_time_is_needed(timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        MirrorClient(NOWHERE).remote_consumer_offsets("A", "group", timeout)


def test_mm2_018_the_last_checkpoint_of_a_partition_counts() -> None:
    """A group that went back on the source goes back here: the last one counts, not the furthest."""
    offsets = folded("group1", *GROUP_1, *GROUP_2)
    assert offsets.for_group("group1") == {("s.t1", 0): GROUP_1[2], ("s.t2", 1): GROUP_1[1]}
    back = checkpoint("group1", "s.t1", 0, 3, 2)
    assert folded("group1", *GROUP_1, back).for_group("group1")["s.t1", 0] == back


def test_mm2_018_a_pattern_selects_groups_by_their_whole_id() -> None:
    offsets = folded(re.compile("group[0-9]"), *GROUP_1, *GROUP_2)
    assert offsets.groups == {"group1", "group2"}
    assert offsets.for_group("group2") == {("s.t1", 0): GROUP_2[0], ("s.t1", 1): GROUP_2[1]}
    assert folded(re.compile("group"), *GROUP_1, *GROUP_2) == RemoteOffsets()


def test_mm2_018_an_unknown_group_has_no_position() -> None:
    assert folded("group3", *GROUP_1) == RemoteOffsets()
    assert folded("group1", *GROUP_1).for_group("group3") == {}


def test_mm2_018_a_group_given_as_text_is_no_pattern() -> None:
    dotted, other = checkpoint("a.c", "s.t", 0, 1, 1), checkpoint("abc", "s.t", 0, 2, 2)
    assert folded("a.c", dotted, other).checkpoints == (dotted,)


def test_mm2_018_groups_that_match_one_pattern_stay_apart() -> None:
    """As MM2 has it since KIP-1239: before, the group that came last in the topic won each partition."""
    again = checkpoint("group1", "s.t1", 1, 8, 8)
    offsets = folded(re.compile(".*"), again, *GROUP_2)
    assert offsets.for_group("group1") == {("s.t1", 1): again}
    assert offsets.for_group("group2")["s.t1", 1] == GROUP_2[1]


def test_checkpoints_are_in_the_order_of_their_last_writing() -> None:
    assert folded("group1", *GROUP_1).checkpoints == (GROUP_1[1], GROUP_1[2])


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\x00\x01g", None),
        (b"\x00", b"\x00\x00"),
        (b"\x00\x02g", b"\x00\x00"),
        (b"no checkpoint", b"\x00\x00at all"),
    ],
)
def test_malformed_checkpoint_is_skipped_and_counted(key: bytes | None, value: bytes | None) -> None:
    fold = CheckpointFold("group1")
    fold.apply_record(key, value)
    fold.apply_record(*encode_checkpoint(GROUP_1[0]))
    assert fold.result() == RemoteOffsets((GROUP_1[0],), malformed=1)


def test_a_checkpoint_of_another_version_is_not_guessed_at() -> None:
    """KAFKA-20659: a later version may mean something else by the same bytes."""
    key, value = encode_checkpoint(GROUP_1[0])
    with pytest.raises(UnsupportedRecordVersion, match="version 1"):
        CheckpointFold("group1").apply_record(key, b"\x00\x01" + value[2:])


few = st.integers(0, 2)
checkpoints = st.builds(checkpoint, st.sampled_from("ab"), st.sampled_from(["s.t", "s.u"]), few, few, few)


@given(st.lists(checkpoints))
def test_positions_are_those_of_a_plain_dictionary(written: list[Checkpoint]) -> None:
    offsets = folded(re.compile(".*"), *written)
    assert {g: dict(offsets.for_group(g)) for g in offsets.groups} == {
        group: {(committed.topic, committed.partition): committed for committed in written if committed.group == group}
        for group in {committed.group for committed in written}
    }


@given(st.lists(checkpoints))
def test_reading_the_same_records_twice_changes_nothing(written: list[Checkpoint]) -> None:
    assert folded("a", *written, *written).for_group("a") == folded("a", *written).for_group("a")
