"""The search for transactions of ours that hang, and for commits that the target's log contradicts.

See `core/target_log/hanging_transaction.py`. Nothing here changes a log.
"""

from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.target_log.hanging_transaction import (
    HangingTransaction,
    TransactionOutcome,
    is_to_be_committed,
)
from lockstep_data_plane.log_reader import log_between
from lockstep_data_plane.progress.committed_progress import CommittedProgressReader, is_commit_marker
from lockstep_kafka.wire.cluster import EARLIEST, ClusterClient
from lockstep_kafka.wire.optional_requests import open_transaction
from lockstep_state.offsets import TopicPartition
from lockstep_state.rows.state_rows import PartitionProgress


class HangingTransactions:
    """The finder of hanging transactions of one slot's partitions."""

    def __init__(self, target: ClusterClient, progress: CommittedProgressReader) -> None:
        self._target = target
        self._progress = progress

    async def find(self, partition: PartitionState, producer_id: int) -> HangingTransaction | None:
        """Return the transaction that the partition's producer has open; None: there is none.

        It hangs if its coordinator says that no transaction is under way, as after the fence of its transactional id.
        On a cluster without DescribeProducers only the progress topic shows an open transaction.

        Raises:
            KafkaProtocolError: A broker answers with an error.
            BrokerUnreachable: The target cannot be reached.
        """
        topic = partition.target_topic
        topic_id = self._target.topic_id(partition.target_tp)
        last, _ = await self._progress.read_last_records(partition.tp, producer_id, topic_id)
        hanging = {}
        for number in partition.routing.numbers:
            first = await open_transaction(self._target, (topic, number), producer_id)
            if first is not None:
                hanging[number] = first
        has_open_progress = last is not None and last.outcome is TransactionOutcome.OPEN
        if not hanging and not has_open_progress:
            return None
        partitions = [(topic, number) for number in sorted(hanging)]
        ended = []
        if last is not None and has_open_progress:
            progress_partition = await self._progress.progress_partition(partition.tp)
            partitions += [] if progress_partition is None else [progress_partition]
            for number, offset in (last.appended_to or {}).items():
                outcome = None if number in hanging else await self._marker_behind((topic, number), offset, producer_id)
                ended += [] if outcome is None else [outcome]
        return HangingTransaction(tuple(partitions), is_to_be_committed(last, hanging, ended))

    async def find_contradiction(
        self, partition: PartitionState, row: PartitionProgress, producer_id: int
    ) -> str | None:
        """Return how the target's log contradicts a commit that the row or the progress topic has; None: it does not.

        The commit of a hanging transaction may break off so that its fence aborts what the progress topic has as
        committed, or what the row has as acknowledged. Copies that spread by keys are not examined.

        Raises:
            KafkaProtocolError: A broker answers with an error.
            BrokerUnreachable: The target cannot be reached.
        """
        if not partition.routing.in_one_log:
            return None
        topic_id, number = self._target.topic_id(partition.target_tp), partition.number
        _, committed = await self._progress.read_last_records(partition.tp, producer_id, topic_id)
        if committed is None or committed.appended_to is None or number not in committed.appended_to:
            return None
        last = committed.appended_to[number]
        if await self._marker_behind(partition.target_tp, last, producer_id) is False:
            return (
                f"the progress of {partition.name} is committed, and its records up to offset {last} of "
                f"{partition.target_name} are aborted"
            )
        if row.sequence >= 0 and row.producer_id == producer_id and row.downstream > last + 1:
            return (
                f"our row says that offset {row.downstream} of {partition.target_name} was committed, and committed "
                f"progress goes up to offset {last}"
            )
        return None

    async def _marker_behind(self, tp: TopicPartition, offset: int, producer_id: int) -> bool | None:
        """Return whether the producer's next marker behind an offset commits; None: the log has none there."""
        start = max(offset + 1, await self._target.end_offset(tp, timestamp=EARLIEST))
        end = await self._target.end_offset(tp)
        async for batches, _ in log_between(self._target, tp, start, end):
            for batch in batches:
                if batch.producer_id == producer_id and batch.base_offset > offset:
                    return is_commit_marker(batch)
        return None
