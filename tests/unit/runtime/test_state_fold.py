"""The fold of the state topic: last row of a key, within the newest term of its service."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep_runtime.state.state_fold import BY_ROW, DIVIDED, StateFold, owner_label
from lockstep_state.rows.state_rows import ROWS as KINDS
from lockstep_state.rows.state_rows import (
    DesiredState,
    GroupStatus,
    Leader,
    MirroredTopic,
    NewerVersion,
    PartitionProgress,
    Restarts,
    Row,
    SourceGroupsStatus,
)


def topic(name: str, term: int = 0, **more: object) -> MirroredTopic:
    return MirroredTopic(source_topic=name, target_topic=f"A.{name}", term=term, **more)  # type: ignore[arg-type]  # the test's own keys


def folded(rows: Sequence[Row], into: StateFold | None = None) -> StateFold:
    fold = into or StateFold()
    for offset, row in enumerate(rows):
        fold.fold(offset, *row.encode())
    return fold


def test_the_last_row_of_a_key_counts() -> None:
    fold = folded([topic("a", partitions=1), topic("b"), topic("a", partitions=2)])
    assert [(row.source_topic, row.partitions) for row in fold.all(MirroredTopic)] == [("a", 2), ("b", 0)]
    assert fold.get(MirroredTopic, "a") == topic("a", partitions=2)
    assert fold.get(MirroredTopic, "c") is None
    assert fold.position == 2


def test_tombstone_removes_the_row() -> None:
    fold = folded([topic("a")])
    fold.fold(1, b"topic/a", None)
    assert fold.all(MirroredTopic) == []


def test_only_changes_are_reported() -> None:
    fold = StateFold()
    assert fold.fold(0, *topic("a").encode()) == topic("a")
    assert fold.fold(1, *topic("a").encode()) is None
    assert fold.fold(1, *topic("b").encode()) is None  # an offset seen already


def test_a_row_of_an_older_term_is_ignored_and_remembered_as_overwriting() -> None:
    zombie = topic("a", term=1, partitions=9)
    fold = folded([topic("x"), Leader(service="topic-sync", instance="one"), topic("a", term=1, partitions=1)])
    fold.fold(3, *Leader(service="topic-sync", instance="two").encode())
    fold.fold(4, *topic("a", term=3, partitions=2).encode())
    assert fold.fold(5, *zombie.encode()) is None
    assert fold.get(MirroredTopic, "a") == topic("a", term=3, partitions=2)
    assert fold.overwritten == {"topic/a"}  # after compaction only the zombie's row is left: write ours again
    fold.fold(6, *topic("a", term=3, partitions=2).encode())
    assert fold.overwritten == set()


def test_rows_without_a_leader_of_their_own_are_not_judged_by_terms() -> None:
    fold = folded(
        [topic("x"), Leader(service="data-plane", instance="one"), Leader(service="data-plane", instance="two")]
    )
    progress = PartitionProgress(topic="a", partition=0, term=1, upstream=5)
    assert fold.fold(3, *progress.encode()) == progress


def test_progress_of_an_epoch_that_is_over_does_not_count() -> None:
    late = PartitionProgress(topic="t", partition=0, producer_id=7, producer_epoch=1, upstream=50)
    altered = PartitionProgress(topic="t", partition=0, producer_id=7, producer_epoch=2, upstream=9, begins="altered")
    assert folded([late, altered, late]).all(PartitionProgress) == [altered]
    other = PartitionProgress(topic="t", partition=0, producer_id=8, producer_epoch=0)
    assert folded([altered, other]).all(PartitionProgress) == [other], "of another chain it may be"


def test_every_kind_of_row_has_its_writer() -> None:
    assert {kind: row.owned_by for kind, row in KINDS.items()} == {
        **dict.fromkeys(("topic", "cluster"), "topic-sync"),
        **dict.fromkeys(("acl", "acl-binding"), "acl-sync"),
        **dict.fromkeys(("group", "source-groups"), "checkpoint"),
        **dict.fromkeys(
            ("assignment", "origin", "legacy", "verification", "source-ends", "seen", "transform"), "data-plane"
        ),
        **dict.fromkeys(("lag", "lag-worst"), "data-plane"),
        "flow": "heartbeat",
        **dict.fromkeys(("wanted", "restarts", "handover", "leader", "partition", "runs", "slot", "verify")),
        **dict.fromkeys(("switch", "switch-topic", "switch-group")),
    }
    assert all(kind.owned_by is None for kind in BY_ROW)
    assert all(kind.owned_by for kind in DIVIDED)


@pytest.mark.parametrize(
    ("row", "label"),
    [
        (DesiredState(scope="connector:MirrorSourceConnector"), "topic-sync"),
        (DesiredState(scope="partition:a-b-3"), "topic-sync"),
        (DesiredState(scope="slot:3"), "topic-sync"),
        (DesiredState(scope="connector:MirrorCheckpointConnector"), "checkpoint-0"),
        (DesiredState(scope="connector:MirrorHeartbeatConnector"), "heartbeat"),
        (Restarts(owner="checkpoint-4"), "checkpoint-4"),
        (SourceGroupsStatus(share=3, phase="read"), "checkpoint-3"),
        (Restarts(owner="data-plane", subject="slot:1"), "data-plane"),
    ],
)
def test_owner_of_a_row_may_be_in_the_row(row: Row, label: str) -> None:
    assert owner_label(row) == label


def test_a_row_of_divided_work_is_judged_by_the_leader_of_its_share() -> None:
    """Group `orders` falls to partition 0: only that partition's leaders count."""
    row = GroupStatus(group="orders", phase="waiting", term=2)
    assert owner_label(row) == "checkpoint-0"
    fold = folded([topic("x"), Leader(service="checkpoint-5", instance="one")])
    fold.fold(2, *Leader(service="checkpoint-0", instance="one").encode())
    fold.fold(3, *Leader(service="checkpoint-5", instance="two").encode())
    assert fold.fold(4, *row.encode()) == row
    fold.fold(5, *Leader(service="checkpoint-0", instance="two").encode())
    late = GroupStatus(group="orders", phase="failing", term=2)
    assert fold.fold(6, *late.encode()) is None
    assert fold.get(GroupStatus, "orders") == row
    assert fold.overwritten == {"group/orders"}


