"""The search for transactions of ours that hang, and for commits that the target's log contradicts.

See `core/target_log/hanging_transaction.py`. Nothing here changes a log.
"""

from collections.abc import Sequence

from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.target_log.hanging_transaction import (
    HangingTransaction,
    ProgressRecord,
    TransactionOutcome,
    is_to_be_committed,
)
from lockstep_data_plane.log_reader import log_between
from lockstep_data_plane.progress.committed_progress import CommittedProgressReader, is_commit_marker
from lockstep_kafka.wire.cluster import EARLIEST, ClusterClient
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
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
        On a cluster without DescribeProducers only the progress topic, and what its last record names, is examined.

        Raises:
            KafkaProtocolError: A broker answers with an error.
            BrokerUnreachable: The target cannot be reached.
        """
        topic = partition.target_topic
        topic_id = self._target.topic_id(partition.target_tp)
        last, _ = await self._progress.read_last_records(partition.tp, producer_id, topic_id)
        hanging = {}
        for number in self.target_numbers(partition):
            first = await open_transaction(self._target, (topic, number), producer_id)
            if first is not None:
                hanging[number] = first
        ended: list[bool] = []
        progress_partitions: list[TopicPartition] = []
        if last is not None and last.outcome is TransactionOutcome.OPEN:
            progress_partition = await self._progress.progress_partition(partition.tp)
            progress_partitions += [] if progress_partition is None else [progress_partition]
            for number, offset in (last.appended_to or {}).items():
                if number in hanging:
                    continue
                commits = await self._marker_behind((topic, number), offset, producer_id)
                if commits is not None:
                    ended.append(commits)
                elif "describe_producers" in self._target.unsupported:
                    hanging[number] = offset
        if not hanging and not progress_partitions:
            return None
        partitions = (*((topic, number) for number in sorted(hanging)), *progress_partitions)
        return HangingTransaction(partitions, is_to_be_committed(last, hanging, ended))

    def target_numbers(self, partition: PartitionState) -> Sequence[int]:
        """Return the partitions of the target's topic that a transaction may have, as of the last metadata.

        Raises BrokerUnreachable if they are not known.
        """
        if partition.routing.in_one_log:
            return partition.routing.numbers
        if not (count := self._target.partitions(partition.target_topic)):
            text = f"the partitions of {partition.target_topic} are not known yet"
            raise BrokerUnreachable(text, self._target.alias)
        return range(count)

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
        last, committed = await self._progress.read_last_records(partition.tp, producer_id, topic_id)
        name, is_acked = partition.target_name, row.sequence >= 0 and row.producer_id == producer_id
        if (end := _appended_to(committed, number)) is not None:
            if await self._marker_behind(partition.target_tp, end, producer_id) is False:
                return f"the progress of {partition.name} is committed, and the records up to offset {end} are aborted"
            if is_acked and row.downstream > end + 1:
                return f"our row has offset {row.downstream} of {name} as committed, and progress goes up to {end}"
        if last is not None and last.outcome is TransactionOutcome.ABORTED and is_acked:
            end = _appended_to(last, number)
            if end is not None and row.downstream > end:
                return f"our row has offset {row.downstream} of {name} as committed, and the records are aborted"
        return None

    async def _marker_behind(self, tp: TopicPartition, offset: int, producer_id: int) -> bool | None:
        """Return whether the producer's next marker behind its record at `offset` commits.

        None: the log has no such marker, or has lost the record. Then the next marker may be of a later transaction.
        """
        if offset < await self._target.end_offset(tp, timestamp=EARLIEST):
            return None
        end, is_present = await self._target.end_offset(tp), False
        async for batches, _ in log_between(self._target, tp, offset, end):
            for batch in batches:
                if batch.base_offset <= offset:
                    is_present = batch.producer_id == producer_id and batch.last_offset >= offset
                elif not is_present:
                    return None
                elif batch.producer_id == producer_id and (commits := is_commit_marker(batch)) is not None:
                    return commits
        return None


def _appended_to(record: ProgressRecord | None, number: int) -> int | None:
    return None if record is None or record.appended_to is None else record.appended_to.get(number)
