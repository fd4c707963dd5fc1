"""Admin requests about the offsets of logs (ListOffsets)."""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

from confluent_kafka import OFFSET_INVALID, IsolationLevel, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import _AdminClientImpl

from lockstep_kafka.admin.admin_requests import AdminRequests
from lockstep_kafka.admin.request_pieces import ask_in_pieces
from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, NotPermitted, RequestRefused
from lockstep_kafka.wire.cluster import EARLIEST, LATEST
from lockstep_state.offsets import TopicPartition

ENDS_AT_ONCE = 2_000
"""Partitions in one ListOffsets request."""

LISTS_OFFSETS = "list offsets of"
NO_ANSWER = "the leader of the partition did not answer"


class OffsetRequests(AdminRequests):
    async def end_offsets(
        self, partitions: Iterable[TopicPartition], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        """Return the log end offset of each partition, or with `read_committed` its last stable offset.

        A partition is absent if its leader did not answer.
        """
        return await self._offsets(partitions, LATEST, read_committed=read_committed)

    async def reachable_end_offsets(
        self,
        partitions: Iterable[TopicPartition],
        *,
        read_committed: bool = False,
        within: timedelta | None = None,
    ) -> dict[TopicPartition, int]:
        """Return the same as `end_offsets`, but raise if no leader answers.

        Args:
            partitions: Topic and number of each partition.
            read_committed: True for last stable offsets.
            within: The limit of a leader's answer. None is the limit of any request.

        Raises:
            ClusterUnreachable: No leader answered.
        """
        wanted = list(partitions)
        ends = await self._offsets(wanted, LATEST, read_committed=read_committed, within=within)
        if wanted and not ends:
            raise ClusterUnreachable(self.alias, self.bootstrap, "no broker says where the logs end")
        return ends

    async def end_offsets_or_troubles(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, ClusterError]]:
        """Return the log end offset of each partition, and an error for each partition that has none."""
        results, troubles = await self._list_offsets(partitions, LATEST)
        return {tp: int(result.offset) for tp, result in results.items()}, troubles

    async def begin_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the log start offset of each partition.

        A partition is absent if its leader did not answer.
        """
        return await self._offsets(partitions, EARLIEST)

    async def offsets_since(self, partitions: Iterable[TopicPartition], moment_ms: int) -> dict[TopicPartition, int]:
        """Return the offset of each partition's first record of this time or later; -1 if there is none.

        The time is in Unix milliseconds. A partition is absent if its leader did not answer.
        """
        return await self._offsets(partitions, moment_ms)

    async def oldest_timestamps(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the timestamp of each partition's first record, in Unix milliseconds.

        A partition is absent if its leader did not answer, or if its log is empty.
        """
        results, _ = await self._list_offsets(partitions, 0)
        return {tp: int(result.timestamp) for tp, result in results.items() if result.timestamp >= 0}

    async def _offsets(
        self,
        partitions: Iterable[TopicPartition],
        moment_ms: int,
        *,
        read_committed: bool = False,
        within: timedelta | None = None,
    ) -> dict[TopicPartition, int]:
        results, _ = await self._list_offsets(partitions, moment_ms, read_committed=read_committed, within=within)
        return {tp: int(result.offset) for tp, result in results.items()}

    async def _list_offsets(
        self,
        partitions: Iterable[TopicPartition],
        moment_ms: int,
        *,
        read_committed: bool = False,
        within: timedelta | None = None,
    ) -> tuple[dict[TopicPartition, Any], dict[TopicPartition, ClusterError]]:
        """Return the ListOffsets result of each partition, and an error for each partition that has none."""
        level = IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
        results: dict[TopicPartition, Any] = {}
        troubles: dict[TopicPartition, ClusterError] = {}

        async def ask(piece: Sequence[TopicPartition]) -> None:
            began = time.monotonic()
            limit_s = within.total_seconds() if within else self._timeout
            request = _request_offsets(await self._connected(), piece, moment_ms, level, limit_s)
            with self._step(LISTS_OFFSETS, f"{len(piece)} of them"):
                try:
                    answers = {
                        (key.topic, key.partition): answer for key, answer in (await self._result(request)).items()
                    }
                except KafkaException as exc:  # such as: there is none of the topics
                    answers = dict.fromkeys(piece, exc.args[0])
                for tp, answer in answers.items():
                    if not isinstance(answer, KafkaError) and answer.offset != OFFSET_INVALID:
                        results[tp] = answer
                        continue
                    troubles[tp] = await self._offset_trouble(answer, f"topic {tp[0]}", began)

        async for _ in ask_in_pieces(dict.fromkeys(partitions), ENDS_AT_ONCE, ask):
            pass
        return results, troubles

    async def _offset_trouble(self, answer: Any, resource: str, began: float) -> ClusterError:
        """Return why a partition has no offset.

        Raises:
            ClusterUnreachable: No broker answered, so no partition has a result.
        """
        if not isinstance(answer, KafkaError):
            # librdkafka returns an invalid offset and no error for a partition whose leader did not answer.
            return RequestRefused(self.alias, LISTS_OFFSETS, resource, KafkaError._TIMED_OUT, NO_ANSWER)
        trouble = await self._trouble(answer, LISTS_OFFSETS, resource, began)
        if not isinstance(trouble, NotPermitted | RequestRefused):
            raise trouble
        return trouble


def _request_offsets(
    client: AdminClient, partitions: Sequence[TopicPartition], moment_ms: int, level: IsolationLevel, limit_s: float
) -> Future[dict[Partition, Any]]:
    """Send ListOffsets, and return the future of all results: a ListOffsetsResultInfo or a KafkaError for each.

    `AdminClient.list_offsets` makes a future for each partition, which costs ten times as much as all the rest.
    """
    future: Future[dict[Partition, Any]] = Future()
    future.set_running_or_notify_cancel()
    _AdminClientImpl.list_offsets(
        client,
        [Partition(topic, partition, moment_ms) for topic, partition in partitions],
        future,
        isolation_level_value=level.value,
        request_timeout=limit_s,
    )
    return future
