"""The rows that a driver makes of the lag of each moment."""

import time
from dataclasses import replace

from lockstep_data_plane.driver.lag_recorder import LagRecorder
from lockstep_state.rows.state_rows import LagBlock, MirroredTopic, Row, WorstLags
from tests.support.metered_driver import Driver, copying, row

BLOCK_MS = 600_000
BEGINS_MS = 19_677 * 144 * BLOCK_MS
"""The beginning of block 0 of a day."""


def recorder(driver: Driver) -> LagRecorder:
    driver.now = BEGINS_MS
    return LagRecorder(driver, driver.collector)  # type: ignore[arg-type]  # the attributes it reads


def sample(driver: Driver, recorder: LagRecorder) -> list[Row]:
    """Take a sample, and write its rows."""
    rows = recorder.take_sample()
    driver.say(*rows)
    return rows


def only(rows: list[Row]) -> LagBlock:
    (block,) = (row for row in rows if isinstance(row, LagBlock))
    return block


def test_a_sample_has_the_longest_lag_and_all_records() -> None:
    driver = copying(upstream=9)
    recording = recorder(driver)
    driver.observe({("t", 0): 10, ("t", 1): 5})
    driver.now += 3_000
    block = only(sample(driver, recording))
    assert (block.lag_ms, block.lag_records, block.unknown) == ((3_000,), (5,), (0,))
    assert block.records_per_s == (-1,), "the first sample measures no rate"


def test_worst_partitions_are_sampled_once_a_minute() -> None:
    driver = copying(upstream=9)
    recording = recorder(driver)
    driver.observe({("t", 0): 10, ("t", 1): 5})
    kinds = []
    for _ in range(8):
        driver.now += 10_000
        kinds.append([type(row) for row in sample(driver, recording)])
    assert kinds == [[LagBlock, WorstLags], *[[LagBlock]] * 4, [LagBlock, WorstLags], *[[LagBlock]] * 2]
    worst = driver.state.get(WorstLags, "0")
    assert worst is not None
    assert worst.partitions == (("t", 1, (10_000, 60_000)),)


def test_nothing_behind_writes_no_worst_partitions() -> None:
    driver = copying(upstream=9)
    recording = recorder(driver)
    driver.observe({("t", 0): 10, ("t", 1): 0})
    assert [type(row) for row in sample(driver, recording)] == [LagBlock]


def test_a_source_that_does_not_answer_is_unknown_and_not_zero() -> None:
    driver = copying(upstream=9)
    recording = recorder(driver)
    driver.now += 20_000
    block = only(sample(driver, recording))
    assert (block.lag_ms, block.lag_records, block.unknown) == ((-1, -1, -1), (-1, -1, -1), (-1, -1, 2))


def test_the_rate_is_of_the_records_since_the_sample_before() -> None:
    driver = copying(records=100, counts_since=1, upstream=9)
    recording = recorder(driver)
    sample(driver, recording)
    driver.say(row(records=600, counts_since=1, upstream=99))
    driver.now += 10_000
    block = only(sample(driver, recording))
    assert block.records_per_s == (-1, 50)
    driver.now += 10_000
    assert only(sample(driver, recording)).records_per_s == (-1, 50, 0)


def test_a_new_leader_goes_on_in_the_same_row() -> None:
    driver = copying(upstream=9)
    recording = recorder(driver)
    driver.observe({("t", 0): 10, ("t", 1): 0})
    sample(driver, recording)
    driver.now += 40_000
    driver.observe({("t", 0): 10, ("t", 1): 0})
    other = LagRecorder(driver, driver.collector)  # type: ignore[arg-type]  # the attributes it reads
    block = only(sample(driver, other))
    assert block.lag_ms == (0, -1, -1, -1, 0)


def test_a_moment_that_comes_twice_writes_nothing_that_says_less() -> None:
    driver = copying(upstream=9)
    recording = recorder(driver)
    driver.observe({("t", 0): 20, ("t", 1): 0})
    driver.now += 5_000
    sample(driver, recording)
    driver.say(row(upstream=19))
    driver.observe({("t", 0): 20, ("t", 1): 0})
    driver.now -= 2_000
    assert recording.take_sample() == []


def test_a_row_that_another_writer_replaced_is_written_again() -> None:
    driver = copying(upstream=9)
    recording = recorder(driver)
    driver.observe({("t", 0): 10, ("t", 1): 0})
    block = only(sample(driver, recording))
    driver.state.overwritten.add(block.key())
    assert [row.key() for row in recording.take_sample()] == [block.key()]


def test_ten_thousand_partitions_cost_little() -> None:
    driver = Driver()
    topics = [f"topic-{number}" for number in range(100)]
    driver.say(
        *(
            MirroredTopic(source_topic=topic, target_topic=topic, partitions=100, target_partitions=100)
            for topic in topics
        )
    )
    partitions = [(topic, number) for topic in topics for number in range(100)]
    driver.collector.follow(partitions)
    driver.say(*(replace(row(upstream=9), topic=topic, partition=number) for topic, number in partitions))
    driver.observe(dict.fromkeys(partitions, 20))
    recording = recorder(driver)
    began = time.process_time()
    rows = recording.take_sample()
    assert time.process_time() - began < 1.0, "a sample each ten seconds takes well below a tenth of a core"
    assert sum(len(key) + len(value) for key, value in (row.encode() for row in rows)) < 2_000
