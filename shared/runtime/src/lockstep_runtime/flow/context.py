"""What the runtime gives a service for each flow, and what it asks of it. No Faust here: everything but `app.py` may
import it."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from lockstep_config import FlowSettings
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterError, LeadershipLost
from lockstep_kafka.common.tracing import NO_TRACING, Tracing, add_event
from lockstep_kafka.librdkafka.control_producer import ControlProducer, ControlTopicLog
from lockstep_runtime.flow.common_metrics import ROUND_FAILURES, ROUNDS, UNREADABLE
from lockstep_runtime.flow.periodic import PeriodicTasks
from lockstep_runtime.state.desired_state import DesiredPhase, DesiredStateView
from lockstep_runtime.state.leadership import HEARTBEAT_VALID_S, Leadership, LeadPhase
from lockstep_runtime.state.state_fold import owner_label
from lockstep_runtime.state.state_log import StateLog
from lockstep_runtime.state.unreadable_records import UnreadableRecords
from lockstep_runtime.telemetry.failure_tracker import FailureTracker
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.telemetry.metrics import Metrics
from lockstep_runtime.util.clock import now_ms
from lockstep_state.codecs.murmur2 import partition_for
from lockstep_state.commands.command import Command
from lockstep_state.commands.command_vocabulary import Scope, service_connector
from lockstep_state.event_kinds import EVENT_KINDS
from lockstep_state.events import Event, cause_detail, event_words
from lockstep_state.names import COMMANDS_PARTITIONS, Flow, state_topic
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import Row

EVENTS = "events"
"""As what it is known that events cannot be written."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as an argument. `wall_ms` is Unix milliseconds, `monotonic` seconds that go on while the machine sleeps."""

    wall_ms: Callable[[], int] = now_ms
    monotonic: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Answer:
    """How a command is answered: by an event of this kind (past tense, such as `Refreshed`), with its detail as JSON
    values."""

    kind: str
    detail: Mapping[str, Any] = field(default_factory=dict)


class FlowService(Protocol):
    """One service's work in one flow; made once for each flow with its `FlowContext`, which must not do I/O."""

    wants: ClassVar[frozenset[type[Row]]]
    """The kinds of state rows that the service reads; all others are absent from `ctx.state`."""

    async def run(self) -> None:
        """The main loop: started each time we begin to act, cancelled when we stand down or end (then drain, within 5
        s).

        Returning early ends nothing else. A `ClusterError` that gets out is logged, and run is started again with
        back-off; any other exception ends the process with exit code 1.
        """

    async def command(self, command: Command, scope: Scope) -> Answer | None:
        """Carry out what an operator asked about `scope`; None refuses it as unknown. Only verbs about offsets come
        here: `refresh`, and what is wanted of the work, is the runtime's. Raise ValueError with a sentence to refuse
        it with that reason. The same command may come twice."""

    def status(self) -> Mapping[str, Any]:
        """JSON values for /status."""


@runtime_checkable
class IdleWork(Protocol):
    """A service that has something to do while its connector is stopped."""

    async def run_while_stopped(self) -> None:
        """Started each time we begin to act for a stopped connector, or it is stopped; cancelled as `run` is. What gets
        out is treated as what `run` raises, but that no restart is counted."""


