"""Events of a flow, and the records of its control topics: Lockstep's own, and MM2's binary ones."""

import asyncio
from http import HTTPStatus
from typing import Any

from lockstep_config.credentials.permissions import needed_access
from lockstep_console.api.schemas import (
    FLAG,
    NUMBER,
    OBJECT,
    PERHAPS_NUMBER,
    TEXT,
    list_of,
    object_of,
    perhaps,
    with_members,
)
from lockstep_console.console import Console
from lockstep_console.flow_watch import FlowWatch
from lockstep_console.followed.watched_events import MOST_EVENTS
from lockstep_console.route import API, Answer, ConsoleRequest, Parameter, RequestRefused, Route
from lockstep_console.views.record_body import record_bodies
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.control_records import ControlRecords, RecordSearch, read_control_records
from lockstep_ops.control_topics import ControlTopic, control_topics
from lockstep_ops.record_decoder import ROLES, decode
from lockstep_runtime.util.clock import now_ms

MOST_RECORDS = 1_000
FEW_RECORDS, FEW_EVENTS = 100, 200
MOST_PARTITION, MOST_OFFSET = 100_000, 2**63 - 1

READ_WITHIN_S = 30.0
"""The seconds within which a topic has to be read."""

READ_AT_ONCE = 2
"""Readings of topics at the same time. Each has a connection of its own."""


class TopicReadings:
    """The readings of topics that go on now."""

    def __init__(self, console: Console) -> None:
        self._turns = asyncio.Semaphore(READ_AT_ONCE)

    async def read(self, watch: FlowWatch, topic: ControlTopic, search: RecordSearch) -> ControlRecords:
        """Read records of a topic of a flow. Raises ClusterError."""
        access = needed_access(watch.settings, topic.alias)
        async with self._turns:
            return await asyncio.to_thread(read_control_records, topic, access, search)


async def _show_records(request: ConsoleRequest) -> Answer:
    """Answer with records of a control topic, the newest first."""
    watch, role = request.flow, request.text("topic", "events", choices=tuple(ROLES))
    search = RecordSearch(
        limit=request.number("limit", FEW_RECORDS, least=1, most=MOST_RECORDS),
        from_end=request.text("from", "end", choices=("end", "beginning")) == "end",
        partition=_number(request, "partition", MOST_PARTITION),
        before=_number(request, "before", MOST_OFFSET),
    )
    if search.before is not None and search.partition is None:
        sentence = "before is an offset of one partition: name it with partition."
        raise RequestRefused(HTTPStatus.BAD_REQUEST, "bad-query", sentence)
    topic = control_topics(watch.settings, "console")[role]
    body: dict[str, Any] = {"at_ms": now_ms(), "role": role, "topic": topic.name, "cluster": topic.alias}
    try:
        read = await request.console.part(TopicReadings).read(watch, topic, search)
    except ClusterError as exc:
        nothing: dict[str, Any] = {"records": [], "begins": {}, "ends": {}, "older": None}
        return request.json_answer({**body, **nothing, "unknown": str(exc)})
    begins = {str(number): first for number, (first, _) in read.bounds.items()}
    ends = {str(number): end for number, (_, end) in read.bounds.items()}
    records = record_bodies(watch.name, role, read.records)
    return request.json_answer({**body, "records": records, "begins": begins, "ends": ends, "older": read.older})


