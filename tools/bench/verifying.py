"""How fast copies are compared with their source at each depth, at what cost, and what that costs a copy beside it."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import Verification, VerifiedPartition
from tests.support.eventually import NeverHappened, wait_until
from tests.support.mirror import MirroredFlow
from tools.bench.readings import Readings
from tools.bench.systems import System, SystemEnded, SystemRun
from tools.bench.throughput import POLL_S, Workload
from tools.bench.usage import used_by
from tools.bench.wire import ends_everywhere, to_each

WITHIN_S = 300.0
DEPTHS = ("bytes", "crc", "record")
SLOTS = 2
SETTINGS = {"lockstep.verify.tasks.max": str(SLOTS)}
PAIRS = 3
"""Copies without and with a verification beside them, in turn."""
SHARE = 0.5
"""Of the copy's own rate, at which it is verified while it grows."""
PACE = 0.4
"""Of what a copy alone reaches: a copy that leaves processors idle, as one that keeps up with its producers."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One request: how many records a second, at what cost, and how large they are in the log."""

    records_per_s: float
    cpu_s_per_million: float
    record_bytes: float


@dataclass(frozen=True, slots=True)
class GrowingCopy:
    """A copy: records a second, how many of them were verified meanwhile, and CPU seconds of Lockstep and both
    brokers."""

    copied_per_s: float
    verified_per_s: float
    cpu_s_per_million: float


def verifying(work: Workload, say: Callable[[str], None], system: System, file: Path, log: Path) -> Readings:
    """Copy a topic, and have it compared as a whole at each depth. Then copy it with and without a verification.
    Raises SystemEnded."""
    flow = MirroredFlow(Flow("A", "B"), work.clusters.source, work.clusters.target)
    found: dict[str, Comparison] = {}
    try:
        with SystemRun(system, file, log) as run:
            _wait_copied(work, run)
            flow.wait_written_down(work.topic)
            for depth in DEPTHS:
                say(f"verify: {depth}")
                found[depth] = _compared(flow, work, run, depth)
        say("verify: copies without and with it")
        beside = _beside(flow, work, system, file, log, found["bytes"].record_bytes)
    except NeverHappened as never:
        raise SystemEnded(f"not done within {WITHIN_S:.0f} s: {never}") from never
    values = {f"{depth}_records_per_s": one.records_per_s for depth, one in found.items()}
    values |= {f"{depth}_cpu_s_per_million": one.cpu_s_per_million for depth, one in found.items()}
    values["record_to_bytes_cpu"] = found["record"].cpu_s_per_million / found["bytes"].cpu_s_per_million
    return Readings(values={**values, **beside}, log=log.name)


def _compared(flow: MirroredFlow, work: Workload, run: SystemRun, depth: str) -> Comparison:
    """One request, from its answer to its end."""
    time.sleep(2.0)  # what the copy or the request before has left to write
    before = run.use()
    answer = flow.ask("verify", f"topic:{work.topic}", depth=depth, again=True)
    if answer.kind != "VerificationStarted":
        raise SystemEnded(f"the request was answered by {answer}")

    def ended() -> bool:
        run.check()
        request = flow.rows(Verification)
        return bool(request) and request[0].id == answer.answers and request[0].phase == "ended"

    wait_until(ended, within=WITHIN_S, every=0.5, what=f"compared by {depth}")
    cpu = run.use().since(before).total
    rows = sorted(_rows(flow, work), key=lambda row: row.partition)
    records = sum(row.records for row in rows)
    wrong = [row for row in rows if row.differences or row.not_verified or row.cause]
    if records != work.loaded.records or wrong:
        raise SystemEnded(f"{records} of {work.loaded.records} records are equal; {wrong[:1]}")
    busy_s = max(sum(row.busy_ms for row in rows[slot::SLOTS]) / 1e3 for slot in range(SLOTS))
    return Comparison(records / busy_s, cpu * 1e6 / records, sum(row.bytes for row in rows) / records)


