"""Parts about starts, memory and idleness: `startup`, `idle_2000` and `catch_up`."""

import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from functools import partial

from confluent_kafka import Producer

from tests.support.systems import SystemEnded, SystemRun
from tools.bench.latency import reading
from tools.bench.orders import Loaded, Orders, load
from tools.bench.results import MEBIBYTE, Failed, Readings, Scalar, percentile
from tools.bench.stage import FIRST_RECORD_WITHIN_S, PARTITIONS, STANDSTILL_S, Lost, Measured, Stage, Trial
from tools.bench.wire import ends_of

START, START_RECORDS, STARTS = "startup", 10_000, 3
IDLE_S = 10.0

IDLE = "idle_2000"
IDLE_TOPICS, IDLE_PARTITIONS, IDLE_PERIOD_S, REST_S = 20, 100, 60.0, 30.0
ALL_COPIED_WITHIN_S = 600.0
FIRSTS, ARRIVES_WITHIN_S = 10, 60.0

CATCH_UP = "catch_up"
SAMPLE_S = 0.2
SPARE = 2 << 30  # what must be left on the disk beside both copies


def _used_share(run: SystemRun, seconds: float) -> float:
    """Return the cores that all processes of a system use while it has nothing to do."""
    before, began = run.use(), time.perf_counter()
    time.sleep(seconds)
    return run.use().since(before).total / (time.perf_counter() - began)


def _by_process(held: Sequence[tuple[str, int]]) -> str:
    return ", ".join(
        f"{name} {size / MEBIBYTE:.0f} MiB" for name, size in sorted(held, key=lambda process: -process[1])
    )


def start(stage: Stage, topic: str, trial: Trial) -> Readings:
    """Start a system several times, each time on a clean target, and look at it idle after the last one."""
    seconds = []
    for turn in range(STARTS):
        stage.clusters.begin_anew([topic])
        with trial.copying(stage.clusters.target, f"A.{topic}", every=0.02) as (run, copied, _):
            seconds.append(run.elapsed())
            run.wait(lambda: copied() >= START_RECORDS, within=FIRST_RECORD_WITHIN_S, otherwise="not all was copied")
            if turn == STARTS - 1:
                time.sleep(IDLE_S)  # let it come to rest
                share, held = _used_share(run, IDLE_S), run.resident()
    return start_readings(seconds, held, share)


def start_readings(seconds: Sequence[float], held: Sequence[tuple[str, int]], share: float) -> Readings:
    """Return the median of the starts, and what the idle processes hold and use."""
    return Readings(
        values={
            "startup_s": percentile(sorted(seconds), 0.5),
            "idle_rss_mib": sum(size for _, size in held) / MEBIBYTE,
            "idle_cpu_share": share,
        },
        notes=[f"each, s: {', '.join(f'{duration:.1f}' for duration in seconds)}; idle: {_by_process(held)}."],
    )


def _start(stage: Stage) -> Measured:
    topic = "orders-startup"
    stage.fresh(topic, records=START_RECORDS)
    systems = stage.each(START, topic, partial(start, stage, topic), keep=[topic], codec="lz4")
    return {"records": START_RECORDS, "partitions": PARTITIONS}, systems


def idle(stage: Stage, topics: Sequence[str], trial: Trial) -> Readings:
    """Let a system copy the one record of every partition, and look at it when it has nothing to do.

    Raises SystemEnded and Lost.
    """
    wanted = len(topics) * IDLE_PARTITIONS
    with trial.running() as run:

        def copied() -> bool:
            return sum(_copied(stage.clusters.target, topic) for topic in topics) >= wanted

        run.wait(copied, within=ALL_COPIED_WITHIN_S, every=0.5, otherwise="not every partition was copied")
        copied_s = run.elapsed()
        stage.say(f"{wanted:,} partitions copied after {copied_s:.1f} s; at rest for {REST_S + IDLE_PERIOD_S:.0f} s")
        time.sleep(REST_S)  # let it come to rest
        each_before = run.seconds()
        share = _used_share(run, IDLE_PERIOD_S)
        each_after, held = run.seconds(), run.resident()
        firsts = sorted(_firsts(stage, topics, run))
    used = [
        (name, (seconds - each_before[pid][1]) / IDLE_PERIOD_S)
        for pid, (name, seconds) in each_after.items()
        if pid in each_before
    ]
    greediest = sorted(used, key=lambda process: -process[1])
    return Readings(
        values={
            "idle_cpu_share": share,
            "idle_rss_mib": sum(size for _, size in held) / MEBIBYTE,
            "first_record_s": percentile(firsts, 0.5),
            "first_record_longest_s": firsts[-1],
            "all_copied_s": copied_s,
        },
        notes=[_by_process(held), ", ".join(f"{name} {part:.1%}" for name, part in greediest) + " of a core"],
    )


