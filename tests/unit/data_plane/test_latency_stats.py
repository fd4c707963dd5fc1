"""Record age and replication latency, from batch headers."""

from lockstep_data_plane.core.append_sequence import Ack
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.progress.latency_stats import LatencyStats
from lockstep_data_plane.record_batch.outgoing_batch import as_outgoing
from lockstep_protocol.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, batch, record, records

ROW = PartitionProgress(topic="t", partition=0)


def partition() -> PartitionMachine:
    return PartitionMachine("t", 0, "a.t", 100)


def test_a_row_is_as_it_was_while_nothing_was_measured() -> None:
    assert LatencyStats().with_stats(ROW) is ROW


def test_latency_of_a_batch_spreads_over_its_first_and_largest_timestamp() -> None:
    stats, p = LatencyStats(), partition()
    stats.fetched(p, [batch(records(0, 3)), batch(records(3, 1))], 700, 2000)  # timestamps 1000 to 1003
    row = stats.with_stats(ROW)
    assert row.age_window == (2000, 997, 997, 1000, 998)
    assert row.latency_window == ()
    assert (row.read_bytes, row.counts_since) == (700, 2000)


def test_latency_is_measured_when_the_target_has_the_batch() -> None:
    stats, p = LatencyStats(), partition()
    stats.fetched(p, [batch(records(0, 2))], 100, 1500)
    stats.acknowledged(p, [Ack(as_outgoing(batch(records(0, 2))), 0, 100)], 1600)
    row = stats.with_stats(ROW)
    assert row.age_window[1:] == (499, 499, 500, 500)
    assert row.latency_window[1:] == (599, 599, 600, 600)


def test_a_row_of_anybody_gets_counts_that_belong_together() -> None:
    stats, p = LatencyStats(), partition()
    pieces = [as_outgoing(batch(records(0, 2))), as_outgoing(batch(records(2, 3)))]
    stats.fetched(p, [], 900, 1500)
    stats.acknowledged(p, [Ack(piece, 0, piece.size) for piece in pieces], 1600)
    another = PartitionProgress(topic="t", partition=0, records=700, bytes=70_000, read_bytes=1, counts_since=3)
    row = stats.with_stats(another)
    assert (row.counts_since, row.records, row.bytes, row.read_bytes) == (1500, 5, sum(p.size for p in pieces), 900)


def test_times_of_the_future_are_shown_as_they_are() -> None:
    stats, p = LatencyStats(), partition()
    stats.fetched(p, [batch([record(0, timestamp=9000)])], 1, 5000)
    assert stats.with_stats(ROW).age_window[1:] == (-4000,) * 4


def test_latency_ignores_records_without_timestamps() -> None:
    stats, p = LatencyStats(), partition()
    stats.fetched(p, [batch([record(0, timestamp=-1)]), batch(records(1, 1), attributes=CONTROL)], 1, 5000)
    assert stats.with_stats(ROW).age_window == ()


def test_log_append_time_is_the_time_of_every_record() -> None:
    stats, p = LatencyStats(), partition()
    stats.fetched(p, [batch(records(0, 2), attributes=LOG_APPEND_TIME, max_timestamp=4000)], 1, 5000)
    assert stats.with_stats(ROW).age_window[1:] == (1000,) * 4


def test_a_delete_horizon_is_no_time_of_a_record() -> None:
    stats, p = LatencyStats(), partition()
    one = batch(records(0, 2))._replace(base_timestamp=90_000)
    stats.fetched(p, [one._replace(attributes=one.attributes | DELETE_HORIZON)], 1, 5000)
    assert stats.with_stats(ROW).age_window[1:] == (3999,) * 4


def test_a_partition_that_comes_back_counts_anew() -> None:
    stats, p = LatencyStats(), partition()
    stats.fetched(p, [batch(records(0, 2))], 100, 2000)
    stats.remove(p)
    stats.fetched(p, [batch(records(0, 2))], 50, 3000)
    row = stats.with_stats(ROW)
    assert (row.read_bytes, row.counts_since) == (50, 3000)
