"""Spans of a process's work (`tracing.md`).

Without tracing, a call costs the check of a variable, and OpenTelemetry is not loaded. The code that begins a piece of
work has a `Tracing`. The code within it calls `step`, `set_attributes` and `add_event`, which do nothing without
tracing. Names are few and constant, so that spans can be grouped by name. Values that vary are attributes.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

Attribute = str | int | float | bool

STEPS_AT_MOST = 50
"""Largest number of spans within one piece of work.

More are counted (`steps_left_out`) and not created: one round may send many requests.
"""


class SpanContext:
    """A piece of work in progress.

    This class has no span and keeps nothing.
    """

    def step(self, name: str, attributes: dict[str, Attribute]) -> AbstractContextManager[None]:
        """Return a context with a span for a part of the work."""
        return nullcontext()

    def set_attributes(self, attributes: dict[str, Attribute]) -> None:
        """Set attributes of the work's span."""

    def add_event(self, name: str, attributes: dict[str, Attribute]) -> None:
        """Add an event to the work's span."""


class Tracing:
    """The sender of a process's spans.

    This class sends none. It is safe to use from the event loop: no call waits.
    """

    def work(self, name: str, **attributes: Attribute) -> AbstractContextManager[None]:
        """Return a context with a span, which is the present `SpanContext` meanwhile.

        An error is recorded in the span and raised on.
        """
        return nullcontext()

    def span_interval(self, name: str, began_ns: int, ended_ns: int, error: str = "", **attributes: Attribute) -> None:
        """Add a span for work between two times (Unix nanoseconds), with its error if it failed."""

    def end(self, within_s: float) -> None:
        """Send the spans that have not been sent, in at most so many seconds.

        Call it once. It blocks.
        """


NO_TRACING, NO_WORK = Tracing(), SpanContext()

_present: ContextVar[SpanContext] = ContextVar("work", default=NO_WORK)
"""The work that the current task belongs to. Tasks that the work starts inherit it."""


@contextmanager
def use_span(work: SpanContext) -> Iterator[None]:
    """Make `work` the present one within the context."""
    token = _present.set(work)
    try:
        yield
    finally:
        _present.reset(token)


def step(name: str, **attributes: Attribute) -> AbstractContextManager[None]:
    """Return a context with a span for a part of the present work that takes time, such as a request to a cluster."""
    return _present.get().step(name, attributes)


def set_attributes(**attributes: Attribute) -> None:
    """Set attributes of the present work, such as how many topics it read."""
    _present.get().set_attributes(attributes)


def add_event(name: str, **attributes: Attribute) -> None:
    """Add an event to the present work."""
    _present.get().add_event(name, attributes)