class FlowContext:
    """All a service needs in one flow. Made by `lockstep_runtime.service.service`; `source`, `target`, `state` work
    once it runs."""

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
        pauses_itself: bool = False,
        tracing: Tracing = NO_TRACING,
    ) -> None:
        self.service = service
        self.settings = settings
        """Others by their credentials whenever the main loop begins, and never meanwhile: what clients are made with is
        taken from here when they are made."""
        self.flow: Flow = settings.flow
        self.instance = instance
        self.source = source
        self.target = target
        self.metrics = metrics
        self.clock = clock
        self.log = FlowLog(service, self.flow)
        self.leadership = leadership
        self.unreadable = UnreadableRecords(self.log, self._passed_over)
        """What was passed over in every topic of the flow that we read."""
        metrics.series(UNREADABLE, str(self.flow), service, state_topic(self.flow, settings.group_id))  # 0 is shown too
        self.state = StateLog(self.unreadable, clock.wall_ms, self._find_term)
        self.periodic = PeriodicTasks(self.log, clock.monotonic, self._round_ended, self._traced)
        self.remote_troubles = FailureTracker(self.log)
        """What fails in other processes of the service: it is reported, and holds nothing up here."""
        self._tracing = tracing
        self.heartbeat_at: float | None = None
        """When the last heartbeat was sent that our group answered (`clock.monotonic`)."""
        self.connector = service_connector(service)
        """MM2's connector that we are part of."""
        self.pauses_itself = pauses_itself
        """Whether the main loop goes on while its connector is paused; it then asks `wanted` what to leave alone."""
        self.divided = divided
        """Whether replicas divide the work by commands partition."""
        self._events: ControlTopicLog | None = None
        self._fenced_producer: ControlProducer | None = None

    # -- what is wanted ------------------------------------------------------------------------------------------------

    @property
    def desired_state(self) -> DesiredStateView:
        """What operators and the file want of the flow's work, current to within a fetch."""
        return DesiredStateView(self.state.rows, self.settings.states)

    @property
    def should_run(self) -> bool:
        """Whether our main loop is to run now."""
        phase = self.desired_state.connector(self.connector)
        return phase is DesiredPhase.RUNNING or (phase is DesiredPhase.PAUSED and self.pauses_itself)

    # -- leadership ----------------------------------------------------------------------------------------------------

    @property
    def group_is_current(self) -> bool:
        """Whether our group was heard from within half its session time-out: what it gave us is ours still."""
        return self.heartbeat_at is not None and self.clock.monotonic() - self.heartbeat_at <= HEARTBEAT_VALID_S

    @property
    def is_acting(self) -> bool:
        """Whether we may act now: we lead (any share of the work), and `heard`. Ask again before each act on the
        outside."""
        return self.group_is_current and bool(self.leadership.leading())

    def must_act(self) -> None:
        """Raises LeadershipLost unless `acting`. Call before each act on a cluster; `run` need not catch it."""
        if not self.is_acting:
            raise LeadershipLost(f"{self.service} {self.flow} does not lead now")

    @property
    def term(self) -> int:
        """The term in which we lead the flow; 0 while we do not."""
        return self.leadership.term(0)

    def owns(self, key: str) -> bool:
        """Divided work: whether the share of `key` (a group's id: murmur2 over the commands partitions) is ours to
        act on."""
        return self.is_acting and self.leadership.leads(self.share_partition(key))

    def share_partition(self, key: str) -> int:
        """Which commands partition a key falls to; always 0 where work is not divided."""
        return partition_for(key.encode(), COMMANDS_PARTITIONS) if self.divided else 0

    @property
    def lead_phase(self) -> LeadPhase:
        return max((self.leadership.lead_phase(p) for p in range(COMMANDS_PARTITIONS)), key=list(LeadPhase).index)

    def _find_term(self, row: Row) -> int:
        self.must_act()
        label = owner_label(row)
        if label is None:
            return self.leadership.term(0)
        if not (term := self.leadership.leading_term(label)):
            raise LeadershipLost(f"{self.service} {self.flow} does not lead as {label} now, whose {row.key()} is")
        return term

    def _term_about(self, subject: str) -> int:
        mine = self.leadership.leading()
        share = self.share_partition(subject)
        return self.leadership.term(share if share in mine else min(mine, default=0))

    # -- saying what happened ------------------------------------------------------------------------------------------

    async def event(
        self,
        kind: str,
        subject: str = "",
        text: str = "",
        *,
        answers: str = "",
        level: int | None = None,
        cause: Reason = NO_REASON,
        **detail: Any,
    ) -> None:
        """Append an event of a declared kind and log it as one line, `topic created` for `TopicCreated`. `text` follows
        (default: the subject). `level` is that of the line (default: of the kind). The event has the term in which we
        lead the subject's share of the work, else that of the least share we lead. What happened is reported even if
        we do not lead any more (term 0). A `cause` is in the detail as such, and as the sentence `reason`.

        An event that answers a command is acknowledged when this returns. Raises NotAppended or NotPermitted then. No
        work waits for any other event. If one cannot be written, that is a trouble of its own.
        """
        keys: dict[str, Any] = {"kind": kind, "subject": subject, **detail}
        if cause:
            keys["reason"] = format_sentence(cause)
        if answers:
            keys["answers"] = answers
        declared = EVENT_KINDS[kind].level
        self.log.info(event_words(kind), text or subject, level=declared if level is None else level, **keys)
        add_event(kind, subject=subject)
        event = Event(
            kind=kind,
            service=self.service,
            flow=str(self.flow),
            subject=subject,
            at_ms=self.clock.wall_ms(),
            term=self._term_about(subject),
            instance=self.instance,
            answers=answers,
            detail=detail | cause_detail(cause),
        )
        if self._events is None:
            raise LeadershipLost("the events topic is not open")
        if answers:
            await self._events.append(*event.encode(), partition=0)
        else:
            (sent,) = self._events.send([event.encode()], partition=0)
            sent.add_done_callback(self._on_event)

    def _on_event(self, sent: asyncio.Future[tuple[int, int]]) -> None:
        if sent.cancelled():
            return
        if isinstance(trouble := sent.exception(), ClusterError):
            self.periodic.troubles.began(EVENTS, trouble)
        else:
            self.periodic.troubles.over(EVENTS)

    def fenced_log(self, topic: str) -> ControlTopicLog:
        """Append to another control topic of the target (heartbeats, checkpoints). Such records have no term, so an
        append that takes longer than `ACTS_WITHIN` is given up. A leader that froze must not continue with it when it
        wakes."""
        if self._fenced_producer is None:
            raise LeadershipLost("the target has not been reached yet")
        return ControlTopicLog(self._fenced_producer, topic)

    async def restore_rows(self) -> None:
        """Write our rows again that were lost with the state topic. Raises as `StateLog.write_all`."""

        def is_ours(row: Row) -> bool:
            label = owner_label(row)
            return label is not None and self.leadership.leading_term(label) > 0

        if count := await self.state.restore(is_ours):
            self.log.warn("rows written again", f"{count} of the former {self.state.topic}")

    async def remove_rows(self, rows: Iterable[Row]) -> None:
        """Append a tombstone for each of our rows; all are absent from `state` when this returns. A tombstone has no
        term, so it goes as `facts` says: one that comes too late would remove the row of another leader.

        Raises as `StateLog.write_all`.
        """
        keys: list[tuple[bytes, None]] = []
        for row in rows:
            self._find_term(row)
            keys.append((row.key().encode(), None))
        if keys:
            offsets = await self.fenced_log(self.state.topic).append_all(keys, partition=0)
            await self.state.changed(max(offsets) - 1)

    def _round_ended(self, name: str, failed: bool) -> None:
        labels = (str(self.flow), self.service, name)
        self.metrics.series(ROUNDS, *labels).increase()
        self.metrics.series(ROUND_FAILURES, *labels).increase(failed)

    def _passed_over(self, topic: str, records: int) -> None:
        self.metrics.series(UNREADABLE, str(self.flow), self.service, topic).increase(records)

    def _traced(self, name: str) -> AbstractContextManager[None]:
        """One name for all rounds of a kind, in all flows."""
        return self._tracing.work(
            f"{self.service} {name}", flow=str(self.flow), service=self.service, round=name, instance=self.instance
        )

    # -- from the edge -------------------------------------------------------------------------------------------------

    def open(self, acts: ControlProducer, events: ControlTopicLog) -> None:
        self._fenced_producer = acts
        self._events = events
