"""Only committed progress counts, whoever else has a transaction open in the topic (`committed_progress.py`)."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from lockstep_data_plane.progress.committed_progress import CommittedProgress
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_state.codecs.mm2_codec import encode_source_progress, encode_source_progress_reset
from tests.support.batch_bytes import CONTROL, TRANSACTIONAL, batch, record

PLAIN = (-1, -1, -1)


def progress(at: int, partition: int, offset: int, producer: int = -1, cluster: str = "S") -> Batch:
    key, value = encode_source_progress(cluster, "t", partition, offset)
    mine = PLAIN if producer < 0 else (producer, 0, 0)
    attributes = 0 if producer < 0 else TRANSACTIONAL
    return batch([record(at, value, key=key)], producer=mine, attributes=attributes)


def ended(at: int, producer: int, *, commit: bool) -> Batch:
    key = struct.pack(">hh", 0, 1 if commit else 0)
    return batch([record(at, b"\0" * 6, key=key)], producer=(producer, 0, -1), attributes=TRANSACTIONAL | CONTROL)


def known(*batches: Batch, connector: str = "MirrorSourceConnector") -> dict[tuple[str, int], int | None]:
    fold = CommittedProgress()
    fold.apply(batches)
    return of_source(fold, connector)


def of_source(fold: CommittedProgress, connector: str = "MirrorSourceConnector") -> dict[tuple[str, int], int | None]:
    """What is known of the partitions of S."""
    changes = [(change.source_partition(), change.offset) for change in fold.offsets.for_connector(connector).values()]
    return {place[1]: offset for place, offset in changes if place is not None and place[0] == "S"}


def test_a_record_outside_of_transactions_counts_at_once() -> None:
    assert known(progress(0, 3, 40), progress(1, 3, 41)) == {("t", 3): 41}


def test_batch_that_cannot_be_read_is_passed_over() -> None:
    passed_over: list[int] = []
    fold = CommittedProgress(lambda offset, _: passed_over.append(offset))
    fold.apply([progress(0, 3, 40), progress(1, 3, 41)._replace(record_count=9), progress(2, 4, 7)])
    assert of_source(fold) == {("t", 3): 40, ("t", 4): 7}
    assert passed_over == [1]


def test_a_transaction_counts_with_its_marker() -> None:
    assert known(progress(0, 3, 40, 7)) == {}
    assert known(progress(0, 3, 40, 7), ended(1, 7, commit=True)) == {("t", 3): 40}
    assert known(progress(0, 3, 40, 7), ended(1, 7, commit=False)) == {}


def test_committed_progress_ignore_another_open_transaction() -> None:
    assert known(progress(0, 1, 9, 6), progress(1, 3, 40, 7), ended(2, 7, commit=True)) == {("t", 3): 40}


def test_committed_progress_ignore_an_aborted_transaction() -> None:
    batches = [progress(0, 3, 50, 7), ended(1, 7, commit=False), progress(2, 4, 1, 7), ended(3, 7, commit=True)]
    assert known(*batches) == {("t", 4): 1}


def test_a_reset_forgets() -> None:
    key, value = encode_source_progress_reset("S", "t", 3)
    assert known(progress(0, 3, 40), batch([record(1, value, key=key)])) == {}


def test_committed_progress_can_go_back() -> None:
    assert known(progress(0, 3, 40), progress(1, 3, 2)) == {("t", 3): 2}


def test_committed_progress_skip_a_malformed_entry() -> None:
    strange = [record(0, b"x", key=None), record(1, b"x", key=b"\xff"), record(2, b"{}", key=b"[]")]
    assert known(batch(strange), progress(3, 3, 40)) == {("t", 3): 40}


def test_committed_progress_ignore_other_clusters_and_connectors() -> None:
    strange = batch([record(1, b"{}", key=b"not json"), record(2, None, key=b'["heartbeat", {}]')])
    assert known(progress(0, 3, 40, cluster="X"), strange) == {}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from(["write", "commit", "abort"]))))
def test_committed_progress_equal_a_read_committed_consumer(steps: list[tuple[int, int, str]]) -> None:
    fold = CommittedProgress()
    open_now: dict[int, dict[tuple[str, int], int]] = {}
    wanted: dict[tuple[str, int], int] = {}
    for at, (producer, partition, what) in enumerate(steps):
        if what == "write":
            fold.apply([progress(at, partition, at, producer)])
            open_now.setdefault(producer, {})["t", partition] = at
        else:
            fold.apply([ended(at, producer, commit=what == "commit")])
            held = open_now.pop(producer, {})
            wanted |= held if what == "commit" else {}
        assert of_source(fold) == wanted


def test_committed_progress_are_kept_by_connector() -> None:
    mine, other = (encode_source_progress("S", "t", 3, offset, name) for offset, name in ((40, "mine"), (90, "other")))
    written = [batch([record(at, value, key=key)]) for at, (key, value) in enumerate((mine, other))]
    assert known(*written, connector="mine") == {("t", 3): 40}
    reset = encode_source_progress_reset("S", "t", 3, "other")
    forgotten = batch([record(2, reset[1], key=reset[0])])
    assert known(*written, forgotten, connector="mine") == {("t", 3): 40}
    assert known(*written, forgotten, connector="other") == {}
