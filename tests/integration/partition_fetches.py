"""Fetches of a test's own, and partitions that copy, without a slot around them."""

from collections.abc import Callable

from lockstep_config.flow.model import DataPlaneSettings, FetchSettings
from lockstep_data_plane.core.events import Fetched, Resumed
from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.fetch.fetcher import Delivery, Fetcher
from lockstep_data_plane.record_batch.classify import AbortedTransactions
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_state.rows.state_rows import PartitionProgress
from tests.support.fetch_handler import FetchFunctions


def copying(topic: str, number: int = 0) -> PartitionState:
    partition = PartitionState(topic, number, topic, 100)
    row = PartitionProgress(topic=topic, partition=number, producer_id=4000, producer_epoch=1)
    partition.step(Resumed(row, LastAppend(-1, -1)))
    return partition


def fetched_elsewhere(partition: PartitionState, *batches: Batch) -> None:
    partition.step(Fetched(partition.incarnation, batches, AbortedTransactions(), -1, size=0, now_ms=0))


def no_trouble(partition: PartitionState, why: str) -> None:
    raise AssertionError(why)


DEFAULTS = FetchSettings()


def fetching_from(
    cluster: ClusterClient,
    on_fetched: Callable[[Delivery], None],
    settings: FetchSettings = DEFAULTS,
    *,
    has_room: Callable[[PartitionState], bool] = lambda partition: True,
    on_trouble: Callable[[PartitionState, str], None] = no_trouble,
) -> Fetcher:
    """Fetches of a test's own."""
    return Fetcher(
        cluster,
        DataPlaneSettings(fetch=settings),
        FetchFunctions(on_fetched, may_fetch=has_room, on_fetch_lost=on_trouble),
    )
