"""How fast a pre-loaded topic is copied, at what cost, and how near that is to the limit of the same brokers."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from tools.bench.clusters import Clusters
from tools.bench.compare import compare, compare_in_order
from tools.bench.figures import Copy, Limit
from tools.bench.limit import both_at_once, fetch_only, produce_only, read_batches, requests
from tools.bench.load import Loaded
from tools.bench.systems import System, SystemEnded, SystemRun
from tools.bench.usage import Cpu, used_by
from tools.bench.wire import Connection, end_offsets, ends_everywhere, to_each

POLL_S = 0.02  # between two looks at the target's end offsets: the error of the window's length
SAMPLE_S = 1.0  # between two looks at the process tree, which cost far more
FIRST_RECORD_WITHIN_S = 240.0
STANDSTILL_S = 60.0
SETTLED_S = 5.0  # MM2's tuned producer lingers 50 ms, its transactions end with each poll
RUNS = 3
BROKERS_WARM_S = 45.0
SHORTEST_WARM_UP_S = 3.0  # counted for a run that is over sooner, as small ones are
WARM_UP_S = 15.0  # of copying: the compilers of two brokers that serve it take 40 % of a core for so long
LIMIT_TOPIC = "limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What lies on the source before a part begins; ``gaps``: its offsets are not those of the copy; ``markers``: the
    copy has markers of transactions, which take offsets too."""

    clusters: Clusters
    topic: str
    partitions: int
    codec: str
    loaded: Loaded
    gaps: bool = False
    markers: bool = False

    @property
    def remote(self) -> str:
        """The topic on B under MM2's default policy."""
        return f"A.{self.topic}"


def copy(work: Workload, system: System, file: Path, log: Path) -> Copy:
    """Run one system on a clean target until all is copied, on brokers that have served it before.

    Raises SystemEnded, NeverHappened, and Differs when the copy is not the source.
    """
    _warm(work, system, file, log.with_suffix(".warm.log"))
    with _copying(work, system, file, log) as (run, there):
        at_first = _until(run, lambda: there() or None, FIRST_RECORD_WITHIN_S, "nothing was copied")
        first_at, first_cpu, brokers = run.elapsed(), run.use(), used_by(work.clusters.brokers)
        with log.with_suffix(".tsv").open("w") as course:
            course.write(f"{first_at:.3f}\t{at_first}\n")
            settled_s = SETTLED_S if work.markers else 0.0
            last_at, last_cpu = _follow(run, there, at_first, work.loaded.records, course, settled_s=settled_s)
            brokers = used_by(work.clusters.brokers) - brokers
        peak = run.account.peak_rss
    compare_all = compare_in_order if work.gaps else compare
    compared = compare_all(work.clusters.source, work.clusters.target, work.topic, work.remote, work.partitions)
    return Copy(
        records=work.loaded.records,
        window_records=work.loaded.records - at_first,
        window_s=last_at - first_at,
        start_s=first_at,
        total_s=last_at,
        cpu_window=last_cpu.since(first_cpu),
        cpu_total=last_cpu,
        peak_rss_bytes=peak,
        record_bytes=work.loaded.record_bytes,
        compared=compared,
        log=log.name,
        brokers_cpu_s=brokers if work.clusters.brokers and not work.markers else None,
    )


@contextmanager
def _copying(work: Workload, system: System, file: Path, log: Path) -> Iterator[tuple[SystemRun, Callable[[], int]]]:
    """The system while it runs, and what says how many records (with markers, offsets) of it are on the target."""
    with SystemRun(system, file, log) as run, to_each(work.clusters.target) as target:

        def there() -> int:
            return sum(ends_everywhere(target, work.remote, work.partitions, committed=work.markers))

        yield run, there


def _warm(work: Workload, system: System, file: Path, log: Path) -> None:
    """Let the system copy for a while, from the start again where it has copied all there is, and remove what it wrote.
    The brokers' compilers follow what a client asks: the same commit copied half as fast from brokers that saw it, or
    transactions, for the first time, and who copies all there is in four seconds had seen no more of them."""
    copied_s = 0.0
    while copied_s < WARM_UP_S:
        with _copying(work, system, file, log) as (run, there):
            _until(run, lambda: there() or None, FIRST_RECORD_WITHIN_S, "nothing was copied")
            began = run.elapsed()
            while there() < work.loaded.records and copied_s + run.elapsed() - began < WARM_UP_S:
                run.check()
                time.sleep(POLL_S)
            copied_s += max(SHORTEST_WARM_UP_S, run.elapsed() - began)
        work.clusters.begin_anew([work.topic])


def _until(run: SystemRun, read_offset: Callable[[], int | None], within_s: float, otherwise: str) -> int:
    sampled = 0.0
    while (found := read_offset()) is None:
        run.check()
        if run.elapsed() > within_s:
            raise SystemEnded(f"{otherwise} within {within_s:.0f} s")
        if run.elapsed() - sampled > SAMPLE_S:
            run.use()
            sampled = run.elapsed()
        time.sleep(POLL_S)
    return found


def _follow(
    run: SystemRun, there: Callable[[], int], seen: int, wanted: int, course: TextIO, *, settled_s: float = 0.0
) -> tuple[float, Cpu]:
    """When the copy grew for the last time, and what it had cost by then. With `settled_s` its offsets say only that
    there are at least so many records, and it is complete once it has not grown for so long."""
    moved = sampled = run.elapsed()
    used = run.use()
    while seen < wanted or run.elapsed() - moved < settled_s:
        time.sleep(POLL_S)
        now = there()
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


def limit(work: Workload, say: Callable[[str], None]) -> Limit:
    """Three runs in each direction and three of both at once, after as many of these as warm both brokers. Raises
    BrokerRefused."""
    source, target = work.clusters.source, work.clusters.target
    with Connection(source) as connection:
        ends = end_offsets(connection, work.topic, work.partitions)
    ready = requests(LIMIT_TOPIC, read_batches(source, work.topic, ends))

    def appended(how: Callable[[], float]) -> float:
        work.clusters.create(target, LIMIT_TOPIC, work.partitions)
        seconds = how()
        work.clusters.delete(target, LIMIT_TOPIC)
        return seconds

    both = partial(both_at_once, source, work.topic, ends, target, ready)
    # A broker's JVM that has not yet compiled what appends batches spends three times the CPU on it.
    began = time.monotonic()
    while time.monotonic() - began < BROKERS_WARM_S:
        appended(both)
    fetched = [fetch_only(source, work.topic, ends) for _ in range(RUNS)]
    produced = [appended(partial(produce_only, target, ready)) for _ in range(RUNS)]
    together = [appended(both) for _ in range(RUNS)]
    say(
        f"fetch only {_listed(sum(ends), fetched)}; produce only {_listed(sum(ends), produced)}; "
        f"both at once {_listed(sum(ends), together)}"
    )
    return Limit(
        fetch_only=tuple(sum(ends) / seconds for seconds in fetched),
        produce_only=tuple(sum(ends) / seconds for seconds in produced),
        both_at_once=tuple(sum(ends) / seconds for seconds in together),
    )


def _listed(records: int, seconds: Sequence[float]) -> str:
    return ", ".join(f"{records / each / 1000:,.0f}k" for each in seconds) + " records/s"
