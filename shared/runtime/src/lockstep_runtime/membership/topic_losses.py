"""Control topics that were lost, from one session of a flow to the next.

Each loss becomes one event, also if another replica has created the topic again, or the event cannot be written at
once.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lockstep_kafka.topics.topic_follower import target_follower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.commands.command_vocabulary import SERVICES
from lockstep_state.events import Event, decode_event
from lockstep_state.names import events_topic
from lockstep_state.rows.row import MalformedRow, NewerVersion

KIND = "ControlTopicLost"

TURN_S = 6.0
"""Seconds by which each service lets the one before it report first: longer than from one check to the next."""

TRIED_AGAIN_S = 40.0
"""Seconds after which an event that is not in its topic is written again: longer than an append may take."""

RECENT_MS = 120_000
"""Milliseconds before a loss was noticed within which an event may be about it, if topics have no ids."""


@dataclass(slots=True)
class TopicLoss:
    """A control topic that was replaced by another one. `topic_id` is "" if the brokers have no topic ids."""

    alias: str
    topic: str
    topic_id: str
    noticed_ms: int
    due_at: float
    """When to report it, unless another service has; seconds of a clock that does not go back."""

    def is_reported_by(self, event: Event) -> bool:
        """Return whether the event is about this loss."""
        if (event.kind, event.subject, event.detail.get("cluster")) != (KIND, self.topic, self.alias):
            return False
        if self.topic_id:
            return event.detail.get("topic_id") == self.topic_id
        return event.at_ms >= self.noticed_ms - RECENT_MS


class TopicIds:
    """Remember the ids of control topics, and find those that were lost. Pure."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], str] = {}
        self._missing: set[tuple[str, str]] = set()

    def observe(
        self, alias: str, ids: Mapping[str, str], missing: Collection[str] = (), created: Collection[str] = ()
    ) -> list[tuple[str, str]]:
        """Compare topic ids with those that were known of the cluster `alias`.

        Args:
            alias: The cluster.
            ids: Ids by topic; "" is unknown and not compared.
            missing: Topics that several checks have not found.
            created: Topics that this replica has just created.

        Returns:
            Each topic that was lost and exists again, with its present id.
        """
        lost = []
        for topic in missing:
            if (alias, topic) in self._ids:
                self._missing.add((alias, topic))
        for topic, topic_id in sorted(ids.items()):
            key = alias, topic
            before = self._ids.get(key)
            is_new = key in self._missing or (before is not None and topic in created)
            if is_new or (before and topic_id and before != topic_id):
                lost.append((topic, topic_id))
            self._missing.discard(key)
            self._ids[key] = topic_id or ("" if is_new else before or "")
        return lost

    def forget(self, alias: str) -> None:
        """Forget the ids of a cluster: another one answers at its address."""
        self._ids = {key: topic_id for key, topic_id in self._ids.items() if key[0] != alias}
        self._missing = {key for key in self._missing if key[0] != alias}


class TopicLosses:
    """The losses that one replica has noticed and not seen reported yet, in all its sessions."""

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx
        self._ids = TopicIds()
        self._pending: list[TopicLoss] = []
        self._turn_s = TURN_S * (SERVICES.index(ctx.service) if ctx.service in SERVICES else len(SERVICES))

    def observe(
        self, alias: str, ids: Mapping[str, str], missing: Collection[str] = (), created: Collection[str] = ()
    ) -> None:
        """Note what a check has found. See `TopicIds.observe`."""
        clock = self._ctx.clock
        for topic, topic_id in self._ids.observe(alias, ids, missing, created):
            due_at = clock.monotonic() + self._turn_s
            self._pending.append(TopicLoss(alias, topic, topic_id, clock.wall_ms(), due_at))

    def forget(self, alias: str) -> None:
        """Forget the ids of a cluster: another one answers at its address."""
        self._ids.forget(alias)

    async def report(self) -> None:
        """Write the event of each loss that is due and has none, while this replica leads. Raises ClusterError.

        A loss stays pending until its event is read in the events topic, because an append may fail unseen.
        """
        ctx = self._ctx
        now = ctx.clock.monotonic()
        if not (ctx.is_acting and ctx.leadership.leads() and any(loss.due_at <= now for loss in self._pending)):
            return
        events = await self._read_events()
        self._pending = [loss for loss in self._pending if not any(map(loss.is_reported_by, events))]
        due = [loss for loss in self._pending if loss.due_at <= now]
        for loss in due:
            loss.due_at = now + TRIED_AGAIN_S
        await asyncio.gather(*map(self._write, due))

    async def _write(self, loss: TopicLoss) -> None:
        text = f"{loss.topic} on {loss.alias} was not there any more, and is created again"
        await self._ctx.event(KIND, loss.topic, text, cluster=loss.alias, topic_id=loss.topic_id)

    async def _read_events(self) -> list[Event]:
        ctx, events = self._ctx, list[Event]()
        mark = f'"{KIND}"'.encode()

        def fold(records: Sequence[Record]) -> None:
            for record in records:
                if record.value is None or mark not in record.value:
                    continue
                try:
                    events.append(decode_event(record.value))
                except (MalformedRow, NewerVersion):
                    continue  # the reader of answers counts it

        await target_follower(ctx.settings, ctx.service, events_topic(ctx.flow, ctx.settings.group_id), fold).replay()
        return events