async def _show_events(request: ConsoleRequest) -> Answer:
    """Answer with events, the newest first. Those that the console does not keep are read from the topic."""
    watch, kind = request.flow, request.text("kind").casefold()
    limit = request.number("limit", FEW_EVENTS, least=1, most=MOST_RECORDS)
    before_ms = request.number("before_ms", MOST_OFFSET, most=MOST_OFFSET)
    body: dict[str, Any] = {"at_ms": now_ms(), "flow": watch.name}

    def matches(record: Record) -> bool:
        is_kind = not kind or decode("events", record.key, record.value).kind.casefold() == kind
        return record.timestamp_ms <= before_ms and is_kind

    await watch.watched_events.wait_read()
    watched = [event.record for event in watch.watched_events.events()]
    kept = [event for event in watch.watched_events.events() if matches(event.record)]
    trouble = watch.watched_events.trouble
    if trouble is not None and not watched:
        return request.json_answer({**body, "events": [], "older": False, "unknown": str(trouble)})
    if len(kept) >= limit or len(watched) < MOST_EVENTS:
        events = [event.as_json(watch.name) for event in kept[:limit]]
        is_more = len(kept) > limit or len(watched) >= MOST_EVENTS
        return request.json_answer({**body, "events": events, "older": is_more})
    topic = control_topics(watch.settings, "console")["events"]
    oldest = min(record.offset for record in watched)
    before = None if kept else oldest
    try:
        read = await request.console.part(TopicReadings).read(
            watch, topic, RecordSearch(limit=limit, partition=0, before=before, matches=matches)
        )
    except ClusterError as exc:
        events = [event.as_json(watch.name) for event in kept]
        return request.json_answer({**body, "events": events, "older": True, "unknown": str(exc)})
    return request.json_answer(
        {**body, "events": record_bodies(watch.name, "events", read.records), "older": read.older is not None}
    )


def _number(request: ConsoleRequest, name: str, most: int) -> int | None:
    """Return a number of the query, or None if it is not there. Raises RequestRefused."""
    return request.number(name, 0, most=most) if request.query.get(name) else None


EVENT = object_of(
    flow=TEXT,
    topic=TEXT,
    partition=NUMBER,
    offset=NUMBER,
    at_ms=NUMBER,
    role=TEXT,
    kind=TEXT,
    about=TEXT,
    text=TEXT,
    detail=OBJECT,
    warning=FLAG,
)
HEADERS = {"type": ["array", "null"], "items": {"type": "array", "prefixItems": [TEXT, {}]}}
RECORD = with_members(EVENT, timestamp_ms=NUMBER, bytes=NUMBER, headers=HEADERS, cut=FLAG)
RECORDS = perhaps(
    object_of(
        at_ms=NUMBER,
        role=TEXT,
        topic=TEXT,
        cluster=TEXT,
        records=list_of(RECORD),
        begins={"type": "object", "additionalProperties": NUMBER},
        ends={"type": "object", "additionalProperties": NUMBER},
        older=PERHAPS_NUMBER,
    ),
    unknown=TEXT,
)
EVENTS = perhaps(object_of(at_ms=NUMBER, flow=TEXT, events=list_of(EVENT), older=FLAG), unknown=TEXT)

ROUTES = (
    Route(
        "GET",
        f"{API}/flows/{{flow}}/events",
        _show_events,
        "Events, the newest first, as lockstep watch shows them",
        query=(
            Parameter("limit", "Most events", "integer", default=FEW_EVENTS, least=1, most=MOST_RECORDS),
            Parameter("before_ms", "Only events up to this moment, in Unix milliseconds", "integer", least=0),
            Parameter("kind", "Only events of this kind"),
        ),
        answers={200: EVENTS},
        answered_within_s=READ_WITHIN_S,
    ),
    Route(
        "GET",
        f"{API}/flows/{{flow}}/records",
        _show_records,
        "Records of a control topic, decoded, the newest first",
        query=(
            Parameter("topic", "The role of the topic", default="events", choices=tuple(ROLES)),
            Parameter("limit", "Most records", "integer", default=FEW_RECORDS, least=1, most=MOST_RECORDS),
            Parameter("from", "Where to begin", default="end", choices=("end", "beginning")),
            Parameter("partition", "Only this partition", "integer", least=0, most=MOST_PARTITION),
            Parameter("before", "Only records before this offset of the partition", "integer", least=0),
        ),
        answers={200: RECORDS},
        answered_within_s=READ_WITHIN_S,
    ),
)
