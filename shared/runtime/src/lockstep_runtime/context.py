"""What the runtime gives a service for each flow, and what it asks of it. No Faust here: everything but `app.py` may
import it."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from lockstep_config import FlowSettings
from lockstep_protocol.commands import Command
from lockstep_protocol.events import Event
from lockstep_protocol.murmur2 import partition_for
from lockstep_protocol.names import COMMANDS_PARTITIONS, Flow
from lockstep_protocol.state import Row
from lockstep_runtime.admin import Admin
from lockstep_runtime.common_metrics import ROUND_FAILURES, ROUNDS
from lockstep_runtime.facts import FactLog, FactProducer
from lockstep_runtime.fold import DIVIDED
from lockstep_runtime.leadership import HEARD_WITHIN, Leadership, Standing
from lockstep_runtime.log import FlowLog
from lockstep_runtime.metrics import Metrics
from lockstep_runtime.rounds import Rounds
from lockstep_runtime.state_log import StateLog, StoodDown

__all__ = ["Answer", "Clock", "FlowContext", "FlowService"]


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as an argument. `wall_ms` is Unix milliseconds, `monotonic` seconds that go on while the machine sleeps."""

    wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    monotonic: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Answer:
    """How a command is answered: by an event of this kind (past tense, such as `Refreshed`), with its detail as JSON
    values."""

    kind: str
    detail: Mapping[str, Any] = field(default_factory=dict)


class FlowService(Protocol):
    """One service's work in one flow; built once per flow by `build(ctx)`, which must not do I/O."""

    async def run(self) -> None:
        """The main loop: started each time we begin to act, cancelled when we stand down or end (then drain, within 5
        s).

        Returning early ends nothing else. A `ClusterTrouble` that gets out is logged, and run is started again with
        back-off; any other exception ends the process with exit code 1.
        """

    async def command(self, command: Command) -> Answer | None:
        """Carry out what an operator asked; None refuses it as unknown (`refresh` never comes here). Raise ValueError
        with a sentence to refuse it with that reason."""

    def status(self) -> Mapping[str, Any]:
        """JSON values for /status."""


class FlowContext:
    """All a service needs in one flow. Made by `lockstep_runtime.service`; `source`, `target`, `state` work once it
    runs."""

    def __init__(
        self,
        service: str,
        settings: FlowSettings,
        *,
        instance: str,
        source: Admin,
        target: Admin,
        leadership: Leadership,
        metrics: Metrics,
        clock: Clock,
        divided: bool,
    ) -> None:
        self.service = service
        self.settings = settings
        self.flow: Flow = settings.flow
        self.instance = instance
        self.source = source
        self.target = target
        self.metrics = metrics
        self.clock = clock
        self.log = FlowLog(service, self.flow)
        self.leadership = leadership
        self.state = StateLog(self.log, clock.wall_ms, self._term_of)
        self.rounds = Rounds(self.log, clock.monotonic, self._round_ended)
        self.heard_at: float | None = None
        """When our group last answered a heartbeat (`clock.monotonic`)."""
        self.divided = divided
        """Whether replicas divide the work by commands partition."""
        self._events: FactLog | None = None
        self._acts: FactProducer | None = None

    # -- leadership ----------------------------------------------------------------------------------------------------

    @property
    def acting(self) -> bool:
        """Whether we may act now: we lead (any share of the work) and our group was heard from within half its session
        time-out. Ask again before each act on the outside."""
        heard = self.heard_at is not None and self.clock.monotonic() - self.heard_at <= HEARD_WITHIN
        return heard and bool(self.leadership.leading())

    def must_act(self) -> None:
        """Raises StoodDown unless `acting`. Call before each act on a cluster; `run` need not catch it."""
        if not self.acting:
            raise StoodDown(f"{self.service} {self.flow} does not lead now")

    @property
    def term(self) -> int:
        """The term in which we lead the flow; 0 while we do not. Where work is divided use `term_for`."""
        return self.leadership.term(0)

    def owns(self, key: str) -> bool:
        """Divided work: whether the share of `key` (a group's id: murmur2 over the commands partitions) is ours to
        act on."""
        return self.acting and self.leadership.leads(self.partition_of(key))

    def term_for(self, key: str) -> int:
        """Divided work: the term in which we lead the share of `key`, 0 while we do not."""
        return self.leadership.term(self.partition_of(key))

    def partition_of(self, key: str) -> int:
        """Which commands partition a key falls to; always 0 where work is not divided."""
        return partition_for(key.encode(), COMMANDS_PARTITIONS) if self.divided else 0

    @property
    def standing(self) -> Standing:
        return max((self.leadership.standing(p) for p in range(COMMANDS_PARTITIONS)), key=list(Standing).index)

    def _term_of(self, row: Row) -> int:
        self.must_act()
        if not self.divided or (by := DIVIDED.get(type(row))) is None:
            return self.leadership.term(0)
        share = str(getattr(row, by))
        if not (term := self.term_for(share)):
            raise StoodDown(f"{self.service} {self.flow} does not lead the share of {share!r} now")
        return term

    def _term_about(self, subject: str) -> int:
        mine = self.leadership.leading()
        share = self.partition_of(subject)
        return self.leadership.term(share if share in mine else min(mine, default=0))

    # -- saying what happened ------------------------------------------------------------------------------------------

    async def event(
        self, kind: str, subject: str = "", text: str = "", *, answers: str = "", loud: bool = False, **detail: Any
    ) -> None:
        """Append an event and log it as one line: `TopicCreated` reads "topic created", `text` follows (default: the
        subject). It bears the term in which we lead the subject's share of the work, else that of the least share we
        lead. What happened is said even if we do not lead any more (term 0).

        Raises NotAppended or NotPermitted when it could not be written; the line is logged first in any case.
        """
        words = "".join(f" {c.lower()}" if c.isupper() else c for c in kind).strip()
        keys: dict[str, Any] = {"kind": kind, "subject": subject, **detail}
        if answers:
            keys["answers"] = answers
        self.log.say(words, text or subject, level=logging.WARNING if loud else logging.INFO, **keys)
        event = Event(
            kind=kind,
            service=self.service,
            flow=str(self.flow),
            subject=subject,
            at_ms=self.clock.wall_ms(),
            term=self._term_about(subject),
            instance=self.instance,
            answers=answers,
            detail=detail,
        )
        if self._events is None:
            raise StoodDown("the events topic is not open")
        key, value = event.encode()
        await self._events.append(key, value, partition=0)

    def facts(self, topic: str) -> FactLog:
        """Append to another control topic of the target (heartbeats, checkpoints). Such records bear no term, so what
        is not appended within `ACTS_WITHIN` is given up: a leader that froze must not go on with it when it wakes."""
        if self._acts is None:
            raise StoodDown("the target has not been reached yet")
        self._acts.start()  # most services never ask for it, so it is not there before
        return FactLog(self._acts, topic)

    async def every(self, name: str, interval: timedelta, round_: Callable[[], Awaitable[None]]) -> None:
        """Do a round now and then each `interval`, for ever; at once when a `refresh` command comes. See
        `Rounds.every`."""
        await self.rounds.every(name, interval, round_)

    def _round_ended(self, name: str, failed: bool) -> None:
        labels = (str(self.flow), self.service, name)
        self.metrics.of(ROUNDS, *labels).add()
        self.metrics.of(ROUND_FAILURES, *labels).add(failed)

    # -- from the edge -------------------------------------------------------------------------------------------------

    def open(self, acts: FactProducer, events: FactLog) -> None:
        self._acts = acts
        self._events = events
