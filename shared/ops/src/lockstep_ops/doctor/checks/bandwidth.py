"""Checks of measured rates: how much a flow may copy, and how many slots that takes. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.check import CheckFinding, DoctorCheck
from lockstep_ops.doctor.checks.cluster import ClockFacts, judge_clock
from lockstep_ops.formatting import count_text

MEGABYTE = 1_000_000

SLOT_BYTES_PER_S = 180 * MEGABYTE
"""Bytes a second that one slot copies.

Two slots copied 778,504 records of 469 bytes a second, uncompressed, on two cores that the brokers shared (`make
bench ONLY=none`, 23 November 2026).
"""

SLOT_BYTES_PER_S_TLS = 70 * MEGABYTE
"""The same over TLS: a record took 2.7 times as much of the processor (`make bench ONLY=tls`, 21 November 2026)."""


@dataclass(frozen=True, slots=True)
class MeasuredRate:
    """A rate in bytes a second, and the number of bytes by which it was measured.

    `trouble` says why there is no rate. With `is_too_little` nothing is wrong: there are too few bytes for a rate.
    """

    bytes_per_s: float = 0.0
    measured_bytes: int = 0
    trouble: str = ""
    is_too_little: bool = False

    @property
    def text(self) -> str:
        return f"{megabytes(self.bytes_per_s)} MB/s, measured over {megabytes(self.measured_bytes)} MB"


@dataclass(frozen=True, slots=True)
class BandwidthFacts:
    """The results of measuring with the scratch topic.

    `trouble` says why the topic could not be created, written or removed, and `fix` has the command that helps.
    `leftovers` are topics of killed runs that were removed. `read` is None if reading was not tried. `tasks_max` is
    that of the flow; None means one slot for each of `cores`.
    """

    flow: str
    source: str
    target: str
    topic: str
    partitions: int = 0
    trouble: str = ""
    fix: str = ""
    leftovers: tuple[str, ...] = ()
    write: MeasuredRate | None = None
    read_back: MeasuredRate | None = None
    read: MeasuredRate | None = None
    clock: ClockFacts | None = None
    has_tls: bool = False
    tasks_max: int | None = None
    cores: int = 1


def judge_bandwidth(facts: BandwidthFacts) -> Iterator[CheckFinding]:
    """Yield the findings in order. The last rate is the one to expect."""
    removed = f"; removed what a killed run left: {', '.join(facts.leftovers)}" if facts.leftovers else ""
    if facts.trouble:
        yield registry.SCRATCH_TOPIC.failed(facts.flow, f"{facts.trouble}{removed}", facts.fix)
    else:
        text = f"{facts.topic} on {facts.target} was written, read and removed{removed}"
        yield registry.SCRATCH_TOPIC.ok(facts.flow, text)
    if facts.write is None:
        return
    yield _rate(registry.WRITE_RATE, facts.flow, facts.write, _read_back(facts))
    if facts.read is not None:
        yield _rate(registry.READ_RATE, facts.flow, facts.read)
    yield _expected(facts)
    if facts.clock is not None:
        yield judge_clock(registry.BROKER_CLOCK, facts.target, facts.clock)


def _rate(check: DoctorCheck, flow: str, rate: MeasuredRate, more: str = "") -> CheckFinding:
    if rate.is_too_little:
        return check.skipped(flow, rate.trouble)
    return check.unknown(flow, rate.trouble) if rate.trouble else check.ok(flow, f"{rate.text}{more}")


def _read_back(facts: BandwidthFacts) -> str:
    if facts.read_back is None or facts.read_back.trouble:
        return ""
    return f"; read back with {megabytes(facts.read_back.bytes_per_s)} MB/s"


def _expected(facts: BandwidthFacts) -> CheckFinding:
    check = registry.EXPECTED_RATE
    measured = {
        name: rate.bytes_per_s
        for name, rate in ((f"writing to {facts.target}", facts.write), (f"reading from {facts.source}", facts.read))
        if rate is not None and not rate.trouble
    }
    if not measured:
        return check.unknown(facts.flow, "no rate was measured")
    slowest = min(measured, key=lambda name: measured[name])
    expected = measured[slowest]
    slots = slots_for(expected, has_tls=facts.has_tls)
    slot_bytes_per_s = SLOT_BYTES_PER_S_TLS if facts.has_tls else SLOT_BYTES_PER_S
    over = " over TLS" if facts.has_tls else ""
    basis = (
        f"{slowest[0].upper()}{slowest[1:]} is the slower side" if len(measured) > 1 else f"Only {slowest} was measured"
    )
    text = f"expect {megabytes(expected)} MB/s; tasks.max {slots} is enough. {basis}; a slot copies about"
    text += f" {slot_bytes_per_s // MEGABYTE} MB/s{over}"
    allowed = facts.cores if facts.tasks_max is None else facts.tasks_max
    if allowed < slots:
        cores = f"tasks.max is not set, and this machine has {count_text(allowed, 'core')}"
        configured = f"tasks.max is {facts.tasks_max}" if facts.tasks_max else cores
        return check.warning(facts.flow, f"{text}; {configured}")
    return check.ok(facts.flow, text)


BUSY_BYTES = 65_536
"""The least bytes of an answer that has records. One without records is smaller."""

LEAST_INTERVALS = 4


def received_rate(samples: Sequence[tuple[float, int]]) -> MeasuredRate:
    """Return the rate at which bytes came, by samples of the moment in seconds and the bytes received until then.

    Only intervals in which data came count. The first of them does not, because part of it was for connecting.
    """
    intervals = [(end_s - begin_s, after - before) for (begin_s, before), (end_s, after) in pairwise(samples)]
    busy = [(seconds, size) for seconds, size in intervals if size >= BUSY_BYTES][1:]
    lasted = sum(seconds for seconds, _ in busy)
    if len(busy) < LEAST_INTERVALS or lasted <= 0:
        return MeasuredRate(trouble="there is too little to read for a measure", is_too_little=True)
    received = sum(size for _, size in busy)
    return MeasuredRate(received / lasted, received)


def slots_for(bytes_per_s: float, *, has_tls: bool) -> int:
    """Return the number of slots that copy this many bytes a second."""
    return max(1, math.ceil(bytes_per_s / (SLOT_BYTES_PER_S_TLS if has_tls else SLOT_BYTES_PER_S)))


def megabytes(size: float) -> str:
    """Return a size in megabytes as a text: `85`, `1.4`, `0.02`."""
    amount = size / MEGABYTE
    return f"{amount:,.0f}" if amount >= 10 else f"{amount:.1f}" if amount >= 1 else f"{amount:.2f}"
