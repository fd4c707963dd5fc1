"""The fold of acknowledged checkpoints (`mm2-behaviour.md` §3.4, nos. 25 and 26)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_checkpoint.checkpoint_fold import WrittenCheckpoints
from lockstep_state.codecs.mm2_codec import Checkpoint, MalformedRecord, UnsupportedRecordVersion, encode_checkpoint
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset

TP = ("A.orders", 0)


def checkpoint(downstream: int, group: str = "billing", topic: str = "A.orders", partition: int = 0) -> Checkpoint:
    return Checkpoint(group, topic, partition, UpstreamOffset(downstream), DownstreamOffset(downstream), "")


def read(written: WrittenCheckpoints, at: int, record: Checkpoint) -> None:
    written.fold(at, *encode_checkpoint(record))


def test_mm2_025_the_last_checkpoint_of_each_group_and_partition_counts() -> None:
    """Also one of a group that went back. A record read again changes nothing."""
    written = WrittenCheckpoints()
    log = [checkpoint(9), checkpoint(5, "shipping"), checkpoint(3), checkpoint(2, partition=1)]
    for offset, record in [*enumerate(log), (0, log[0])]:
        read(written, offset, record)
    assert written.for_group("billing") == {TP: checkpoint(3), ("A.orders", 1): checkpoint(2, partition=1)}
    assert written.for_group("shipping") == {TP: checkpoint(5, "shipping")}
    assert written.for_group("unknown") == {}


def test_an_acknowledged_checkpoint_counts_before_it_is_read_back() -> None:
    written = WrittenCheckpoints()
    written.record_all([7, 8], [checkpoint(5), checkpoint(6, partition=1)])
    assert written.for_group("billing")[TP].downstream == 5
    read(written, 6, checkpoint(4))  # the follower is behind the acknowledgement
    read(written, 7, checkpoint(5))
    assert written.for_group("billing")[TP].downstream == 5


@pytest.mark.parametrize(("key", "value"), [(b"", b""), (None, b"x"), (b"\0\1g", None), (b"\0\x09g", b"\0\0")])
def test_mm2_025_malformed_records_are_passed_over_and_counted(key: bytes | None, value: bytes | None) -> None:
    written = WrittenCheckpoints()
    with pytest.raises(MalformedRecord):
        written.fold(0, key, value)
    read(written, 1, checkpoint(3))
    assert written.malformed == 1
    assert written.for_group("billing")[TP].downstream == 3


def test_a_checkpoint_of_a_later_version_is_not_guessed_at() -> None:
    key, value = encode_checkpoint(checkpoint(3))
    with pytest.raises(UnsupportedRecordVersion):
        WrittenCheckpoints().fold(0, key, b"\x00\x01" + value[2:])


LOGS = st.lists(
    st.builds(checkpoint, st.integers(0, 50), st.sampled_from("ab"), partition=st.integers(0, 2)), max_size=30
)


@given(LOGS, st.data())
def test_checkpoint_fold_is_independent_of_order_and_repetition(log: list[Checkpoint], data: st.DataObject) -> None:
    straight, crooked = WrittenCheckpoints(), WrittenCheckpoints()
    for at, record in enumerate(log):
        read(straight, at, record)
    positions = list(range(len(log)))
    for at in [*data.draw(st.permutations(positions)), *data.draw(st.permutations(positions))]:
        read(crooked, at, log[at])
    assert all(straight.for_group(group) == crooked.for_group(group) for group in "ab")
