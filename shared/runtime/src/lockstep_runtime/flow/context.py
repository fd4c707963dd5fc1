"""The interface between the runtime and a service in one flow. Independent of Faust."""

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
from lockstep_runtime.state.leadership import HEARTBEAT_VALID_S, Leadership, LeadershipState
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
"""The name of the trouble that events cannot be written."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time as an argument.

    `wall_ms` is Unix milliseconds. `monotonic` is in seconds and goes on while the machine sleeps.
    """

    wall_ms: Callable[[], int] = now_ms
    monotonic: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a command: the kind of an event (past tense, such as `Refreshed`) and its detail as JSON values."""

    kind: str
    detail: Mapping[str, Any] = field(default_factory=dict)


class FlowService(Protocol):
    """One service's work in one flow.

    It is made once for each flow with its `FlowContext`. The constructor must not do I/O.
    """

    wants: ClassVar[frozenset[type[Row]]]
    """The kinds of state rows that the service reads. All other kinds are absent from `ctx.state`."""

    async def run(self) -> None:
        """Run the main loop: started each time this replica begins to act, cancelled when it stands down or ends.

        When cancelled, drain within 5 s. To return early ends nothing else. A `ClusterError` that gets out is logged,
        and the main loop is started again after a pause (`restarts.md`). Any other exception ends the process with
        exit code 1.
        """

    async def command(self, command: Command, scope: Scope) -> Answer | None:
        """Carry out a verb about offsets for `scope`, or return None to refuse it as unknown.

        The runtime serves `refresh` and changes of the desired state. The same command may come twice.

        Raises:
            ValueError: The command is refused with this sentence as its reason.
        """

    def status(self) -> Mapping[str, Any]:
        """Return JSON values for `/status`."""


@runtime_checkable
class IdleWork(Protocol):
    """A service that has work while its connector is stopped."""

    async def run_while_stopped(self) -> None:
        """Run while this replica acts for a stopped connector; cancelled and restarted as `FlowService.run`.

        No restart is counted.
        """


class FlowContext:
    """All that a service needs in one flow. `source`, `target` and `state` work once the service runs."""

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
        """The settings that new clients are made with. Their credentials change only between two sessions of a flow."""
        self.flow: Flow = settings.flow
        self.instance = instance
        self.source = source
        self.target = target
        self.metrics = metrics
        self.clock = clock
        self.log = FlowLog(service, self.flow)
        self.leadership = leadership
        self.unreadable = UnreadableRecords(self.log, self._passed_over)
        """Records that were passed over, in every topic of the flow that this replica reads."""
        metrics.series(UNREADABLE, str(self.flow), service, state_topic(self.flow, settings.group_id))  # 0 is shown too
        self.state = StateLog(self.unreadable, clock.wall_ms, self._find_term)
        """The rows of the state topic of the kinds in `FlowService.wants`, and the only way to write one."""
        self.periodic = PeriodicTasks(self.log, clock.monotonic, self._round_ended, self._traced)
        """The service's periodic work. `periodic.troubles` has what fails in it now."""
        self.remote_troubles = FailureTracker(self.log)
        """Troubles of other processes of the service. They are reported, and do not hold up this process."""
        self._tracing = tracing
        self.heartbeat_at: float | None = None
        """When the last heartbeat was sent that the coordinator of the service's group has answered, by
        `clock.monotonic`."""
        self.connector = service_connector(service)
        """MM2's connector that the service is part of."""
        self.pauses_itself = pauses_itself
        """The main loop goes on while its connector is paused. It asks `desired_state` what to leave alone."""
        self.divided = divided
        """Several replicas act at once, each for the keys of the commands partitions that it leads (`share_partition`).
        Otherwise one replica leads all of them."""
        self._events: ControlTopicLog | None = None
        self._fenced_producer: ControlProducer | None = None

    # -- desired state -------------------------------------------------------------------------------------------------

    @property
    def desired_state(self) -> DesiredStateView:
        """Return what operators and the file want of the flow's work, current to within a fetch."""
        return DesiredStateView(self.state.rows, self.settings.states)

    @property
    def should_run(self) -> bool:
        """Return whether the main loop is to run now."""
        phase = self.desired_state.connector(self.connector)
        return phase is DesiredPhase.RUNNING or (phase is DesiredPhase.PAUSED and self.pauses_itself)

    # -- leadership ----------------------------------------------------------------------------------------------------

    @property
    def group_is_current(self) -> bool:
        """Return whether the group answered a heartbeat within half its session timeout.

        Its assignment still holds then.
        """
        return self.heartbeat_at is not None and self.clock.monotonic() - self.heartbeat_at <= HEARTBEAT_VALID_S

    @property
    def is_acting(self) -> bool:
        """Return whether this replica may act now: it leads any share of the work, and `group_is_current`.

        Ask again before each act on a cluster.
        """
        return self.group_is_current and bool(self.leadership.leading())

    def must_act(self) -> None:
        """Raise LeadershipLost unless `is_acting`.

        Call it before each act on a cluster; `FlowService.run` need not catch the error.
        """
        if not self.is_acting:
            raise LeadershipLost(f"{self.service} {self.flow} does not lead now")

    @property
    def term(self) -> int:
        """Return the term in which this replica leads the flow; 0 while it does not."""
        return self.leadership.term(0)

    def owns(self, key: str) -> bool:
        """Return whether this replica may act on the share of the work that `key` (such as a group id) belongs to."""
        return self.is_acting and self.leadership.leads(self.share_partition(key))

    def share_partition(self, key: str) -> int:
        """Return the commands partition of a key, by murmur2; always 0 if the work is not divided."""
        return partition_for(key.encode(), COMMANDS_PARTITIONS) if self.divided else 0

    @property
    def leadership_state(self) -> LeadershipState:
        """Return the most advanced phase of leadership over all commands partitions."""
        return max(
            (self.leadership.leadership_state(p) for p in range(COMMANDS_PARTITIONS)), key=list(LeadershipState).index
        )

    def _find_term(self, row: Row) -> int:
        self.must_act()
        label = owner_label(row)
        if label is None:
            return self.leadership.term(0)
        if not (term := self.leadership.leading_term(label)):
            raise LeadershipLost(f"{self.service} {self.flow} does not lead as {label} now, whose {row.key()} is")
        return term

    def _term_for_event(self, subject: str) -> int:
        led = self.leadership.leading()
        share = self.share_partition(subject)
        return self.leadership.term(share if share in led else min(led, default=0))

    # -- events and records --------------------------------------------------------------------------------------------

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
        """Append an event of a declared kind, and log it as one line: `topic created` for `TopicCreated`.

        The event has the term of the subject's share of the work, else of the least share that this replica leads.
        What happened is reported also by a replica that does not lead any more (term 0). An event that answers a
        command is acknowledged when this returns. No work waits for any other event: if one cannot be written, that
        is a trouble of its own.

        Args:
            kind: A kind of `EVENT_KINDS`.
            subject: The topic, group, partition or the like that it is about.
            text: The text of the log line; by default the subject.
            answers: The id of the command that the event answers.
            level: The level of the log line; by default that of the kind.
            cause: The reason, which is in the detail as a code and as the sentence `reason`.
            detail: JSON values.

        Raises:
            NotAppended: The answer to a command was not written.
            NotPermitted: The answer to a command may not be written.
            LeadershipLost: The target has not been reached yet.
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
            term=self._term_for_event(subject),
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
            self.periodic.troubles.record_failure(EVENTS, trouble)
        else:
            self.periodic.troubles.record_success(EVENTS)

    def fenced_log(self, topic: str) -> ControlTopicLog:
        """Return another control topic of the target (heartbeats, checkpoints) to append to.

        Such records have no term, so an append that takes longer than `control_producer.ACTS_WITHIN` is given up. A
        leader that was frozen must not continue with it when it wakes.
        """
        if self._fenced_producer is None:
            raise LeadershipLost("the target has not been reached yet")
        return ControlTopicLog(self._fenced_producer, topic)

    async def restore_rows(self) -> None:
        """Write the rows of this replica again that were lost with the state topic. Raises as `StateLog.write_all`."""

        def is_ours(row: Row) -> bool:
            label = owner_label(row)
            return label is not None and self.leadership.leading_term(label) > 0

        if count := await self.state.restore(is_ours):
            self.log.warn("rows written again", f"{count} of the former {self.state.topic}")

    async def remove_rows(self, rows: Iterable[Row]) -> None:
        """Append a tombstone for each row; all are absent from `state` when this returns.

        A tombstone has no term, so it goes through `fenced_log`: a late one would remove the row of another leader.
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
        return self._tracing.work(
            f"{self.service} {name}", flow=str(self.flow), service=self.service, round=name, instance=self.instance
        )

    # -- for the runner ------------------------------------------------------------------------------------------------

    def open(self, fenced_producer: ControlProducer, events: ControlTopicLog) -> None:
        """Take the producers of a new session. `event`, `fenced_log` and `remove_rows` fail before the first one."""
        self._fenced_producer = fenced_producer
        self._events = events
