"""What a process reports of its work as spans (`tracing.md`). Nothing, unless the configuration asks for it: then this
module costs a check of a variable, and OpenTelemetry is not loaded.

The code that begins a piece of work has a `Tracing`. The code within it calls `step`, `note` and `happened`, which do
nothing without tracing. Names are few and constant, so that they can be grouped by; what varies is an attribute.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

Attribute = str | int | float | bool

STEPS_AT_MOST = 50
"""Spans within one piece of work; more are counted (`steps_left_out`) and not made: a round may ask much."""


class SpanContext:
    """A piece of work that is under way; here one without a span, of which nothing is kept."""

    def step(self, name: str, attributes: dict[str, Attribute]) -> AbstractContextManager[None]:
        """A span within it."""
        return nullcontext()

    def set_attributes(self, attributes: dict[str, Attribute]) -> None:
        """Attributes of its span."""

    def add_event(self, name: str, attributes: dict[str, Attribute]) -> None:
        """An event of its span."""


class Tracing:
    """Where a process's spans go; here nowhere. Safe to use from the event loop: nothing waits for anybody."""

    def work(self, name: str, **attributes: Attribute) -> AbstractContextManager[None]:
        """A span for what is done within, the present `SpanContext` meanwhile. What is raised is recorded, and gets
        out."""
        return nullcontext()

    def span_interval(self, name: str, began_ns: int, ended_ns: int, error: str = "", **attributes: Attribute) -> None:
        """A span for what was done between two times (Unix nanoseconds), with what was wrong."""

    def end(self, within_s: float) -> None:
        """Send what has not been sent, in at most so many seconds. To be called once; blocks."""


NO_TRACING, NO_WORK = Tracing(), SpanContext()

_present: ContextVar[SpanContext] = ContextVar("work", default=NO_WORK)
"""Tasks that a piece of work starts belong to it."""


@contextmanager
def within(work: SpanContext) -> Iterator[None]:
    """Make it the present one."""
    token = _present.set(work)
    try:
        yield
    finally:
        _present.reset(token)


def step(name: str, **attributes: Attribute) -> AbstractContextManager[None]:
    """A span within the present work, if there is any: for what takes time, such as a request to a cluster."""
    return _present.get().step(name, attributes)


def set_attributes(**attributes: Attribute) -> None:
    """Attributes of the present work: how much of what it did."""
    _present.get().set_attributes(attributes)


def add_event(name: str, **attributes: Attribute) -> None:
    """An event of the present work."""
    _present.get().add_event(name, attributes)