def _copied(target: str, topic: str) -> int:
    with ends_of(target, f"A.{topic}", IDLE_PARTITIONS) as ends:
        return sum(ends())


def _firsts(stage: Stage, topics: Sequence[str], run: SystemRun) -> list[float]:
    """Return the seconds from production to arrival of a record in each of some partitions, one after the other."""
    draw, seconds = random.Random(1), []
    producer = Producer({"bootstrap.servers": stage.clusters.source, "linger.ms": 0, "acks": "all"})
    for topic in draw.sample(topics, min(FIRSTS, len(topics))):
        partition = draw.randrange(IDLE_PARTITIONS)
        producer.list_topics(topic, timeout=ARRIVES_WITHIN_S)  # who leads is known before the clock starts
        with reading(stage.clusters.target, f"A.{topic}", IDLE_PARTITIONS) as consumer:
            consumer.poll(1.0)  # its fetches wait at the broker by now
            began = time.monotonic()
            producer.produce(topic, b"at last", partition=partition)
            producer.poll(0)
            while (message := consumer.poll(0.1)) is None or message.error():
                run.check()
                producer.poll(0)
                if time.monotonic() - began > ARRIVES_WITHIN_S:
                    raise Lost(f"the record in {topic}-{partition} did not arrive within {ARRIVES_WITHIN_S:.0f} s")
            seconds.append(time.monotonic() - began)
        producer.flush(ARRIVES_WITHIN_S)
    return seconds


def _idle(stage: Stage) -> Measured:
    names = [f"idle-{number:02d}" for number in range(IDLE_TOPICS)]
    stage.say(f"{IDLE}: {IDLE_TOPICS} topics of {IDLE_PARTITIONS} partitions, a record in each")
    stage.clusters.begin_anew()
    for name in names:
        stage.clusters.create(stage.clusters.source, name, IDLE_PARTITIONS)
        load(stage.clusters.source, name, records=IDLE_PARTITIONS, partitions=IDLE_PARTITIONS)
    systems = stage.each(IDLE, "idle-.*", partial(idle, stage, names), keep=names, systems=stage.ours)
    return {"partitions": IDLE_TOPICS * IDLE_PARTITIONS}, systems


def catch_up(stage: Stage, topic: str, loaded: Loaded, trial: Trial) -> Readings:
    """Run a system until all is copied, looking at its processes all the time. Raises SystemEnded."""
    slot_peak = seen = 0
    moved = 0.0
    with trial.running() as run, ends_of(stage.clusters.target, f"A.{topic}", PARTITIONS) as ends:
        while seen < loaded.records:
            time.sleep(SAMPLE_S)
            run.check()
            run.use()
            slot_peak = max([slot_peak, *run.slots()])
            now = sum(ends())
            if now > seen:
                seen, moved = now, run.elapsed()
            elif run.elapsed() - moved > (STANDSTILL_S if seen else FIRST_RECORD_WITHIN_S):
                raise SystemEnded(f"{seen} of {loaded.records} records copied, then nothing more")
        total_s, peak = run.elapsed(), run.account.peak_rss
    rate = loaded.records / total_s
    return Readings(
        values={
            "slot_peak_rss_mib": slot_peak / MEBIBYTE,
            "peak_rss_mib": peak / MEBIBYTE,
            "records_per_s": rate,
            "mb_per_s": rate * loaded.record_bytes / 1e6,
            "total_s": total_s,
        }
    )


def _catch_up(stage: Stage) -> Measured:
    topic, size = "orders-catch-up", stage.backlog_bytes
    records = size // len(Orders.drawn().key(0) + Orders.drawn().value(0))
    facts: dict[str, Scalar] = {"bytes": size, "records": records, "partitions": PARTITIONS, "codec": "none"}
    stage.clusters.begin_anew()  # what is left of earlier parts is in the way of this one
    folder, wanted = tempfile.gettempdir(), 2 * size + SPARE
    if (free := shutil.disk_usage(folder).free) < wanted:
        lacking = f"{wanted / 1e9:.0f} GB are needed in {folder} (TMPDIR moves it), {free / 1e9:.0f} GB are free"
        return facts, {system.name: Failed(reason=lacking) for system in stage.ours}
    stage.say(f"{CATCH_UP}: loading {size / 1e9:.1f} GB, {records:,} records")
    measure = partial(catch_up, stage, topic, stage.fresh(topic, records=records))
    return facts, stage.each(CATCH_UP, topic, measure, keep=[topic], systems=stage.ours)


MEASURES = {START: _start, IDLE: _idle, CATCH_UP: _catch_up}
