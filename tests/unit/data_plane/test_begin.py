"""MM2's own progress is where a partition of its flow is taken over (`mm2.md` §1.7)."""

from __future__ import annotations

from lockstep_data_plane.begin import fold_progress
from lockstep_protocol.codec import encode_source_progress, encode_source_progress_reset
from lockstep_runtime.follow import Record


def entry(key: bytes | None, value: bytes | None) -> Record:
    return Record("mm2-offsets.A.internal", 0, 0, key, value, 0)


def progress(topic: str, partition: int, offset: int, *, cluster: str = "A") -> Record:
    return entry(*encode_source_progress(cluster, topic, partition, offset))


def folded(*records: Record, known: dict[tuple[str, int], int] | None = None) -> dict[tuple[str, int], int]:
    known = {} if known is None else known
    fold_progress(known, records, "A")
    return known


def test_the_last_entry_of_each_partition_holds() -> None:
    records = [progress("t", 0, 4), progress("t", 1, 7), progress("t", 0, 9)]
    assert folded(*records) == {("t", 0): 9, ("t", 1): 7}


def test_it_can_be_set_back() -> None:
    assert folded(progress("t", 0, 9), progress("t", 0, 2)) == {("t", 0): 2}


def test_a_tombstone_is_a_reset() -> None:
    gone = entry(*encode_source_progress_reset("A", "t", 0))
    assert folded(progress("t", 0, 9), gone) == {}
    assert folded(gone) == {}


def test_other_clusters_and_connectors_do_not_matter() -> None:
    others = [
        progress("t", 0, 5, cluster="B"),
        entry(b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]', b'{"offset":6}'),
        entry(b'["some-sink",{"partition":0}]', b'{"offset":7}'),
    ]
    assert folded(*others) == {}


def test_what_is_no_entry_at_all_does_not_stop_it() -> None:
    assert folded(entry(None, b"x"), entry(b"\xff", b"x"), entry(b"[]", b"{}"), progress("t", 0, 3)) == {("t", 0): 3}


def test_folding_the_same_entries_twice_changes_nothing() -> None:
    records = [progress("t", 0, 4), progress("t", 1, 7)]
    assert folded(*records, known=folded(*records)) == folded(*records)
