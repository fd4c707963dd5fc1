"""The watch over one flow: its rows and events as they come, and its report, read when somebody looks.

A cluster that is away, a right that is missing, a flow that has never run and a row of a newer release are sentences
(`DatedReport.trouble`), never an end of the console.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from lockstep_config import FlowSettings
from lockstep_console.followed.target_topics import TargetTopics
from lockstep_console.followed.watched_events import WatchedEvents
from lockstep_console.followed.watched_rows import WatchedRows
from lockstep_console.json_text import json_text
from lockstep_console.report_turns import LOOKED_AT_MOST_S, SOONEST_S, ReportTurns
from lockstep_console.views.flow_body import flow_body, partition_body
from lockstep_console.views.lag_series import LagSeries, recent_worst
from lockstep_kafka.common.asyncio_util import set_within
from lockstep_kafka.common.backoff import Backoff
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.status.flow_report import FlowClients
from lockstep_ops.status.flow_status import FlowStatus, UnknownStatus, read_status
from lockstep_ops.status.report import PartitionLine, Report
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.clock import now_ms
from lockstep_state.rows.row import NewerVersion
from lockstep_state.rows.state_rows import Row

LATEST_S = 4.5
"""The seconds after which a report is read again although no row has changed, while somebody looks.

With the time that it takes, what is shown is at most 5 s old.
"""

OLD_S = 10.0
"""The seconds after which a request has the report read again at once."""

LOOKED_AT_S = 15.0
"""The seconds for which a request counts as somebody who looks."""

ANSWERS_WITHIN_S = 3.0
"""The seconds within which a cluster has to answer for a report."""

NOT_YET = "The flow is not read yet."

NOT_UNDERSTOOD = "rows not understood"
"""The message in the log for a flow whose report or body cannot be made."""


@dataclass(frozen=True, slots=True)
class DatedReport:
    """The last report of a flow, or why there is none, and when that was read.

    With a `trouble` `report` is None: nothing of before is shown as if it were so now.
    """

    report: Report | None
    trouble: str
    at_ms: int
    unknown: UnknownStatus | None = None
    """Without a report: what `lockstep status` says of such a flow."""
    took_s: float = 0.0
    """The seconds that it took to read."""


@dataclass(frozen=True, slots=True)
class ShownFlow:
    """A flow as JSON. `content` differs if something besides the times of reading differs."""

    text: str
    content: int

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "ShownFlow":
        """Return the text of a body, which is a tenth of the body in memory."""
        content = json_text({name: value for name, value in body.items() if name not in ("at_ms", "history")})
        return cls(json_text(body), hash(content))


class ChangeListener(Protocol):
    """Something that is to know what comes of a flow, such as an open stream."""

    def on_report(self, watch: "FlowWatch") -> None:
        """Take note of a new report."""

    def on_rows(self, watch: "FlowWatch", records: Sequence[Record]) -> None:
        """Take note of records of the state topic."""

    def on_events(self, watch: "FlowWatch", records: Sequence[Record]) -> None:
        """Take note of records of the events topic."""


class FlowWatch:
    """One flow. Run it as long as the console lives."""

    def __init__(self, settings: FlowSettings, clients: FlowClients, topics: TargetTopics, turns: ReportTurns) -> None:
        """Take the flow, the clients of its clusters, the topics of its target, and the turns of all flows."""
        self.settings = settings
        self.name = str(settings.flow)
        self.log = FlowLog("console", settings.flow)
        self.clients, self._turns = clients, turns
        self.rows = WatchedRows(settings, topics, self._on_rows)
        """The rows of the flow's state topic (`FollowedRows`)."""
        self.watched_events = WatchedEvents(settings, topics, self._on_events)
        self._dated = DatedReport(None, NOT_YET, 0)
        self._known_ms = 0
        """When the last report was read; 0: there was none yet."""
        self._is_reading = False
        self._pause_s = 0.0
        """The pause before the next report; 0 if there is one."""
        self._backoff = Backoff(first=SOONEST_S, limit=LOOKED_AT_MOST_S)
        self._cost_s = 0.0
        """The processor time that the last report took."""
        self._has_new_rows, self._was_looked_at = asyncio.Event(), asyncio.Event()
        self._is_due = asyncio.Event()
        """The report is to be read again at once (`_make_due`)."""
        self._has_report = asyncio.Event()
        self._looked_at = float("-inf")
        self._listeners: list[ChangeListener] = []
        self.away: dict[str, str] = {}
        """Why clusters of the flow do not answer now, by alias, as far as they were asked."""
        self.lags = LagSeries()
        turns.add(self, clients.source)
        self._mistakes: dict[str, str] = {}
        """A sentence for each thing that the console cannot do with the flow now, by the name of the thing."""
        self._logged: dict[str, tuple[object, ...]] = {}
        """The mistake of each kind that was logged last."""
        self._shown: tuple[DatedReport, tuple[dict[str, str], ...], ShownFlow] | None = None
        """The last shown flow, with the report, clusters and mistakes that it was made of. Several streams show it."""

    @property
    def dated(self) -> DatedReport:
        """Return the last report without reading anything."""
        return self._dated

    def body(self, sections: Collection[str] = ()) -> dict[str, Any]:
        """Return the flow as the API shows it, by the last report."""
        return self._body_maker(sections)()

    async def text(self, sections: Collection[str]) -> str:
        """Return the same as text. A section may have 100,000 lines, so a thread makes it."""
        make = self._body_maker(sections)
        return await asyncio.to_thread(lambda: json_text(make())) if sections else self.shown().text

    def _body_maker(self, sections: Collection[str]) -> Callable[[], dict[str, Any]]:
        """Return what makes the body of the flow as it is now, in any thread."""
        dated, away = self._dated, dict(self.away)
        status: FlowStatus = dated.report or dated.unknown or self._unknown(NOT_YET)
        for sentence in self._mistakes.values():
            status = self._unknown(sentence)
        rows: Mapping[str, Row] = {}
        try:
            rows = self.rows.rows
        except Exception as exc:  # noqa: BLE001  # as below
            status = self._unknown(self._explain(NOT_UNDERSTOOD, exc))
        body_of = partial(
            flow_body, self.settings, away=away, read_ms=dated.at_ms, known_ms=self._known_ms, sections=sections
        )

        def make() -> dict[str, Any]:
            try:
                return body_of(status, rows, now_ms=now_ms())
            except Exception as exc:  # noqa: BLE001  # the rows of one flow hide no other flow: it is said and logged
                return body_of(self._unknown(self._explain(NOT_UNDERSTOOD, exc)), {}, now_ms=now_ms())

        return make

    def _unknown(self, sentence: str) -> UnknownStatus:
        return UnknownStatus.because(self.settings.flow, sentence)

    def note_mistake(self, what: str, exc: Exception | None) -> None:
        """Take note that the console makes a mistake with the flow, or with None that it makes this one no more.

        The flow is unknown as long as there is one.
        """
        if exc is None and what not in self._mistakes:
            return
        before = dict(self._mistakes)
        if exc is None:
            del self._mistakes[what]
        else:
            self._mistakes[what] = self._explain(what, exc)
        if self._mistakes != before:
            self._show_report()

    @property
    def unknown_reason(self) -> str:
        """Return why nothing is known of the flow now, or "" if there is a report that counts."""
        reasons = [*self._mistakes.values(), self.away.get(self.settings.flow.target, ""), self._dated.trouble]
        return next(filter(None, reasons), "")

    def _explain(self, what: str, exc: Exception) -> str:
        """Return why something cannot be done with the rows: one is of a newer release, or we make a mistake.

        The log has a mistake once, with its traceback.
        """
        if isinstance(exc, NewerVersion):
            return str(exc)
        if self._logged.get(what) != (type(exc), exc.args):
            self._logged[what] = type(exc), exc.args
            self.log.failed(what, exc)
        mistake = f"{type(exc).__name__}: {exc}"
        return f"the console cannot work with what its rows say ({mistake}), and its log says more"

    def shown(self) -> "ShownFlow":
        """Return the body without sections as text."""
        beside = dict(self.away), dict(self._mistakes)
        # By `is`: to compare two reports costs more than to show one.
        if self._shown is None or self._shown[0] is not self._dated or self._shown[1] != beside:
            self._shown = self._dated, beside, ShownFlow.of(self.body())
        return self._shown[2]

    def partition_bodies(self, lines: Sequence[PartitionLine]) -> list[dict[str, Any]]:
        """Return partitions of the last report as the API shows them."""
        moment, rows = now_ms(), self.rows.rows
        by_minute = recent_worst(rows, moment)
        return [
            partition_body(line, rows, self.lags.spark((line.topic, line.partition), moment, by_minute))
            for line in lines
        ]

    async def report(self, within_s: float = 0.8) -> DatedReport:
        """Return the last report, and have it read again soon. The first one is waited for.

        Args:
            within_s: The seconds for which a newer report is waited for if the last one is older than `OLD_S`.
        """
        self.look()
        age_s = (now_ms() - self._dated.at_ms) / 1000
        if age_s > max(OLD_S, self._pause_s):
            if not self._is_reading:
                self._make_due()
            self._has_report.clear()
            is_judged = self._dated.at_ms or self.settings.flow.target in self.away
            await set_within(self._has_report, within_s if is_judged else ANSWERS_WITHIN_S * 2)
        return self._dated

    def look(self) -> None:
        """Note that somebody looks at the flow now."""
        self._looked_at = asyncio.get_running_loop().time()
        self._was_looked_at.set()

    @contextmanager
    def watching(self, listener: ChangeListener) -> Iterator[None]:
        """Count as somebody who looks for a while, and let a listener know what comes."""
        self._listeners.append(listener)
        self._was_looked_at.set()
        try:
            yield
        finally:
            self._listeners.remove(listener)

    @property
    def listeners(self) -> int:
        """Return how many streams show the flow."""
        return len(self._listeners)

    @property
    def is_looked_at(self) -> bool:
        """Return whether a stream is open, or a request came lately."""
        return bool(self._listeners) or asyncio.get_running_loop().time() - self._looked_at < LOOKED_AT_S

    async def run(self) -> None:
        """Follow the flow until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.rows.run())
            tasks.create_task(self.watched_events.run())
            tasks.create_task(self._keep_reading())

    async def _keep_reading(self) -> None:
        await self.rows.judged()
        while True:
            async with self._turns.turn(self.clients.source) as spent_s:
                for event in (self._has_new_rows, self._was_looked_at, self._is_due):
                    event.clear()
                self._is_reading = True
                self._dated = await self._read()
                self._is_reading = False
                self._cost_s = spent_s()
            if self._dated.report is not None:
                self._known_ms = self._dated.at_ms
            self._has_report.set()
            self._show_report()
            await self._wait()

    def note_cluster(self, alias: str, sentence: str) -> None:
        """Take note of why a cluster of the flow does not answer, or with "" that it does."""
        if bool(sentence) == (alias in self.away):
            return
        if sentence:
            self.away[alias] = sentence
            self._has_report.set()  # who waits for the first one is told this
        else:
            del self.away[alias]
        self._make_due()
        self._show_report()

    def _show_report(self) -> None:
        if self._listeners:
            self.shown()  # now, for the rows were just read
        for listener in list(self._listeners):
            listener.on_report(self)

    async def _wait(self) -> None:
        """Return when the report is to be read again.

        While there is none the pauses grow. New rows, and the look at clusters (`note_cluster`), end one.
        """
        if self._dated.report is None:
            self._pause_s = self._backoff.next()
        else:
            self._backoff.reset()
            self._pause_s = 0.0
        if not self.is_looked_at:
            await set_within(self._was_looked_at, self._turns.unseen_s(self._cost_s))
            return
        soonest_s = self._turns.looked_at_s(self._cost_s)
        if not await set_within(self._is_due, soonest_s):
            await set_within(self._has_new_rows, max(LATEST_S, self._pause_s) - soonest_s)

    def _make_due(self) -> None:
        """Have the report read again at once."""
        self._is_due.set()
        self._has_new_rows.set()

    async def _read(self) -> DatedReport:
        loop = asyncio.get_running_loop()
        began = loop.time()
        status: FlowStatus
        try:
            status = await read_status(
                self.settings,
                ANSWERS_WITHIN_S,
                self.rows,
                clients=self.clients,
                heard=self.watched_events.reports(),
            )
            if not isinstance(status, UnknownStatus):
                self.lags.add(status.at_ms, status.partitions)
        except Exception as exc:  # noqa: BLE001  # the rows of one flow end no other flow: it is said and logged
            status = self._unknown(self._explain(NOT_UNDERSTOOD, exc))
        if isinstance(status, UnknownStatus):
            return DatedReport(None, status.reason, now_ms(), status)
        return DatedReport(status, "", status.at_ms, took_s=loop.time() - began)

    def _on_rows(self, records: Sequence[Record]) -> None:
        self._has_new_rows.set()
        for listener in list(self._listeners):
            listener.on_rows(self, records)

    def _on_events(self, records: Sequence[Record]) -> None:
        for listener in list(self._listeners):
            listener.on_events(self, records)
