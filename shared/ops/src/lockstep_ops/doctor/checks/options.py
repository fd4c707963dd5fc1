"""The options of `lockstep doctor` on the command line."""

from dataclasses import dataclass

from lockstep_ops.doctor.checks.check import Category


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """The options of `lockstep doctor`.

    `within_s` bounds each request and each wait. `categories` are those to show, at least one.
    """

    within_s: float
    categories: tuple[Category, ...] = tuple(Category)
    canary_topic: str | None = None
    bandwidth: bool = False
