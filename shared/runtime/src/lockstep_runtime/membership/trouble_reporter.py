"""Report on the events topic what fails in this replica, in all sessions: one that cannot begin is a trouble."""

import asyncio
from itertools import islice

from lockstep_config.credentials.permissions import needed_access
from lockstep_config.flow import client_settings
from lockstep_config.flow.client_settings import StoresUnusable
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.librdkafka.control_producer import ACTS_WITHIN, ControlProducer, ControlTopicLog
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.telemetry.failure_tracker import MOST_IN_ROW
from lockstep_state.events import Event
from lockstep_state.names import events_topic
from lockstep_state.reasons.reason import Reason
from lockstep_state.trouble_report import TROUBLES_REPORTED, TroubleReport

CHECK_INTERVAL_S = 5.0
"""Seconds between two checks. A trouble that both find is reported."""

RENEWED_AFTER_S, TROUBLES_VALID_MS = 60.0, 150_000
"""Seconds between two reports while something fails, and the milliseconds for which a report is valid.

A replica that was killed is believed for as long as its last report is valid.
"""

COUNTS_RENEWED_AFTER_S, COUNTS_VALID_MS = 600.0, 1_260_000
"""The same while there are only counts of unreadable records."""

Troubles = tuple[tuple[str, Reason], ...]
Counts = tuple[tuple[str, int], ...]


class ReportSchedule:
    """Decide when a report is due, and its content. Pure."""

    def __init__(self) -> None:
        self._last_troubles: frozenset[tuple[str, str]] = frozenset()
        """Names and codes of the troubles of the last check."""
        self._reported: tuple[frozenset[tuple[str, str]], Counts] | None = frozenset(), ()
        """The troubles and counts of the last report; None: it was not written."""
        self._reported_at = float("-inf")

    def check(self, troubles: Troubles, counts: Counts, now: float) -> tuple[Troubles, Counts, int] | None:
        """Return troubles, counts and validity of the report that is due now; None if none is.

        Args:
            troubles: What fails now.
            counts: Records that were passed over, by topic.
            now: Monotonic seconds.
        """
        names = frozenset((name, reason.code) for name, reason in troubles)
        lasting, self._last_troubles = names & self._last_troubles, names
        if (lasting, counts) == self._reported:
            renewed_after = RENEWED_AFTER_S if lasting else COUNTS_RENEWED_AFTER_S
            if not (lasting or counts) or now - self._reported_at < renewed_after:
                return None
        self._reported, self._reported_at = (lasting, counts), now
        shown = (trouble for trouble in troubles if (trouble[0], trouble[1].code) in lasting)
        return tuple(islice(shown, MOST_IN_ROW)), counts, TROUBLES_VALID_MS if lasting else COUNTS_VALID_MS

    def retry_at_next_check(self) -> None:
        """Note that the last report was not written, so that it is due again at the next check."""
        self._reported = None


class TroubleReporter:
    """Write reports for as long as a process serves a flow, each with a producer of its own."""

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self._schedule = ReportSchedule()

    async def run(self) -> None:
        """Check and write until cancelled. A report that cannot be written is tried again."""
        ctx = self._ctx
        while True:
            await asyncio.sleep(CHECK_INTERVAL_S)
            troubles = (*ctx.periodic.troubles.reasons.items(), *ctx.remote_troubles.reasons.items())
            due = self._schedule.check(troubles, tuple(ctx.unreadable.counts.items()), ctx.clock.monotonic())
            if due is not None:
                await self._write(*due)

    async def _write(self, troubles: Troubles, counts: Counts, valid_ms: int) -> None:
        ctx, settings = self._ctx, self._ctx.settings
        report = TroubleReport(
            service=ctx.service, instance=ctx.instance, troubles=troubles, unreadable=counts, valid_ms=valid_ms
        )
        event = Event(
            kind=TROUBLES_REPORTED,
            service=ctx.service,
            flow=str(ctx.flow),
            subject=ctx.instance,
            at_ms=ctx.clock.wall_ms(),
            term=ctx.term,
            instance=ctx.instance,
            detail=report.detail(),
        )
        alias = ctx.flow.target
        try:
            conf = client_settings.target_producer(settings, ctx.service)
            producer = ControlProducer(alias, conf, within=ACTS_WITHIN, access=needed_access(settings, alias))
            try:
                await ControlTopicLog(producer, events_topic(ctx.flow, settings.group_id)).append(
                    *event.encode(), partition=0
                )
            finally:
                await producer.stop(0.0)
        except (ClusterError, StoresUnusable) as trouble:
            self._schedule.retry_at_next_check()
            ctx.log.debug("troubles not reported", str(trouble))
