"""What one connection fetches from one broker: question, answer, delivery, and the next question.

As soon as a large answer is in, the next request is out. Only then are the batches judged: so the broker never waits
for us. A small answer's records go on their way first, as soon as they are read from the socket. They would otherwise
wait for the next request and for a turn of the event loop. That takes as long as the answer itself. Single records that
come by the thousand are fetched a few at a time, over one connection (`small_batch_pacer.py`)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from aiokafka.errors import KafkaError

from lockstep_data_plane.core.events import Received
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.fetch.fetch_request import NOTHING, Delivery, FetchRequest, FetchResult
from lockstep_data_plane.fetch.memory_budget import FetchBudget
from lockstep_data_plane.fetch.small_batch_pacer import SmallBatchPacer, rest_s
from lockstep_data_plane.record_batch.layout import Batch, scan
from lockstep_data_plane.wire.cluster import PartitionLeader
from lockstep_data_plane.wire.connection import BrokerUnreachable, Connection
from lockstep_data_plane.wire.fetch_codec import NOBODY, fetch_request, read_answer, topic_names
from lockstep_data_plane.wire.fetch_session import SESSION_LOST, FetchSession, SessionRequest, Wanted
from lockstep_data_plane.wire.frame_protocol import EncodedRequest
from lockstep_protocol.kafka_errors import KafkaErrorCode
from lockstep_runtime.util.asyncio_util import set_within

if TYPE_CHECKING:
    from lockstep_data_plane.fetch.fetcher import Fetcher

CROWDED_WAIT_MS = 10
"""A fetch that had to leave out partitions without room comes back soon, for they will have room again."""

PRESSED_S = 0.05
"""Where most of what the slot may hold is taken, a question that may bring but little waits so long for more room."""


class FetchConnection:
    """Fetches its partitions from one broker, which leads them or is a replica that their leader named, until it is
    cancelled."""

    def __init__(self, fetcher: Fetcher, broker: int, index: int) -> None:
        self._fetcher = fetcher
        self.broker = broker
        self.index = index
        self.partitions: dict[PartitionMachine, PartitionLeader] = {}
        self.wake = asyncio.Event()
        self.roomier = asyncio.Event()
        """There is as much room as usual again, where there was less."""
        self._asked_at = 0.0
        self._kept_s = 0.0
        """How long the broker may keep the question that is out."""
        self._connection: Connection | None = None
        self._session = FetchSession()
        self._each = 0
        """The bytes that the session was asked to bring of each partition at most."""
        self._turn = 0
        self.pacer = SmallBatchPacer()
        self._fetched_result = NOTHING
        self._asks_for = 0
        """Bytes that may come for the question that is out."""
        self._waits = 0
        """Bytes that have come and are not handed over yet."""
        self._last: FetchRequest | None = None
        """The last request, if no partition has come or gone since and none had an error. Going through thousands of
        partitions for each answer is most of its cost."""

    async def run(self) -> None:
        """Fetch, deliver, and begin again. A lost connection or leader is reported for each partition concerned."""
        while True:
            if not self._can_ask():
                self.wake.clear()
                await self.wake.wait()
                continue
            try:
                self._connection = await self._fetcher.cluster.connection(self.broker, f"fetch-{self.index}")
                await self._fetch_on(self._connection)
            except (BrokerUnreachable, KafkaError) as exc:
                lost = list(self.partitions.items())
                self.partitions.clear()
                self._last = None
                self._expects(asks_for=0, waits=0)
                for partition, leader in lost:
                    if leader.broker == self.broker:
                        self._fetcher.on_trouble(partition, f"cluster {self._fetcher.cluster.alias}: {exc}")
                    else:
                        self._fetcher.replica_failed(partition)

    def stirred(self) -> None:
        """A partition comes or goes, or shares its room with one more or less."""
        self._last = None

    async def _fetch_on(self, connection: Connection) -> None:
        self._session.lost()
        asked = await self._ask_in_time(connection)
        while asked is not None:
            self._asked_at = asked_at = time.monotonic()
            await asked
            self._asked_at = 0.0
            now, fetched_result = time.monotonic(), self._fetched_result
            self._fetched_result = NOTHING
            paced = self.pacer.paced(fetched_result.batches, fetched_result.size, now)
            self._fetcher.share_out(self, now)
            asked = None
            if not fetched_result.little:
                terms = None if connection.throttled_for else self._terms()
                asked = None if terms is None or terms.pressed else self._ask(connection, terms)
                self._hand_over(fetched_result)
            if paced and (rest := rest_s(time.monotonic() - asked_at)):
                await asyncio.sleep(rest)
            if asked is None:
                asked = await self._ask_in_time(connection)

    async def _ask_in_time(self, connection: Connection) -> asyncio.Future[Any] | None:
        """Ask once the broker has had its rest, and there is room, or has not been for a while."""
        await connection.throttle_over()
        terms = self._terms()
        if terms is not None and terms.pressed:
            self.roomier.clear()
            await set_within(self.roomier, PRESSED_S)
            terms = self._terms()
        return None if terms is None else self._ask(connection, terms)

    def _on_answer(self, question: FetchRequest, answer: Any) -> None:
        """Take an answer apart as soon as it is there, and hand over what is little."""
        deliveries = list(self._parse_answer(question, answer))
        size = sum(len(delivery.fetched.records) for delivery in deliveries)
        self._fetched_result = FetchResult(size, sum(len(delivery.batches) for delivery in deliveries), deliveries)
        self._expects(asks_for=0, waits=size)
        if self._fetched_result.little:
            self._hand_over(self._fetched_result)

    def _hand_over(self, fetched_result: FetchResult) -> None:
        """What an answer brought is its partitions' from now on."""
        self._fetcher.deliver(fetched_result.deliveries)
        self._expects(asks_for=self._asks_for, waits=0)

    def _expects(self, *, asks_for: int, waits: int) -> None:
        self._asks_for, self._waits = asks_for, waits
        self._fetcher.expects(self, asks_for + waits)

    def _can_ask(self) -> bool:
        eligible = self._eligible()
        terms = self._terms() if eligible else None
        return terms is not None and any(self._fetcher.may_bring(p, terms) for p in eligible)

    def _terms(self) -> FetchBudget | None:
        return self._fetcher.terms(self._connection)

    def _eligible(self) -> list[PartitionMachine]:
        return [p for p in self.partitions if p.reads]

    def _ask(self, connection: Connection, terms: FetchBudget) -> asyncio.Future[Any] | None:
        if (last := self._last) is not None and (plan := self._onward(last, terms)) is not None:
            return self._send(connection, last, plan, terms)
        self._fetcher.send_back(self, self.partitions)
        eligible = self._eligible()
        roomy = [p for p in eligible if self._fetcher.may_bring(p, terms)]
        if not roomy:
            return None
        self._turn += 1
        begin = self._turn % len(roomy)  # the first partition of a fetch is never starved, so each is first in turn
        asked = {p.tp: (p, p.incarnation, self._wanted(p)) for p in (*roomy[begin:], *roomy[:begin])}
        wanted = [each for _, _, each in asked.values()]
        by_id = all(leader.topic_id is not None for leader in self.partitions.values())
        lasts = len(roomy) == len(self.partitions) and self._fetcher.questions_last
        self._last = question = FetchRequest(asked, topic_names(wanted), by_id, lasts, terms.each)
        if terms.each != self._each:
            self._each = terms.each
            self._session.resized()
        plan = self._session.plan(wanted)
        wait_ms = None if len(roomy) == len(eligible) else CROWDED_WAIT_MS
        return self._send(connection, question, plan, terms, wait_ms, self._fetcher.rack(roomy))

    def _onward(self, last: FetchRequest, terms: FetchBudget) -> SessionRequest | None:
        """The next question where it differs from the last one only by what has moved; else None.

        A partition that moves may lose its room. This is checked twice, for a large answer is handed over after the
        next request. A partition that does not move, and holds more than is left by now, is asked for once more when it
        moves.
        """
        if not last.lasts or last.each != terms.each:
            return None
        if not all(self._fetcher.may_bring(p, terms) for p in (*last.moved, *last.moved_before)):
            return None
        moved = [self._wanted(p) for p in last.moved]
        for p, wanted in zip(last.moved, moved, strict=True):
            last.asked[p.tp] = p, p.incarnation, wanted
        plan = self._session.onward(moved)
        last.moved, last.moved_before = [], last.moved
        return plan

    def _wanted(self, partition: PartitionMachine) -> Wanted:
        return partition.tp, self.partitions[partition], partition.fetch_from, partition.fetched_epoch

    def _send(
        self,
        connection: Connection,
        question: FetchRequest,
        plan: SessionRequest,
        terms: FetchBudget,
        wait_ms: int | None = None,
        rack: str = "",
    ) -> asyncio.Future[Any]:
        size = min(terms.at_most, len(question.asked) * terms.each)
        self._kept_s = (self._fetcher.settings.max_wait_ms if wait_ms is None else wait_ms) / 1e3
        request = self._request(connection, question, plan, size, wait_ms, rack)
        answer = connection.ask(request, partial(self._on_answer, question))
        self._expects(asks_for=size, waits=self._waits)
        return answer

    def _request(
        self,
        connection: Connection,
        question: FetchRequest,
        plan: SessionRequest,
        size: int,
        wait_ms: int | None,
        rack: str,
    ) -> EncodedRequest:
        return fetch_request(
            connection.version("fetch"),
            plan.changed,
            self._fetcher.settings,
            isolation=self._fetcher.isolation,
            wait_ms=wait_ms,
            session=plan,
            rack=rack,
            partition_bytes=question.each,
            max_bytes=size,
            by_id=question.by_id,
        )

    def _parse_answer(self, question: FetchRequest, answer: Any) -> Iterator[Delivery]:
        if answer.error_code in SESSION_LOST:
            self._session.lost()
            return
        self._session.answered(int(answer.session_id))
        asked = question.asked
        # In a session an answer has only partitions with news: nothing here goes through all that was asked for.
        wanted = (each for _, _, each in asked.values())
        for fetched in read_answer(wanted, answer, question.names):
            partition, incarnation, _ = asked[fetched.tp]
            if partition.incarnation != incarnation:
                continue
            if fetched.code or fetched.read_from != NOBODY:
                self._last = None
            if fetched.read_from not in (NOBODY, self.broker):
                self._fetcher.read_from(partition, fetched.read_from)
                continue
            batches: tuple[Batch, ...] = ()
            if fetched.records:
                try:
                    batches = tuple(scan(fetched.records))
                except ValueError:
                    fetched = fetched._replace(code=KafkaErrorCode.CORRUPT_MESSAGE)
                    self._last = None
                if batches:
                    partition.step(Received(batches[-1].last_offset + 1, batches[-1].leader_epoch))
                question.moved.append(partition)
            leader = self.partitions.get(partition)
            # A replica that knows a later leader has not failed: the position of the copy is to be checked.
            failed = fetched.code not in (KafkaErrorCode.NONE, KafkaErrorCode.FENCED_LEADER_EPOCH)
            if failed and leader is not None and leader.broker != self.broker:
                self._fetcher.replica_failed(partition)
                continue
            yield Delivery(partition, incarnation, fetched, batches)

    def end_stuck(self, now: float) -> None:
        """Close the connection when its broker has been silent for too long; the fetch then fails like any lost one."""
        timeouts = self._fetcher.cluster.timeouts
        if self._connection is not None and timeouts.ends_fetch(self._asked_at, now, self._kept_s):
            self._connection.close()
