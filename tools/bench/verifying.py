"""How fast copies are compared with their source at each depth, at what cost, and what that costs a copy beside it."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import Verification, VerifiedPartition
from tests.support.eventually import NeverHappened
from tests.support.mirror import MirroredFlow
from tests.support.systems import SystemEnded, SystemRun
from tests.support.tree_usage import used_by
from tools.bench.results import Readings
from tools.bench.stage import PARTITIONS, POLL_S, Measured, Stage, Trial, Workload
from tools.bench.wire import ends_of

VERIFY = "verify"
WITHIN_S = 300.0
DEPTHS = ("bytes", "crc", "record")
SLOTS = 2
PAIRS = 3
"""Copies without and with a verification beside them, in turn."""
SHARE = 0.5
"""Of the copy's own rate, at which it is verified while it grows."""
PACE = 0.4
"""Of what a copy alone reaches: a copy that leaves processors idle, as one that keeps up with its producers."""

GrowingCopy = tuple[float, float, float]
"""A copy: records a second, how many of them were verified meanwhile, and CPU seconds of Lockstep and both brokers for
a million records."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One request: how many records a second, at what cost, and how large they are in the log."""

    records_per_s: float
    cpu_s_per_million: float
    record_bytes: float


@dataclass(frozen=True, slots=True)
class Verifying:
    """A workload that is copied by a flow, again and again."""

    work: Workload
    trial: Trial
    flow: MirroredFlow

    def rows(self) -> list[VerifiedPartition]:
        return [row for row in self.flow.rows(VerifiedPartition) if row.topic == self.work.topic]

    def wait_copied(self, run: SystemRun, records: int) -> int:
        """Wait until so many records are copied. Return how many there are then."""
        with ends_of(self.work.clusters.target, self.work.remote, PARTITIONS) as ends:

            def copied() -> int:
                count = sum(ends())
                return count if count >= records else 0

            return run.wait(copied, within=WITHIN_S, every=POLL_S, otherwise=f"{records} records are not copied")

    def compare(self, run: SystemRun, depth: str) -> Comparison:
        """Ask for one comparison of the whole topic, and wait for its end."""
        time.sleep(2.0)  # what the copy or the request before has left to write
        before = run.use()
        answer = self.flow.ask("verify", f"topic:{self.work.topic}", depth=depth, again=True)
        if answer.kind != "VerificationStarted":
            raise SystemEnded(f"the request was answered by {answer}")

        def ended() -> bool:
            request = self.flow.rows(Verification)
            return bool(request) and request[0].id == answer.answers and request[0].phase == "ended"

        run.wait(ended, within=WITHIN_S, every=0.5, otherwise=f"not compared by {depth}")
        cpu = run.use().since(before).total
        rows = sorted(self.rows(), key=lambda row: row.partition)
        records = sum(row.records for row in rows)
        wrong = [row for row in rows if row.differences or row.not_verified or row.cause]
        if records != self.work.loaded.records or wrong:
            raise SystemEnded(f"{records} of {self.work.loaded.records} records are equal; {wrong[:1]}")
        busy_s = max(sum(row.busy_ms for row in rows[slot::SLOTS]) / 1e3 for slot in range(SLOTS))
        return Comparison(records / busy_s, cpu * 1e6 / records, sum(row.bytes for row in rows) / records)

    def copy(self, name: str, lines: Sequence[str]) -> GrowingCopy:
        """Measure the second half of a copy: everything has started by then."""
        work, trial = self.work, self.trial.with_lines(name, lines)
        work.clusters.begin_anew([work.topic])
        with trial.running() as run:
            half = self.wait_copied(run, work.loaded.records // 2)
            began, cpu, brokers = run.elapsed(), run.use(), used_by(work.clusters.brokers)
            before = sum(row.records for row in self.rows())
            copied, ended = self.wait_copied(run, work.loaded.records) - half, run.elapsed()
            used_s = run.use().since(cpu).total + used_by(work.clusters.brokers) - brokers
            verified = sum(row.records for row in self.rows()) - before
        return copied / (ended - began), verified / (ended - began), used_s * 1e6 / copied

    def in_turn(self, name: str, record_bytes: float, lines: Sequence[str]) -> tuple[GrowingCopy, GrowingCopy]:
        """Copy without and with a verification, with these lines of configuration: the medians of several pairs."""
        alone: list[GrowingCopy] = []
        beside: list[GrowingCopy] = []
        for number in range(PAIRS):
            alone.append(self.copy(f"{name}alone{number}", lines))
            # Both logs are read, by all slots together.
            allowed = statistics.median(rate for rate, _, _ in alone) * SHARE * record_bytes * 2 / SLOTS
            verify = ("lockstep.verify.enabled = true", f"lockstep.verify.max.bytes.per.second = {round(allowed)}")
            beside.append(self.copy(f"{name}beside{number}", (*lines, *verify)))
        return _medians(alone), _medians(beside)


def _medians(copies: Sequence[GrowingCopy]) -> GrowingCopy:
    rate, verified, cpu = (statistics.median(figures) for figures in zip(*copies, strict=True))
    return rate, verified, cpu


def verifying(work: Workload, say: Callable[[str], None], trial: Trial) -> Readings:
    """Copy a topic, and have it compared as a whole at each depth. Then copy it with and without a verification.
    Raises SystemEnded."""
    clusters = work.clusters
    flow = MirroredFlow(Flow("A", "B"), clusters.source, clusters.target)
    verification = Verifying(work, trial, flow)
    comparisons: dict[str, Comparison] = {}
    try:
        with trial.running() as run:
            verification.wait_copied(run, work.loaded.records)
            flow.wait_written_down(work.topic)
            for depth in DEPTHS:
                say(f"{VERIFY}: {depth}")
                comparisons[depth] = verification.compare(run, depth)
        say(f"{VERIFY}: copies without and with it")
        size = comparisons["bytes"].record_bytes
        alone, beside = verification.in_turn("", size, ())
        pace = f"lockstep.max.bytes.per.second = {round(alone[0] * PACE * size)}"
        paced, paced_beside = verification.in_turn("paced-", size, (pace,))
    except NeverHappened as never:
        raise SystemEnded(f"not done in time: {never}") from never
    values = {f"{depth}_records_per_s": comparison.records_per_s for depth, comparison in comparisons.items()}
    values |= {f"{depth}_cpu_s_per_million": comparison.cpu_s_per_million for depth, comparison in comparisons.items()}
    return Readings(
        values={
            **values,
            "record_to_bytes_cpu": comparisons["record"].cpu_s_per_million / comparisons["bytes"].cpu_s_per_million,
            "copy_alone_per_s": alone[0],
            "copy_beside_per_s": beside[0],
            "verified_beside_per_s": beside[1],
            "copy_lost_percent": (1 - beside[0] / alone[0]) * 100,
            "copy_alone_cpu_s_per_million": alone[2],
            "copy_beside_cpu_s_per_million": beside[2],
            "copy_cpu_percent": (beside[2] / alone[2] - 1) * 100,
            "paced_alone_per_s": paced[0],
            "paced_beside_per_s": paced_beside[0],
            "paced_verified_per_s": paced_beside[1],
            "paced_lost_percent": (1 - paced_beside[0] / paced[0]) * 100,
        }
    )


def _verify(stage: Stage) -> Measured:
    work = stage.loaded(VERIFY)
    systems = stage.each(
        VERIFY,
        work.topic,
        partial(verifying, work, stage.say),
        keep=[work.topic],
        codec=work.codec,
        systems=stage.ours,
        settings={"lockstep.verify.tasks.max": str(SLOTS)},
    )
    return work.facts, systems


MEASURES = {VERIFY: _verify}
