"""One system copies one pre-loaded topic, at what rate and cost; and the limit of the same brokers."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TextIO

from tests.support.clusters import delete_topic
from tests.support.systems import SystemEnded, SystemRun
from tests.support.tree_usage import Cpu, used_by
from tools.bench.compare import compare, compare_in_order, content
from tools.bench.limit import both_at_once, fetch_only, produce_only, read_batches, requests
from tools.bench.results import LIMIT, MEBIBYTE, Readings, Systems
from tools.bench.stage import PARTITIONS, POLL_S, STANDSTILL_S, Trial, Workload
from tools.bench.wire import end_offsets

SAMPLE_S = 1.0  # between two looks at the process tree, which cost far more
SETTLED_S = 5.0  # MM2's tuned producer lingers 50 ms, its transactions end with each poll
RUNS = 3
BROKERS_WARM_S = 45.0
SHORTEST_WARM_UP_S = 3.0  # counted for a run that is over sooner, as small ones are
WARM_UP_S = 15.0  # of copying: the compilers of two brokers that serve it take 40 % of a core for so long
LIMIT_TOPIC = "limit"


def copy_readings(
    *,
    records: int,
    window_records: int,
    window_s: float,
    start_s: float,
    total_s: float,
    cpu_window: Cpu,
    cpu_total: Cpu,
    peak_rss_bytes: int,
    record_bytes: float,
    compared: int,
    brokers_cpu_s: float | None = None,
) -> Readings:
    """Return the figures of one copy of a pre-loaded topic.

    The *window* runs from the poll that first saw a record on the target to the poll that saw the last one. What
    already lay there at the first poll does not count as copied within it. `brokers_cpu_s` is what both brokers used in
    the window, or None where it was not measured.
    """
    rate = window_records / window_s if window_s else 0.0
    million = window_records / 1e6 or float("inf")
    brokers = {} if brokers_cpu_s is None else {"brokers_cpu_s_per_million": brokers_cpu_s / million}
    return Readings(
        values={
            "records_per_s": rate,
            "mb_per_s": rate * record_bytes / 1e6,
            "records_per_s_from_start": records / total_s,
            "cpu_s_per_million": cpu_window.total / million,
            "cpu_user_s_per_million": (cpu_window.total - cpu_window.system) / million,
            "cpu_system_s_per_million": cpu_window.system / million,
            "cpu_s_per_million_from_start": cpu_total.total * 1e6 / records,
            "startup_s": start_s,
            "total_s": total_s,
            "peak_rss_mib": peak_rss_bytes / MEBIBYTE,
            "records_compared": compared,
            **brokers,
        }
    )


def copy(work: Workload, trial: Trial) -> Readings:
    """Run one system on a clean target until all is copied, on brokers that have served it before.

    Raises SystemEnded, NeverHappened, and Lost when the copy is not the source.
    """
    _warm(work, trial)
    with work.copied_by(trial) as (run, copied, at_first):
        first_at, first_cpu, brokers = run.elapsed(), run.use(), used_by(work.clusters.brokers)
        with trial.log.with_suffix(".tsv").open("w") as course:
            course.write(f"{first_at:.3f}\t{at_first}\n")
            settled_s = SETTLED_S if work.markers else 0.0
            last_at, last_cpu = _follow(run, copied, at_first, work.loaded.records, course, settled_s=settled_s)
            brokers = used_by(work.clusters.brokers) - brokers
        peak = run.account.peak_rss
    compare_all = partial(compare_in_order, made=work.made or content) if work.gaps else compare
    compared = compare_all(work.clusters.source, work.clusters.target, work.topic, work.remote)
    return copy_readings(
        records=round(work.loaded.records * work.read),
        window_records=round((work.loaded.records - at_first) * work.read),
        window_s=last_at - first_at,
        start_s=first_at,
        total_s=last_at,
        cpu_window=last_cpu.since(first_cpu),
        cpu_total=last_cpu,
        peak_rss_bytes=peak,
        record_bytes=work.loaded.record_bytes,
        compared=compared,
        brokers_cpu_s=brokers if work.clusters.brokers and not work.markers else None,
    )


def _warm(work: Workload, trial: Trial) -> None:
    """Let the system copy for a while, from the start again where it has copied all there is, and remove what it wrote.
    The brokers' compilers follow what a client asks: the same commit copied half as fast from brokers that saw it, or
    transactions, for the first time, and who copies all there is in four seconds had seen no more of them."""
    copied_s, warming = 0.0, replace(trial, log=trial.log.with_suffix(".warm.log"))
    while copied_s < WARM_UP_S:
        with work.copied_by(warming) as (run, copied, _):
            began = run.elapsed()
            while copied() < work.loaded.records and copied_s + run.elapsed() - began < WARM_UP_S:
                run.check()
                time.sleep(POLL_S)
            copied_s += max(SHORTEST_WARM_UP_S, run.elapsed() - began)
        work.clusters.begin_anew([work.topic, *work.beside])


def _follow(
    run: SystemRun, copied: Callable[[], int], seen: int, wanted: int, course: TextIO, *, settled_s: float = 0.0
) -> tuple[float, Cpu]:
    """Return when the copy grew last, and what it had cost by then. With `settled_s` its offsets say only that
    there are at least so many records, and it is complete once it has not grown for so long."""
    moved = sampled = run.elapsed()
    used = run.use()
    while seen < wanted or run.elapsed() - moved < settled_s:
        time.sleep(POLL_S)
        now = copied()
        if now > seen:
            seen, moved = now, run.elapsed()
            course.write(f"{moved:.3f}\t{seen}\n")
            if moved - sampled > SAMPLE_S or seen >= wanted:
                used, sampled = run.use(), moved
            continue
        run.check()
        if run.elapsed() - moved > STANDSTILL_S:
            raise SystemEnded(f"{seen} of {wanted} records copied, then nothing more for {STANDSTILL_S:.0f} s")
        if run.elapsed() - sampled > SAMPLE_S:
            run.use()
            sampled = run.elapsed()
    if seen > wanted and not settled_s:
        raise SystemEnded(f"{seen} records on the target, {wanted} on the source")
    return moved, used


def limit(work: Workload, say: Callable[[str], None]) -> Systems:
    """Measure three runs in each direction and three of both at once, once both brokers are warm. Raises
    BrokerRefused."""
    source, target = work.clusters.source, work.clusters.target
    ends = end_offsets(source, work.topic, PARTITIONS)
    ready = requests(LIMIT_TOPIC, read_batches(source, work.topic, ends))

    def appended(how: Callable[[], float]) -> float:
        work.clusters.create(target, LIMIT_TOPIC, PARTITIONS)
        seconds = how()
        delete_topic(target, LIMIT_TOPIC)
        return seconds

    both = partial(appended, partial(both_at_once, source, work.topic, ends, target, ready))
    # A broker's JVM that has not yet compiled what appends batches spends three times the CPU on it.
    began = time.monotonic()
    while time.monotonic() - began < BROKERS_WARM_S:
        both()
    measured = {
        "fetch_only": partial(fetch_only, source, work.topic, ends),
        "produce_only": partial(appended, partial(produce_only, target, ready)),
        "both_at_once": both,
    }
    rates = {name: [sum(ends) / measure() for _ in range(RUNS)] for name, measure in measured.items()}
    for name, each in rates.items():
        say(f"{name.replace('_', ' ')} {', '.join(f'{rate / 1000:,.0f}k' for rate in each)} records/s")
    return limit_readings({name: max(each) for name, each in rates.items()}, work.loaded.record_bytes)


def limit_readings(best: Mapping[str, float], record_bytes: float) -> Systems:
    """Return the best rates, and the limit.

    It is the lower of both bests: a copy that fetches and produces one after the other cannot beat it.
    """
    figures = {name: {"records_per_s": rate, "mb_per_s": rate * record_bytes / 1e6} for name, rate in best.items()}
    figures[LIMIT] = {"records_per_s": min(best["fetch_only"], best["produce_only"])}
    return {name: Readings(values=values) for name, values in figures.items()}
