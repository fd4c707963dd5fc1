"""What the bench reckons and counts of a large flow."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lockstep_data_plane.driver.load_balancer import assign
from lockstep_kafka.topics.topic_reader import Record
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import Assignment, MirroredTopic, PartitionProgress
from tools.bench.modelled_fleet import ModelledFleet
from tools.bench.parts import PARTS
from tools.bench.results import Failed, Readings
from tools.bench.scale import balance, heavy_slots, imbalance, least_moved, measure_planning, merged, moved
from tools.bench.state_replay import READERS, WANTS, fold_of_reader
from tools.bench.state_traffic import begun_row, moved_row

MB = 1e6
T: list[TopicPartition] = [("t", number) for number in range(8)]


def test_fleet_has_the_partitions_and_bytes_asked_for() -> None:
    fleet = ModelledFleet.modelled(1_000, 50 * MB)
    assert len(fleet.partitions) == len(set(fleet.partitions)) == 1_000
    assert sum(topic.partitions for topic in fleet.topics) == 1_000
    assert sum(fleet.rates.values()) == pytest.approx(50 * MB)
    assert min(fleet.rates.values()) > 0


def test_fleet_is_the_same_each_time() -> None:
    assert ModelledFleet.modelled(500, MB) == ModelledFleet.modelled(500, MB)
    assert ModelledFleet.modelled(500, MB) != ModelledFleet.modelled(500, MB, seed=1)


def test_few_topics_of_a_fleet_move_most() -> None:
    fleet = ModelledFleet.modelled(2_000, 100.0)
    by_topic = sorted(
        (sum(fleet.rates[topic.source_topic, n] for n in range(topic.partitions)) for topic in fleet.topics),
        reverse=True,
    )
    assert [by_topic[0] / rate for rate in by_topic[:3]] == pytest.approx([1, 2, 3])


def test_fleet_with_topics_keeps_what_it_had() -> None:
    fleet = ModelledFleet.modelled(100, MB)
    larger = fleet.with_topics(3, 8)
    assert len(larger.partitions) == 124
    assert {tp: larger.rates[tp] for tp in fleet.partitions} == fleet.rates
    assert sum(larger.rates.values()) == pytest.approx(MB)


def test_moved_partitions_are_those_with_another_slot() -> None:
    before = {0: T[0:2], 1: T[2:4]}
    assert moved(before, {0: [T[0], T[2]], 1: [T[1], T[3], T[4]]}) == 2
    assert moved(before, {0: T[0:4]}) == 2


def test_least_moved_is_what_the_lost_slots_had() -> None:
    for slots, remaining in ((5, 4), (5, 3), (7, 6)):
        held = assign(T, slots, {})
        assert least_moved(len(T), slots, remaining) == sum(len(held[slot]) for slot in range(remaining, slots))


def test_imbalance_is_the_heaviest_slot_to_the_mean() -> None:
    held, rates = {0: T[0:2], 1: T[2:4]}, {T[0]: 3.0, T[1]: 3.0, T[2]: 2.0}
    assert imbalance(held, rates) == 1.5
    assert heavy_slots(held, rates) == 0
    assert heavy_slots(held, {**rates, T[2]: 1.0}) == 1


def test_balance_ends_with_a_division_that_stays() -> None:
    held = {0: T[0:4], 1: T[4:8]}
    rates = dict(zip(T, [9 * MB, 8 * MB, 7 * MB, 6 * MB, 0.0, 0.0, 0.0, 0.0], strict=True))
    after, rounds, _ = balance(held, rates)
    assert rounds == 1
    assert (imbalance(held, rates), imbalance(after, rates)) == (2.0, 1.4)
    assert balance(after, rates)[:2] == (after, 0)


def test_planning_of_a_small_fleet_moves_as_few_as_possible(tmp_path: Path) -> None:
    values = measure_planning(tmp_path, ModelledFleet.modelled(230, 20 * MB), 5).values
    assert values["plan_again_moved"] == values["plan_added_moved"] == 0
    assert values["plan_lost_moved"] == values["plan_lost_least"] == 46
    assert values["imbalance_before"] >= values["imbalance_after"] >= values["imbalance_least"] - 1e-9
    assert values["metrics_page_mb"] > 0.1, "the page has the partitions"
    assert values.keys() <= {row.key for row in PARTS["scale"].rows}


def test_failed_part_is_beside_what_was_measured() -> None:
    failed = Failed(reason="no broker")
    planned = Readings(values={"plan_first_ms": 1.0}, notes=["a note"])
    assert merged({"planning": planned, "state topic": failed}) == {"lockstep": planned, "state topic": failed}
    assert merged({"planning": failed}) == {"planning": failed}


def test_row_of_a_moving_partition_changes_as_a_slot_changes_it() -> None:
    row = begun_row(("t", 3), 7, 470.0, 1_000_000_000_000)
    assert (row.upstream, row.records, row.slot) == (864_000 - 1, 864_000, 7)
    later = moved_row(row, 10, 1_000_000_001_000)
    assert (later.upstream, later.downstream, later.source_end) == (864_009, 864_009, 864_010)
    assert later.bytes - row.bytes == 4_700
    assert later.continues(row)
    assert not later.is_outdated_by(row)


def records(*rows: MirroredTopic | PartitionProgress | Assignment) -> list[Record]:
    encoded = [row.encode() for row in rows]
    return [Record("state", 0, offset, key, value, 0) for offset, (key, value) in enumerate(encoded)]


@pytest.mark.parametrize("reader", READERS)
def test_each_reader_folds_the_rows_of_a_flow(reader: str) -> None:
    fold: Callable[[Record], object] = fold_of_reader(reader)
    topic, row, assigned = records(
        MirroredTopic(source_topic="t", target_topic="A.t", partitions=1, target_partitions=1),
        begun_row(("t", 0), 0, 1.0, 1),
        Assignment(slot=0, partitions=(("t", 0),)),
    )
    folded = [fold(topic), fold(row), fold(assigned)]
    wants = WANTS.get(reader, {MirroredTopic, PartitionProgress, Assignment})
    kinds = [MirroredTopic, PartitionProgress, Assignment]
    assert [row is not None for row in folded] == [kind in wants for kind in kinds]
