"""The stream of changes (server-sent events): what has changed, put together, at most ten messages a second.

A client that reads slowly gets fewer messages, not more memory: what waits for it is a set of flows, the last value of
each row, and so many events.
"""

import asyncio
from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Protocol

from lockstep_console.flow_watch import FlowWatch
from lockstep_console.followed.watched_events import WatchedEvent
from lockstep_console.json_text import json_bytes, json_text
from lockstep_console.views.lag_body import lag_tail
from lockstep_console.views.listing import worst_partitions
from lockstep_kafka.common.asyncio_util import cancelled, set_within
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.http.stream import AnswerStream
from lockstep_runtime.util.clock import now_ms
from lockstep_state.codecs.strict_json import parse_json, require_shallow
from lockstep_state.rows.row import NewerVersion
from lockstep_state.rows.state_rows import LagBlock

MESSAGE_INTERVAL_S = 0.1
"""The shortest time between two messages."""

KIND_INTERVAL_S = 1.0
"""The shortest time between two messages of the same kind about one flow, and between two with flows."""

UNCHANGED_INTERVAL_S = 10.0
"""The seconds after which a status is sent although nothing has changed: it says when it was read."""

SIGN_INTERVAL_S = 10.0
"""The seconds after which a comment shows that the stream lives."""

MOST_EVENTS = 500
"""Events that wait for a client. Earlier ones are left out; `GET /events` has them."""

MOST_ROWS = 5_000
"""Rows that wait for a client. With more of them it is greeted anew, so that it reads all again."""

MOST_PUBLISHED = 200
"""Outcomes that wait for a client."""

HELLO, STATUS, ROWS, EVENTS, WORST, LAG = "hello", "status", "rows", "events", "worst", "lag"
"""Kinds of messages. Others are published by parts of the console, such as `command`."""


LAG_ROWS = f"{LagBlock.kind}/".encode()
"""The beginning of the keys of rows with the lag of a flow. The data plane writes one each ten seconds."""


class Published(Protocol):
    """An open stream, which is to know what the console itself does, such as the outcome of a command."""

    def on_published(self, kind: str, flow: str, body: Mapping[str, Any]) -> None:
        """Take note of it."""


class ChangeBroadcast:
    """The streams that are open."""

    def __init__(self) -> None:
        self._streams: list[Published] = []

    @property
    def count(self) -> int:
        """Return the number of open streams."""
        return len(self._streams)

    def add(self, stream: Published) -> None:
        """Take a stream that has been opened."""
        self._streams.append(stream)

    def remove(self, stream: Published) -> None:
        """Forget a stream that has ended."""
        self._streams.remove(stream)

    def publish(self, kind: str, flow: str, body: Mapping[str, Any]) -> None:
        """Send something to every open stream that shows this flow, such as `command` with an outcome."""
        for stream in list(self._streams):
            stream.on_published(kind, flow, body)


