"""What to do when a service has ended by itself: start it again after a while, or end the run. Pure."""

import signal
from dataclasses import dataclass
from datetime import timedelta

from lockstep_kafka.common.backoff import Backoff

BAD_CONFIGURATION = 2
"""The exit code of a service whose configuration cannot be used. Starting it again cannot help, unless an earlier start
could use it. Then a file is being replaced just now."""

SHUTDOWN_REQUESTED = 3
"""The exit code by which a service says that its configuration asks the whole run to end
(`lockstep.legacy.abort.on.send.failure`)."""

LONGEST_DELAY = timedelta(seconds=30)
"""Longer would make a repaired cluster wait for nothing; a start every half minute is no load."""

STEADY = timedelta(minutes=1)
"""A service that lived so long had started well: its next crash is counted from the beginning."""

EARNS_BACK = timedelta(seconds=5)
"""Each time that a service worked so long, one crash is forgotten. A service killed from outside every ten seconds
comes back at once every time. One that ends by itself before or soon after it is ready waits longer and longer."""


@dataclass(frozen=True, slots=True)
class StartAgain:
    """Start the service again after `delay`; it is the `time`-th start after a crash in a row (1-based)."""

    delay: timedelta
    time: int


@dataclass(frozen=True, slots=True)
class EndRun:
    """Stop every service and end with `exit_code`."""

    exit_code: int


NEVER_READY = timedelta()


def decide(
    crashes_before: int, exit_code: int, lived: timedelta, worked: timedelta = NEVER_READY, *, served: bool = False
) -> StartAgain | EndRun:
    """What follows on the end of a service that was not asked to end.

    `crashes_before` counts the crashes in a row until now, `exit_code` is negative for a signal as in `subprocess`.
    `lived` counts from its start, `worked` from when it was ready: zero if it never was. `served`: some start of it in
    this run could use the configuration. The first crash has no delay, because records wait. Then follow 1, 2, 4 ...
    seconds up to `LONGEST_DELAY`. An unasked exit with code 0 is a crash as well.
    """
    if exit_code == SHUTDOWN_REQUESTED or (exit_code == BAD_CONFIGURATION and not served):
        return EndRun(exit_code)
    counted = 0 if lived >= STEADY else max(0, crashes_before - worked // EARNS_BACK)
    backoff = Backoff(first=1.0, limit=LONGEST_DELAY.total_seconds(), failures=counted, at_once=1)
    return StartAgain(timedelta(seconds=backoff.next()), counted + 1)


def ending(service: str, exit_code: int, decision: StartAgain | EndRun) -> str:
    """The sentence for the log: `data-plane ended with exit code 1, starting again in 2 s (2nd time)`."""
    how = f"was killed by {_signal_name(-exit_code)}" if exit_code < 0 else f"ended with exit code {exit_code}"
    match decision:
        case StartAgain(delay, time):
            why = ": its configuration cannot be used now" if exit_code == BAD_CONFIGURATION else ""
            when = f"in {delay.total_seconds():g} s" if delay else "at once"
            return f"{service} {how}{why}, starting again {when} ({_ordinal(time)} time)"
        case EndRun():
            why = "as it is configured to" if exit_code == SHUTDOWN_REQUESTED else "its configuration cannot be used"
            return f"{service} {how}: {why}, ending"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name of its own
        return f"signal {number}"


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
