"""The watch over one flow: its rows and events as they come, and its report, read when somebody looks.

A cluster that is away, a right that is missing, a flow that has never run and a row of a newer release are sentences
(`DatedReport.trouble`), never an end of the console.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from lockstep_config import FlowSettings
from lockstep_console.followed.target_topics import TargetTopics
from lockstep_console.followed.watched_events import WatchedEvents
from lockstep_console.followed.watched_rows import WatchedRows
from lockstep_console.json_text import json_text
from lockstep_console.views.flow_body import flow_body, partition_body
from lockstep_console.views.lag_series import LagSeries, recent_worst
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.asyncio_util import set_within, share_kept_s
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.status.flow_report import FlowClients
from lockstep_ops.status.flow_status import UnknownStatus, read_status
from lockstep_ops.status.report import PartitionLine, Report
from lockstep_runtime.telemetry.log import FlowLog
from lockstep_runtime.util.clock import now_ms
from lockstep_state.rows.row import NewerVersion
from lockstep_state.rows.state_rows import Row

SOONEST_S, LATEST_S, UNSEEN_S = 2.0, 5.0, 60.0
"""The seconds between two reports: if rows changed, if none did, and while nobody looks."""

LOOKED_AT_S = 15.0
"""The seconds for which a request counts as somebody who looks."""

ANSWERS_WITHIN_S = 3.0
"""The seconds within which a cluster has to answer for a report."""

UNSEEN_SHARE, UNSEEN_AT_MOST_S = 0.01, 600.0
"""The share of a core that all reports may take while nobody looks, and the longest wait for it."""

AT_ONCE = 4
"""Reports that are read at the same time. Each asks both clusters of its flow."""

NOT_YET = "The flow is not read yet."


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
    cost_s: float = 0.0
    """The processor time of this process meanwhile, which other reports may have taken too."""


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


class ReportTurns:
    """The turns in which the reports of all flows are read, and how often each may be read while nobody looks."""

    def __init__(self, flows: int) -> None:
        self.turns = asyncio.Semaphore(AT_ONCE)
        self._share = UNSEEN_SHARE / max(1, flows)
        self._asking: Counter[Admin] = Counter()
        self._watches: defaultdict[Admin, list[FlowWatch]] = defaultdict(list)

    def add(self, watch: "FlowWatch") -> None:
        """Take a flow whose reports are read in these turns."""
        self._watches[watch.clients.source].append(watch)

    @asynccontextmanager
    async def turn(self, source: Admin) -> AsyncIterator[None]:
        """Wait for a turn to read a report. A source that nobody looks at keeps no connection afterwards."""
        async with self.turns:
            self._asking[source] += 1
            try:
                yield
            finally:
                self._asking[source] -= 1
        if not self._asking[source] and not any(watch.is_looked_at for watch in self._watches[source]):
            await source.close()

    def unseen_s(self, cost_s: float) -> float:
        """Return the seconds until a report that took this processor time is read again while nobody looks."""
        return share_kept_s(cost_s, self._share, soonest=UNSEEN_S, latest=UNSEEN_AT_MOST_S)


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
        self._has_new_rows, self._changed = asyncio.Event(), asyncio.Event()
        self._was_looked_at = asyncio.Event()
        self._has_report = asyncio.Event()
        self._looked_at = float("-inf")
        self._listeners: list[ChangeListener] = []
        self.away: dict[str, str] = {}
        """Why clusters of the flow do not answer now, by alias, as far as they were asked."""
        self.lags = LagSeries()
        turns.add(self)
        self._logged_mistake: tuple[object, ...] = ()
        self._shown: tuple[DatedReport, dict[str, str], ShownFlow] | None = None
        """The report and the clusters away of which the last shown flow was made, and it: several streams show it."""

    @property
    def dated(self) -> DatedReport:
        """Return the last report without reading anything."""
        return self._dated

    def body(self, sections: Collection[str] = ()) -> dict[str, Any]:
        """Return the flow as the API shows it, by the last report."""
        try:
            return self._body(sections)
        except Exception as exc:  # noqa: BLE001  # the rows of one flow hide no other flow: it is said and logged
            flow, dated = self.settings.flow, self._dated
            status = UnknownStatus.because(flow, self._mistake(exc))
            return flow_body(
                self.settings, status, {}, self.away, read_ms=dated.at_ms, now_ms=now_ms(), sections=sections
            )

    def _mistake(self, exc: Exception) -> str:
        """Return the sentence about rows that we read wrongly. The log has it once, with its traceback."""
        if self._logged_mistake != (type(exc), exc.args):
            self._logged_mistake = type(exc), exc.args
            self.log.failed("rows not understood", exc)
        return f"the console cannot work with what its rows say ({type(exc).__name__}: {exc}), and its log says more"

    def _body(self, sections: Collection[str]) -> dict[str, Any]:
        dated, moment = self._dated, now_ms()
        status = dated.report if dated.report is not None else dated.unknown
        rows: Mapping[str, Row] = {}
        if status is None:
            status = UnknownStatus.because(self.settings.flow, NOT_YET)
        try:
            rows = self.rows.rows
        except NewerVersion as exc:
            status = UnknownStatus.because(self.settings.flow, str(exc))
        return flow_body(self.settings, status, rows, self.away, read_ms=dated.at_ms, now_ms=moment, sections=sections)

    def shown(self) -> "ShownFlow":
        """Return the body without sections as text."""
        made_of = self._dated, dict(self.away)
        # By `is`: to compare two reports costs more than to show one.
        if self._shown is None or self._shown[0] is not made_of[0] or self._shown[1] != made_of[1]:
            self._shown = *made_of, ShownFlow.of(self.body())
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
            within_s: The seconds for which a newer report is waited for if the last one is older than `LATEST_S`.
        """
        self.look()
        age_s = (now_ms() - self._dated.at_ms) / 1000
        if age_s > LATEST_S * 2:
            self._has_report.clear()
            await set_within(self._has_report, within_s if self._dated.at_ms else ANSWERS_WITHIN_S * 2)
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
            async with self._turns.turn(self.clients.source):
                self._has_new_rows.clear()
                self._was_looked_at.clear()
                self._dated = await self._read()
            if self._dated.report is not None:
                self.lags.add(self._dated.at_ms, self._dated.report.partitions)
            self._has_report.set()
            self._show_report()
            await self._wait()

    def note_cluster(self, alias: str, sentence: str) -> None:
        """Take note of why a cluster of the flow does not answer, or with "" that it does."""
        if bool(sentence) == (alias in self.away):
            return
        if sentence:
            self.away[alias] = sentence
        else:
            del self.away[alias]
        self._changed.set()
        self._show_report()

    def _show_report(self) -> None:
        for listener in list(self._listeners):
            listener.on_report(self)

    async def _wait(self) -> None:
        """Return when the report is to be read again."""
        if not self.is_looked_at:
            await set_within(self._was_looked_at, self._turns.unseen_s(self._dated.cost_s))
            return
        self._changed.clear()
        if not await set_within(self._changed, SOONEST_S):
            await set_within(self._has_new_rows, LATEST_S - SOONEST_S)

    async def _read(self) -> DatedReport:
        loop = asyncio.get_running_loop()
        began, used = loop.time(), time.process_time()
        try:
            status = await read_status(
                self.settings,
                ANSWERS_WITHIN_S,
                self.rows,
                clients=self.clients,
                heard=self.watched_events.reports(),
            )
        except NewerVersion as exc:
            status = UnknownStatus.because(self.settings.flow, str(exc))
        except Exception as exc:  # noqa: BLE001  # the rows of one flow end no other flow: it is said and logged
            status = UnknownStatus.because(self.settings.flow, self._mistake(exc))
        if isinstance(status, UnknownStatus):
            return DatedReport(None, status.reason, now_ms(), status)
        return DatedReport(status, "", status.at_ms, took_s=loop.time() - began, cost_s=time.process_time() - used)

    def _on_rows(self, records: Sequence[Record]) -> None:
        self._has_new_rows.set()
        for listener in list(self._listeners):
            listener.on_rows(self, records)

    def _on_events(self, records: Sequence[Record]) -> None:
        for listener in list(self._listeners):
            listener.on_events(self, records)