def _beside(
    flow: MirroredFlow, work: Workload, system: System, file: Path, log: Path, record_bytes: float
) -> dict[str, float]:
    """What a verification that follows the copy costs it."""
    taken = _Copies(flow, work, system, file, log, record_bytes)
    alone, beside = taken.in_turn("", ())
    pace = alone.copied_per_s * PACE * record_bytes
    paced, paced_beside = taken.in_turn("paced-", (f"lockstep.max.bytes.per.second = {round(pace)}",))
    return {
        "copy_alone_per_s": alone.copied_per_s,
        "copy_beside_per_s": beside.copied_per_s,
        "verified_beside_per_s": beside.verified_per_s,
        "copy_lost_percent": (1 - beside.copied_per_s / alone.copied_per_s) * 100,
        "copy_alone_cpu_s_per_million": alone.cpu_s_per_million,
        "copy_beside_cpu_s_per_million": beside.cpu_s_per_million,
        "copy_cpu_percent": (beside.cpu_s_per_million / alone.cpu_s_per_million - 1) * 100,
        "paced_alone_per_s": paced.copied_per_s,
        "paced_beside_per_s": paced_beside.copied_per_s,
        "paced_verified_per_s": paced_beside.verified_per_s,
        "paced_lost_percent": (1 - paced_beside.copied_per_s / paced.copied_per_s) * 100,
    }


@dataclass(frozen=True, slots=True)
class _Copies:
    """Copies of one topic, one after the other."""

    flow: MirroredFlow
    work: Workload
    system: System
    file: Path
    log: Path
    record_bytes: float

    def in_turn(self, name: str, lines: Sequence[str]) -> tuple[GrowingCopy, GrowingCopy]:
        """Without and with a verification, with these lines of configuration: the medians of several pairs."""
        alone: list[GrowingCopy] = []
        beside: list[GrowingCopy] = []
        for number in range(PAIRS):
            alone.append(self._one(f"{name}alone{number}", lines))
            # Both logs are read, by all slots together.
            allowed = statistics.median(one.copied_per_s for one in alone) * SHARE * self.record_bytes * 2 / SLOTS
            verify = ("lockstep.verify.enabled = true", f"lockstep.verify.max.bytes.per.second = {round(allowed)}")
            beside.append(self._one(f"{name}beside{number}", (*lines, *verify)))
        return _medians(alone), _medians(beside)

    def _one(self, name: str, lines: Sequence[str]) -> GrowingCopy:
        file = self.file.with_suffix(f".{name}.properties")
        file.write_text("\n".join([self.file.read_text(), *lines, ""]))
        return _copy(self.flow, self.work, self.system, file, self.log.with_suffix(f".{name}.log"))


def _medians(courses: Sequence[GrowingCopy]) -> GrowingCopy:
    return GrowingCopy(
        statistics.median(one.copied_per_s for one in courses),
        statistics.median(one.verified_per_s for one in courses),
        statistics.median(one.cpu_s_per_million for one in courses),
    )


def _copy(flow: MirroredFlow, work: Workload, system: System, file: Path, log: Path) -> GrowingCopy:
    """The second half of a copy: everything has started by then."""
    work.clusters.begin_anew([work.topic])
    with SystemRun(system, file, log) as run:
        half = _wait_copied(work, run, work.loaded.records // 2)
        began, cpu, brokers = run.elapsed(), run.use(), used_by(work.clusters.brokers)
        before = sum(row.records for row in _rows(flow, work))
        copied, ended = _wait_copied(work, run) - half, run.elapsed()
        used_s = run.use().since(cpu).total + used_by(work.clusters.brokers) - brokers
        verified = sum(row.records for row in _rows(flow, work)) - before
    return GrowingCopy(copied / (ended - began), verified / (ended - began), used_s * 1e6 / copied)


def _wait_copied(work: Workload, run: SystemRun, records: int | None = None) -> int:
    """Wait until so many records are copied, or all: how many there are then."""
    wanted = work.loaded.records if records is None else records
    with to_each(work.clusters.target) as target:

        def there() -> int:
            run.check()
            found = sum(ends_everywhere(target, work.remote, work.partitions))
            return found if found >= wanted else 0

        return wait_until(there, within=WITHIN_S, every=POLL_S, what=f"{wanted} records are copied")


def _rows(flow: MirroredFlow, work: Workload) -> list[VerifiedPartition]:
    return [row for row in flow.rows(VerifiedPartition) if row.topic == work.topic]
