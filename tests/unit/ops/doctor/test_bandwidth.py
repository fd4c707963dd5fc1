"""doctor's checks of measured rates, and leftovers of its scratch topics."""

from dataclasses import replace

import pytest

from lockstep_ops.doctor.checks.bandwidth import (
    BandwidthFacts,
    MeasuredRate,
    judge_bandwidth,
    megabytes,
    received_rate,
    slots_for,
)
from lockstep_ops.doctor.checks.check import CheckFinding, Result
from lockstep_ops.doctor.checks.cluster import ClockFacts
from lockstep_ops.doctor.checks.scratch_topic import OLD_MS, PREFIX, ScratchRun, leftover_topics

MB = 1e6
FACTS = BandwidthFacts(
    flow="A->B",
    source="A",
    target="B",
    topic="scratch",
    partitions=2,
    write=MeasuredRate(400 * MB, 500_000_000),
    read_back=MeasuredRate(900 * MB, 500_000_000),
    read=MeasuredRate(100 * MB, 80_000_000),
    clock=ClockFacts("x", 1.0, 1.0),
    cores=8,
)
OWN = ScratchRun("host-1", 17, 1_800_000_000_000)


def judged(facts: BandwidthFacts) -> dict[str, CheckFinding]:
    return {finding.check.code: finding for finding in judge_bandwidth(facts)}


def test_slower_side_is_what_to_expect() -> None:
    findings = judged(FACTS)
    assert list(findings) == ["LD903", "LD904", "LD905", "LD906", "LD907"]
    assert findings["LD906"].detail.startswith(
        "expect 100 MB/s; tasks.max 1 is enough. Reading from A is the slower side; a slot copies about 180 MB/s"
    )
    assert findings["LD904"].detail == "400 MB/s, measured over 500 MB; read back with 900 MB/s"


def test_source_without_records_leaves_the_rate_of_writing() -> None:
    findings = judged(replace(FACTS, read=MeasuredRate(trouble="no record", is_too_little=True)))
    assert findings["LD905"].result is Result.SKIPPED
    assert findings["LD906"].detail.startswith("expect 400 MB/s; tasks.max 3 is enough. Only writing to B was measured")


def test_source_that_cannot_be_read_is_unknown() -> None:
    assert judged(replace(FACTS, read=MeasuredRate(trouble="denied")))["LD905"].result is Result.UNKNOWN


@pytest.mark.parametrize(
    ("tasks_max", "cores", "result"), [(1, 8, Result.WARNING), (3, 1, Result.OK), (None, 2, Result.WARNING)]
)
def test_too_few_slots_for_the_rate_are_a_warning(tasks_max: int | None, cores: int, result: Result) -> None:
    facts = replace(FACTS, read=None, tasks_max=tasks_max, cores=cores)
    assert judged(facts)["LD906"].result is result


def test_topic_that_is_refused_leaves_one_line() -> None:
    facts = replace(FACTS, trouble="cluster B does not permit to create", fix="kafka-acls", write=None)
    (finding,) = judged(facts).values()
    assert (finding.result, finding.fix) == (Result.FAILED, "kafka-acls")


def test_topic_that_could_not_be_removed_fails_beside_the_rates() -> None:
    findings = judged(replace(FACTS, trouble="scratch could not be removed"))
    assert findings["LD903"].result is Result.FAILED
    assert findings["LD906"].result is Result.OK


def test_removed_leftovers_are_named() -> None:
    assert judged(replace(FACTS, leftovers=("x",)))["LD903"].detail.endswith("; removed what a killed run left: x")


@pytest.mark.parametrize(
    ("rate", "has_tls", "slots"), [(1.0, False, 1), (180 * MB, False, 1), (181 * MB, False, 2), (181 * MB, True, 3)]
)
def test_slots_follow_from_the_rate(rate: float, has_tls: bool, slots: int) -> None:  # a case
    assert slots_for(rate, has_tls=has_tls) == slots


@pytest.mark.parametrize(("size", "text"), [(123_456_789, "123"), (1_450_000, "1.4"), (20_000, "0.02")])
def test_megabytes_are_as_exact_as_they_are_small(size: float, text: str) -> None:
    assert megabytes(size) == text


@pytest.mark.parametrize(
    ("sizes", "rate"),
    [
        ([0, 5_000, 50_000_000, 52_000_000, 54_000_000, 56_000_000, 58_000_000, 58_000_100], 100e6),
        ([0, 2_000_000, 4_000_000, 4_000_000, 6_000_000, 8_000_000, 10_000_000], 100e6),  # a pause is left out
        ([0, 50_000_000, 50_000_100, 50_000_200], None),
        ([0, 2_000_000, 4_000_000, 6_000_000], None),
        ([], None),
    ],
)
def test_rate_of_reading_is_that_of_intervals_with_data(sizes: list[int], rate: float | None) -> None:
    measured = received_rate([(tick * 0.02, size) for tick, size in enumerate(sizes)])
    assert measured.is_too_little is (rate is None)
    assert measured.bytes_per_s == pytest.approx(rate or 0.0)


def leftovers(*names: str, alive: bool = True) -> tuple[str, ...]:
    return leftover_topics(names, OWN, lambda _: alive)


def test_scratch_topics_are_leftovers_of_ended_processes_and_old_runs_elsewhere() -> None:
    ended = ScratchRun("host-1", 99, OWN.at_ms - 1).topic
    assert leftovers(ended, alive=False) == (ended,)
    assert leftovers(ended) == ()
    young, old = (ScratchRun("host-2", 99, OWN.at_ms - age).topic for age in (OLD_MS, OLD_MS + 1))
    assert leftovers(young, old, alive=False) == (old,)
    assert leftovers("orders", f"{PREFIX}x", f"{PREFIX}h.1.2.internal.x", "mm2-lockstep-state.A.internal") == ()


def test_host_in_a_topic_has_letters_that_topics_may_have() -> None:
    assert ScratchRun("my host.example", 1, 2).topic == f"{PREFIX}my-host-example.1.2.internal"
