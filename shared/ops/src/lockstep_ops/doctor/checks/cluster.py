"""Checks of a cluster that accepts the login: its answers, versions, clock and round trips. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from lockstep_ops.doctor.checks import registry
from lockstep_ops.doctor.checks.access_facts import AccessFacts
from lockstep_ops.doctor.checks.check import SHOWN, CheckFinding, DoctorCheck
from lockstep_ops.exit_codes import Exit
from lockstep_ops.formatting import count_text, in_time, shorten

SKEW_WARNING_MS = 30_000
"""The skew that is a warning. Lag in seconds is wrong by it, and so are timestamps of records that services write."""

SKEW_FAILURE_MS = 3_600_000
"""The skew that is a failure: `message.timestamp.after.max.ms` of brokers, beyond which they refuse our heartbeats."""

UNCERTAIN_MS = 10_000
"""The error beyond which an answer says nothing about a clock. It took more than twice as long."""


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """The difference between the clock of a broker and ours.

    The clock of `node` is `ahead_ms` ahead of ours, give or take `error_ms`. If `trouble` is not empty it says why the
    difference is not known, and nothing else counts. `fix` then says how to make it known.
    """

    node: str = ""
    ahead_ms: float = 0.0
    error_ms: float = 0.0
    trouble: str = ""
    fix: str = ""
    is_measured_later: bool = False
    """True if the scratch topic measures the clock."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The answers of a cluster to Lockstep's own admin client.

    `reached` is its answer, and `trouble` is what is wrong with it. With `is_out_of_reach` there is no answer at all.
    `other_id` is the cluster id that other clients of the alias see, if it differs.
    """

    access: AccessFacts
    reached: str
    trouble: str
    is_out_of_reach: bool
    clock: ClockFacts
    other_id: str = ""


def judge_cluster(facts: ClusterFacts) -> Iterator[CheckFinding]:
    """Yield the findings about one cluster by itself."""
    alias = facts.access.alias
    if facts.trouble:
        yield registry.REACHED.failed(alias, facts.trouble, is_fatal=facts.is_out_of_reach, probe_exit=Exit.NO_ANSWER)
    elif facts.other_id:
        text = (
            f"leads to cluster {facts.access.cluster_id}, and other clients of this alias are led to {facts.other_id}"
        )
        yield registry.REACHED.failed(alias, text)
    else:
        brokers = count_text(len(facts.access.brokers), "broker")
        yield registry.REACHED.ok(alias, f"{brokers}, cluster id {facts.access.cluster_id} ({facts.reached})")
    yield _versions(facts.access)
    yield judge_clock(registry.CLOCK, alias, facts.clock)
    yield _round_trip(facts.access)


def _versions(access: AccessFacts) -> CheckFinding:
    check = registry.VERSIONS
    unfit = [broker for broker in access.brokers if broker.unfit]
    if unfit:
        texts = [
            f"{broker.place} does not know what the flows need in a version that Lockstep knows:"
            f" {', '.join(request.text for request in broker.unfit or ())}"
            for broker in unfit
        ]
        return check.failed(access.alias, shorten(texts, SHOWN, "; "))
    silent = [broker for broker in access.brokers if broker.unfit is None]
    if silent:
        text = shorten([f"{broker.place}: {broker.reason or broker.trouble}" for broker in silent], SHOWN, "; ")
        return check.unknown(access.alias, f"{count_text(len(silent), 'broker')} did not say: {text}")
    return check.ok(access.alias, f"{count_text(len(access.brokers), 'broker')} with all requests that are needed")


def judge_clock(check: DoctorCheck, subject: str, clock: ClockFacts) -> CheckFinding:
    """Return the finding about a clock that was compared with ours."""
    if clock.is_measured_later:
        return check.skipped(subject, f"{registry.BROKER_CLOCK.code} measures it with the scratch topic")
    if clock.trouble:
        return check.unknown(subject, clock.trouble, clock.fix)
    if clock.error_ms > UNCERTAIN_MS:
        return check.unknown(subject, f"the answer took {in_time(round(2 * clock.error_ms))}, which is too long")
    way = "ahead of" if clock.ahead_ms > 0 else "behind"
    skew_ms = round(abs(clock.ahead_ms))
    skew = f"is {in_time(skew_ms)} {way} this machine" if skew_ms else "has the time of this machine"
    text = f"{clock.node} {skew} (±{max(1, round(clock.error_ms))} ms)"
    least = abs(clock.ahead_ms) - clock.error_ms
    if least > SKEW_FAILURE_MS:
        return check.failed(subject, text)
    return check.warning(subject, text) if least > SKEW_WARNING_MS else check.ok(subject, text)


def _round_trip(access: AccessFacts) -> CheckFinding:
    medians = {broker.place: median(broker.round_trips_s) * 1e3 for broker in access.brokers if broker.round_trips_s}
    if not medians:
        return registry.ROUND_TRIP.unknown(access.alias, "no broker answered the question that is timed")
    slowest = max(medians, key=lambda place: medians[place])
    farthest = "" if len(medians) == 1 else f"; the slowest is {slowest} with {medians[slowest]:.1f} ms"
    return registry.ROUND_TRIP.ok(access.alias, f"p50 {median(medians.values()):.1f} ms{farthest}")
