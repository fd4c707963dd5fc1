"""The decision after a service has ended by itself: start it again after a while, or end the run. Pure."""

import signal
from dataclasses import dataclass
from datetime import timedelta

from lockstep_runtime.util.process_restarts import ProcessRestarts

BAD_CONFIGURATION = 2
"""The exit code of a service whose configuration cannot be used.

Starting it again cannot help, unless an earlier start could use it. Then a file is being replaced just now.
"""

SHUTDOWN_REQUESTED = 3
"""The exit code of a service whose configuration asks the whole run to end.

The key is `lockstep.legacy.abort.on.send.failure`.
"""


@dataclass(frozen=True, slots=True)
class StartAgain:
    """The decision to start the service again after `delay`.

    It is the `time`-th start after a crash in a row (1-based).
    """

    delay: timedelta
    time: int


@dataclass(frozen=True, slots=True)
class EndRun:
    """The decision to stop every service and end with `exit_code`."""

    exit_code: int


NEVER_READY = timedelta()


def decide(
    crashes_before: int, exit_code: int, lived: timedelta, worked: timedelta = NEVER_READY, *, served: bool = False
) -> StartAgain | EndRun:
    """Decide what follows when a service ends that was not asked to. Exit code 0 counts as a crash too.

    Args:
        crashes_before: The crashes in a row until now.
        exit_code: The exit code, negative for a signal as in `subprocess`.
        lived: The time since the start.
        worked: The time since the service was ready, or zero if it never was.
        served: Whether an earlier start in this run could use the configuration.
    """
    if exit_code == SHUTDOWN_REQUESTED or (exit_code == BAD_CONFIGURATION and not served):
        return EndRun(exit_code)
    restarts = ProcessRestarts(crashes_before)
    delay = restarts.next_delay(lived, worked)
    return StartAgain(delay, restarts.crashes)


def end_sentence(service: str, exit_code: int, decision: StartAgain | EndRun) -> str:
    """Return the sentence for the log: `data-plane ended with exit code 1, starting again in 2 s (2nd time)`."""
    end = f"was killed by {_signal_name(-exit_code)}" if exit_code < 0 else f"ended with exit code {exit_code}"
    match decision:
        case StartAgain(delay, time):
            reason = ": its configuration cannot be used now" if exit_code == BAD_CONFIGURATION else ""
            pause = f"in {delay.total_seconds():g} s" if delay else "at once"
            return f"{service} {end}{reason}, starting again {pause} ({_ordinal(time)} time)"
        case EndRun():
            reason = "as it is configured to" if exit_code == SHUTDOWN_REQUESTED else "its configuration cannot be used"
            return f"{service} {end}: {reason}, ending"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal has no name of its own
        return f"signal {number}"


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
