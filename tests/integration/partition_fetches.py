"""Fetches of a test's own, and partitions that copy, without a slot around them."""

from collections.abc import Callable

from lockstep_config.flow.model import DataPlaneSettings, FetchSettings
from lockstep_data_plane.core.events import Fetched, Resumed
from lockstep_data_plane.core.machine import PartitionMachine
from lockstep_data_plane.core.target_log.target_tail import LastAppend
from lockstep_data_plane.fetch.fetch_request import Delivery
from lockstep_data_plane.fetch.fetcher import Fetcher
from lockstep_data_plane.record_batch.classify import AbortedTransactions
from lockstep_data_plane.record_batch.layout import Batch
from lockstep_kafka.wire.cluster import ClusterClient
from lockstep_state.rows.state_rows import PartitionProgress


def copying(topic: str, number: int = 0) -> PartitionMachine:
    partition = PartitionMachine(topic, number, topic, 100)
    row = PartitionProgress(topic=topic, partition=number, producer_id=4000, producer_epoch=1)
    partition.step(Resumed(row, LastAppend(-1, -1)))
    return partition


def fetched_elsewhere(partition: PartitionMachine, *batches: Batch) -> None:
    partition.step(Fetched(partition.incarnation, batches, AbortedTransactions(), -1, size=0, now_ms=0))


def no_trouble(partition: PartitionMachine, why: str) -> None:
    raise AssertionError(why)


DEFAULTS = FetchSettings()


def fetching_from(
    cluster: ClusterClient,
    on_fetched: Callable[[Delivery], None],
    settings: FetchSettings = DEFAULTS,
    *,
    has_room: Callable[[PartitionMachine], bool] = lambda partition: True,
    on_trouble: Callable[[PartitionMachine, str], None] = no_trouble,
) -> Fetcher:
    """Fetches of a test's own."""
    return Fetcher(
        cluster,
        DataPlaneSettings(fetch=settings),
        is_held_back=lambda partition: not has_room(partition),
        on_fetched=on_fetched,
        on_delivered=lambda: None,
        on_trouble=on_trouble,
    )
