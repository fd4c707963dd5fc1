"""The options of an examination, which `lockstep doctor` and `lockstep probe` make."""

from dataclasses import dataclass
from math import inf

from lockstep_ops.doctor.checks.check import Category


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """The options of an examination.

    `within_s` bounds each request and each wait. `categories` are those to show, at least one. All of the examination
    ends at `ends_at` (of `time.monotonic`). With `awaits_heartbeat` a heartbeat is waited for even if no replica of
    the service heartbeat is seen.
    """

    within_s: float
    categories: tuple[Category, ...] = tuple(Category)
    canary_topic: str | None = None
    bandwidth: bool = False
    ends_at: float = inf
    awaits_heartbeat: bool = False