def test_leader_rows_are_reported_with_their_offsets() -> None:
    leaders: list[tuple[str, str, int]] = []
    folded([topic("x"), Leader(service="s", instance="one")], StateFold(lambda *row: leaders.append(row)))
    assert leaders == [("s", "one", 1)]


@pytest.mark.parametrize("wants", [None, frozenset[type[Row]]()])
def test_newer_version_stops_every_reader_with_a_sentence(wants: frozenset[type[Row]] | None) -> None:
    key, value = topic("a").encode()
    with pytest.raises(NewerVersion, match="run the newer release"):
        StateFold(wants=wants).fold(0, key, json.dumps({**json.loads(value), "version": 2}).encode())


def test_state_fold_does_not_parse_unwanted_kinds() -> None:
    fold = StateFold(wants=frozenset({MirroredTopic}))
    fold.fold(0, *Leader(service="topic-sync", instance="one").encode())
    fold.fold(1, *PartitionProgress(topic="a", partition=0).encode())
    fold.fold(2, b"partition/a/1", b'{"version":1,nonsense')
    fold.fold(3, b"partition/a/0", None)
    fold.fold(4, *topic("a").encode())
    fold.fold(5, *DesiredState(scope="topic:a").encode())
    fold.fold(6, b"colours/a", b'{"version":1}')
    assert sorted(fold.rows) == ["leader/topic-sync", "topic/a", "wanted/topic:a"]
    assert fold.position == 6


def test_kinds_do_not_begin_like_one_another() -> None:
    assert not any(a != b and a.startswith(b + "/") for a in KINDS for b in KINDS)
    assert all(cls.version == 1 for cls in KINDS.values()), "READ_BY_ALL passes over what is of version 1 only"


ROWS = st.lists(
    st.one_of(
        st.builds(topic, st.sampled_from("ab"), st.integers(0, 6), partitions=st.integers(0, 3)),
        st.builds(lambda replica: Leader(service="topic-sync", instance=replica), st.sampled_from(["one", "two"])),
    ),
    max_size=12,
)


@given(ROWS)
def test_folding_everything_twice_changes_nothing(rows: list[Row]) -> None:
    once = folded(rows)
    before = dict(once.rows), set(once.overwritten), once.position
    folded(rows, once)
    assert (once.rows, once.overwritten, once.position) == before
