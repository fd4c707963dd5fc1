"""What is counted of a partition, and record age and replication latency, from batch headers."""

from lockstep_data_plane.core.acked_position import CopyStats
from lockstep_data_plane.core.append_sequence import Ack
from lockstep_data_plane.record_batch.layout import as_outgoing
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.batch_bytes import CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, batch, record, records

ROW = PartitionProgress(topic="t", partition=0)


def test_a_row_is_as_it_was_while_nothing_was_measured() -> None:
    assert CopyStats().with_counts(ROW) is ROW


def test_latency_of_a_batch_spreads_over_its_first_and_largest_timestamp() -> None:
    stats = CopyStats()
    stats.count_fetched([batch(records(0, 3)), batch(records(3, 1))], 700, 2000)  # timestamps 1000 to 1003
    row = stats.with_counts(ROW)
    assert row.age_window == (2000, 997, 997, 1000, 998)
    assert row.latency_window == ()
    assert (row.read_bytes, row.counts_since) == (700, 2000)


def test_latency_is_measured_when_the_target_has_the_batch() -> None:
    stats = CopyStats()
    stats.count_fetched([batch(records(0, 2))], 100, 1500)
    stats.count_acknowledged([Ack(as_outgoing(batch(records(0, 2))), 0, 100)], 1600)
    row = stats.with_counts(ROW)
    assert row.age_window[1:] == (499, 499, 500, 500)
    assert row.latency_window[1:] == (599, 599, 600, 600)


def test_latency_of_a_batch_counted_later_is_that_of_its_acknowledgement() -> None:
    stats = CopyStats()
    first, second = as_outgoing(batch(records(0, 2))), as_outgoing(batch([record(2, timestamp=1100)]))
    none = as_outgoing(batch([record(3, timestamp=-1)]))
    stats.count_acknowledged(
        [Ack(first, 0, 1, at_ms=1600), Ack(none, 3, 1, at_ms=1650), Ack(second, 2, 1, at_ms=1700)], 5000
    )
    row = stats.with_counts(ROW)
    assert row.latency_window == (5000, 600, 599, 600, 600)
    assert (row.latency_ms, row.records) == (600, 4)


def test_a_row_of_anybody_gets_counts_that_belong_together() -> None:
    stats = CopyStats()
    outgoing_batches = [as_outgoing(batch(records(0, 2))), as_outgoing(batch(records(2, 3)))]
    stats.count_fetched([], 900, 1500)
    stats.count_acknowledged([Ack(outgoing, 0, outgoing.size) for outgoing in outgoing_batches], 1600)
    another = PartitionProgress(topic="t", partition=0, records=700, bytes=70_000, read_bytes=1, counts_since=3)
    row = stats.with_counts(another)
    assert (row.counts_since, row.records, row.bytes, row.read_bytes) == (
        1500,
        5,
        sum(p.size for p in outgoing_batches),
        900,
    )


def test_times_of_the_future_are_shown_as_they_are() -> None:
    stats = CopyStats()
    stats.count_fetched([batch([record(0, timestamp=9000)])], 1, 5000)
    assert stats.with_counts(ROW).age_window[1:] == (-4000,) * 4


def test_latency_ignores_records_without_timestamps() -> None:
    stats = CopyStats()
    stats.count_fetched([batch([record(0, timestamp=-1)]), batch(records(1, 1), attributes=CONTROL)], 1, 5000)
    assert stats.with_counts(ROW).age_window == ()


def test_log_append_time_is_the_time_of_every_record() -> None:
    stats = CopyStats()
    stats.count_fetched([batch(records(0, 2), attributes=LOG_APPEND_TIME, max_timestamp=4000)], 1, 5000)
    assert stats.with_counts(ROW).age_window[1:] == (1000,) * 4


def test_a_delete_horizon_is_no_time_of_a_record() -> None:
    stats = CopyStats()
    source = batch(records(0, 2))._replace(base_timestamp=90_000)
    stats.count_fetched([source._replace(attributes=source.attributes | DELETE_HORIZON)], 1, 5000)
    assert stats.with_counts(ROW).age_window[1:] == (3999,) * 4


def test_latency_of_batches_acknowledged_one_by_one_is_that_of_each() -> None:
    stats = CopyStats()
    for number, now_ms in enumerate((1600, 1900, 1700)):
        outgoing = as_outgoing(batch([record(number, timestamp=1000 + 100 * number)]))
        stats.count_acknowledged([Ack(outgoing, number, outgoing.size)], now_ms)
    assert stats.with_counts(ROW).latency_window == (1700, 500, 500, 800, 633)
    outgoing = as_outgoing(batch([record(3, timestamp=1000)]))
    stats.count_acknowledged([Ack(outgoing, 3, outgoing.size)], 32_000)
    stats.count_acknowledged([Ack(outgoing, 3, outgoing.size)], 64_000)
    row = stats.with_counts(ROW)
    assert row.latency_window == (64_000, 63_000, 31_000, 63_000, 47_000), "those of the first minute are forgotten"
