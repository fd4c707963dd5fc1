"""The last events of one flow, and what its services report in them."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lockstep_config import FlowSettings
from lockstep_console.followed.target_topics import PARTITION, TargetTopics
from lockstep_console.followed.watched_topic import WatchedTopic
from lockstep_console.views.record_body import is_warning
from lockstep_kafka.common.errors import TopicMissing
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.control_topics import record_as_json
from lockstep_ops.record_decoder import DecodedRecord, decode
from lockstep_runtime.util.clock import now_ms
from lockstep_state.names import events_topic
from lockstep_state.trouble_report import LONGEST_VALID_MS, TROUBLES_REPORTED

MOST_EVENTS = 1_000
"""Events that are kept, of all that are in the topic."""

MOST_REPORTS = 2_000
"""Reports of services that are kept. Each replica writes one when something fails anew, and every few minutes."""


@dataclass(frozen=True, slots=True)
class WatchedEvent:
    """An event as it is in the log."""

    record: Record

    @property
    def decoded(self) -> DecodedRecord:
        """Return what it says."""
        return decode("events", self.record.key, self.record.value)

    def as_json(self, flow: str) -> dict[str, Any]:
        """Return the event as `lockstep watch --output json` does, and whether it is a warning."""
        body = record_as_json(flow, "events", self.record, self.decoded)
        return {**body, "warning": is_warning(body["kind"])}


class WatchedEvents(WatchedTopic):
    """The events. `on_events` gets those that come, once all of before are read."""

    def __init__(
        self, settings: FlowSettings, topics: TargetTopics, on_events: Callable[[Sequence[Record]], None]
    ) -> None:
        super().__init__(settings, topics, events_topic(settings.flow, settings.group_id))
        self._on_events = on_events
        self.begin()

    def begin(self) -> None:
        self._records: deque[Record] = deque(maxlen=MOST_EVENTS)
        self._reports: deque[Record] = deque(maxlen=MOST_REPORTS)

    async def first_offset(self) -> int:
        """Return the offset from which on events are kept, or reports may count."""
        tp = (self.topic, PARTITION)
        ends = await self._target.end_offsets([tp])
        since = await self._target.offsets_since([tp], now_ms() - LONGEST_VALID_MS)
        kept_from = max(0, ends.get(tp, 0) - MOST_EVENTS)
        reported_from = since.get(tp, 0)
        return kept_from if reported_from < 0 else min(kept_from, reported_from)

    def apply(self, records: Sequence[Record]) -> None:
        self._records.extend(records)
        self._reports.extend(
            record for record in records if record.value is not None and TROUBLES_REPORTED.encode() in record.value
        )
        since_ms = now_ms() - LONGEST_VALID_MS
        while self._reports and self._reports[0].timestamp_ms < since_ms:
            self._reports.popleft()
        if self.trouble is None:
            self._on_events(records)

    def events(self) -> Iterator[WatchedEvent]:
        """Yield the events that are kept, newest first."""
        return map(WatchedEvent, reversed(self._records))

    def reports(self) -> Sequence[Record] | None:
        """Return the events in which services report what fails, or None if they are not known here."""
        if isinstance(self.trouble, TopicMissing):
            return []
        return None if self.trouble is not None else list(self._reports)