class ChangeStream:
    """The stream of one client. It keeps what the client is to be told, and has not been told yet."""

    def __init__(
        self, watches: Sequence[FlowWatch], row_kinds: Collection[str], worst: int, lag_of: Collection[str] = ()
    ) -> None:
        """Take what the client wants.

        Args:
            watches: The flows that it shows.
            row_kinds: The kinds of rows.
            worst: How many of the worst partitions.
            lag_of: The flows whose history of the lag it shows.
        """
        self._watches = {watch.name: watch for watch in watches}
        self._prefixes = tuple(f"{kind}/".encode() for kind in row_kinds)
        self._worst = worst
        self._lag_of = frozenset(lag_of)
        self._changed = asyncio.Event()
        self._due: OrderedDict[tuple[str, str], None] = OrderedDict()
        """Kind and flow of what is to be said, oldest first."""
        self._not_before: dict[tuple[str, str], float] = {}
        self._reported: dict[str, None] = {}
        """The flows with a new report, oldest first. They are one message: a page draws once for all of them."""
        self._sent_status: dict[str, tuple[float, int]] = {}
        self._rows: defaultdict[str, dict[bytes, Record]] = defaultdict(dict)
        self._events: defaultdict[str, deque[Record]] = defaultdict(lambda: deque(maxlen=MOST_EVENTS))
        self._published: deque[tuple[str, Mapping[str, Any]]] = deque(maxlen=MOST_PUBLISHED)

    # -- what comes ----------------------------------------------------------------------------------------------------

    def on_report(self, watch: FlowWatch) -> None:
        self._reported.setdefault(watch.name)
        self._note(STATUS, "")
        if self._worst:
            self._note(WORST, watch.name)

    def on_rows(self, watch: FlowWatch, records: Sequence[Record]) -> None:
        if watch.name in self._lag_of and any(record.key and record.key.startswith(LAG_ROWS) for record in records):
            self._note(LAG, watch.name)
        if not self._prefixes:
            return
        rows = self._rows[watch.name]
        rows.update((record.key, record) for record in records if record.key and record.key.startswith(self._prefixes))
        if len(rows) > MOST_ROWS:
            rows.clear()
            self._note(HELLO, "")
        elif rows:
            self._note(ROWS, watch.name)

    def on_events(self, watch: FlowWatch, records: Sequence[Record]) -> None:
        self._events[watch.name].extend(records)
        self._note(EVENTS, watch.name)

    def on_published(self, kind: str, flow: str, body: Mapping[str, Any]) -> None:
        if flow in self._watches:
            self._published.append((kind, body))
            self._changed.set()

    def _note(self, kind: str, flow: str) -> None:
        self._due.setdefault((kind, flow))
        self._changed.set()

    # -- what is sent --------------------------------------------------------------------------------------------------

    async def send_all(self, answer: AnswerStream, broadcast: ChangeBroadcast) -> None:
        """Send what changes until the client goes away."""
        broadcast.add(self)
        sending = asyncio.ensure_future(self._send(answer))
        leaving = asyncio.ensure_future(answer.ended())
        try:
            with ExitStack() as watching:
                for watch in self._watches.values():
                    watching.enter_context(watch.watching(self))
                await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if sending.done():
                    with suppress(ConnectionError):  # the client has gone, or took nothing
                        sending.result()
        finally:
            broadcast.remove(self)
            await cancelled([sending, leaving])

    async def _send(self, answer: AnswerStream) -> None:
        loop = asyncio.get_running_loop()
        await answer.send(message(HELLO, {"at_ms": now_ms()}))
        spoke_at = loop.time()
        while True:
            self._changed.clear()
            said = self.next_message(loop.time())
            if said is not None:
                await answer.send(message(*said))
                spoke_at = loop.time()
                await asyncio.sleep(MESSAGE_INTERVAL_S)
                continue
            if self._due:  # too soon for it
                await asyncio.sleep(MESSAGE_INTERVAL_S)
            else:
                await set_within(self._changed, max(0.0, spoke_at + SIGN_INTERVAL_S - loop.time()))
            if loop.time() - spoke_at >= SIGN_INTERVAL_S:
                await answer.send(b": the stream lives\n\n")
                spoke_at = loop.time()

    def next_message(self, now: float) -> tuple[str, Any] | None:
        """Return the next message as its kind and its body, or None if there is none now.

        Args:
            now: The seconds of a clock that does not go back.
        """
        if self._published:
            return self._published.popleft()
        for kind, flow in list(self._due):
            if self._not_before.get((kind, flow), now) > now:
                continue
            del self._due[kind, flow]
            body = self._body(kind, flow, now)
            if body is not None:
                self._not_before[kind, flow] = now + KIND_INTERVAL_S
                return kind, body
        return None

    def _body(self, kind: str, flow: str, now: float) -> Any:
        if kind == HELLO:
            return {"at_ms": now_ms()}
        if kind == STATUS:
            reported, self._reported = self._reported, {}
            texts = [text for name in reported if (text := self._status(self._watches[name], now)) is not None]
            return f"[{','.join(texts)}]" if texts else None
        match kind:
            case "rows":
                records, self._rows[flow] = self._rows[flow], {}
                return [_row_body(flow, record) for record in records.values()] or None
            case "events":
                kept = self._events.pop(flow, deque())
                return [WatchedEvent(record).as_json(flow) for record in kept] or None
            case "lag":
                return {"flow": flow, **lag_tail(self._watches[flow].rows.find, now_ms())}
        return self._worst_partitions(self._watches[flow])

    def _status(self, watch: FlowWatch, now: float) -> str | None:
        """Return the flow as text, unless the client has just got the same."""
        shown = watch.shown()
        sent = self._sent_status.get(watch.name)
        if sent is not None and now - sent[0] < UNCHANGED_INTERVAL_S and sent[1] == shown.content:
            return None
        self._sent_status[watch.name] = now, shown.content
        return shown.text

    def _worst_partitions(self, watch: FlowWatch) -> Mapping[str, Any] | None:
        report = watch.dated.report
        if report is None:
            return None
        lines = worst_partitions(report.partitions, self._worst)
        try:
            bodies = watch.partition_bodies(lines)
        except NewerVersion:
            return None  # the status says so
        return {"flow": watch.name, "at_ms": report.at_ms, "partitions": bodies}


def _row_body(flow: str, record: Record) -> dict[str, Any]:
    """Return a record of the state topic as the stream shows it. The value of a deleted row is None."""
    value = None
    if record.value is not None:
        try:
            value = parse_json(record.value)
            require_shallow(value)
        except ValueError:
            value = {"undecoded": record.value[:1_000].decode(errors="replace")}
    return {"flow": flow, "key": (record.key or b"").decode(errors="replace"), "value": value}


def message(kind: str, body: Any) -> bytes:
    """Return a message of the stream. The body is JSON already if it is a text; JSON has no line break of its own."""
    data = body if isinstance(body, str) else json_text(body)
    return json_bytes(f"event: {kind}\ndata: {data}\n\n")
