"""A connector's source offsets in the offsets topic of Connect: listed, altered and reset as by Connect's REST API."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lockstep_kafka.common.errors import TopicMissing
from lockstep_kafka.topics.control_topics import source_offsets_topic
from lockstep_kafka.topics.topic_follower import target_follower
from lockstep_kafka.topics.topic_reader import Record
from lockstep_runtime.flow.context import Answer, FlowContext
from lockstep_runtime.flow.control_topic_creation import create_control_topics
from lockstep_state.codecs.connect_offsets import OffsetChange, OffsetFold, encode_change, listing, parse_changes
from lockstep_state.codecs.mm2_codec import MalformedRecord
from lockstep_state.commands.command import Command
from lockstep_state.commands.command_vocabulary import OFFSETS_ALTER, OFFSETS_LIST, OFFSETS_RESET, VERBS, Connector

LISTED = 5_000
"""Most entries in one answer: an event is one record, and brokers take 1 MiB."""

READ_WITHIN_S = 30.0


class ConnectOffsets:
    """The source offsets of one connector of a flow. Its service is stopped while they are changed."""

    def __init__(self, ctx: FlowContext, connector: Connector) -> None:
        self._ctx = ctx
        self._connector = connector
        control = ctx.settings.control
        self._topic = source_offsets_topic(control)
        self.name = control.progress_connector if connector is Connector.SOURCE else connector.value
        """The connector's name in the keys of the offsets topic."""

    async def carry_out(self, command: Command) -> Answer | None:
        """Carry out a command about offsets that are records without a function; return None for another verb.

        Raises:
            ValueError: The offsets are refused, or the topic cannot be read to its end.
            ClusterError: The cluster refuses or does not answer.
        """
        if command.verb == OFFSETS_LIST:
            return listed_offsets_answer((await self.read()).values())
        if command.verb == OFFSETS_ALTER:
            changes = parse_changes(self._connector, command.arguments)
            await self.write(changes)
            return changed_offsets_answer(command.verb, len(changes))
        if command.verb == OFFSETS_RESET:
            return changed_offsets_answer(command.verb, await self.reset())
        return None

    async def read(self) -> Mapping[bytes, OffsetChange]:
        """Read the offsets in the topic, by record key; offsets that were reset are absent.

        Raises:
            ValueError: The topic cannot be read to its end within 30 s.
            ClusterError: The cluster refuses or does not answer.
        """
        ctx, fold = self._ctx, OffsetFold()

        def fold_in(records: Sequence[Record]) -> None:
            for record in records:
                try:
                    fold.apply(record.key, record.value)
                except MalformedRecord as exc:
                    ctx.unreadable.pass_over(record, exc, stays=True)

        try:
            async with asyncio.timeout(READ_WITHIN_S):
                await target_follower(ctx.settings, ctx.service, self._topic.name, fold_in).replay()
        except TopicMissing:
            return {}
        except TimeoutError as exc:
            raise ValueError(
                f"cluster {ctx.target.alias}: topic {self._topic.name} cannot be read to its end: is a transaction "
                "left open there? Ask again in a minute"
            ) from exc
        return fold.for_connector(self.name)

    async def write(self, changes: Iterable[OffsetChange]) -> None:
        """Append changes as Connect would, and create a missing topic first.

        Raises:
            ClusterError: The cluster refuses or does not answer. Some changes may have been appended.
        """
        await self._append(encode_change(self.name, change) for change in changes)

    async def reset(self) -> int:
        """Append a tombstone for each offset in the topic, and return how many. Raises as `read` and `write`."""
        keys = await self.read()
        await self._append((key, None) for key in keys)
        return len(keys)

    async def _append(self, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        ctx = self._ctx
        await create_control_topics(ctx, ctx.target, [self._topic])
        ctx.must_act()
        await ctx.fenced_log(self._topic.name).append_all(records)


def changed_offsets_answer(verb: str, entries: int) -> Answer:
    """Return the answer to a command that has changed so many entries."""
    return Answer(VERBS[verb].answer, {"entries": entries})


def listed_offsets_answer(entries: Iterable[OffsetChange]) -> Answer:
    """Return the answer to `offsets list`: at most `LISTED` offsets by topic and partition, and the number left out."""
    listed: list[dict[str, Any]] = listing(entries)["offsets"]
    listed.sort(key=_by_topic)
    return Answer(VERBS[OFFSETS_LIST].answer, {"offsets": listed[:LISTED], "left_out": max(0, len(listed) - LISTED)})


def _by_topic(entry: Mapping[str, Any]) -> list[tuple[int, str]]:
    values = [value for _, value in sorted(entry["partition"].items(), reverse=True)]
    return [(value if isinstance(value, int) else 0, str(value)) for value in values]
