"""A fetcher's handler, made of functions of a test."""

from collections.abc import Callable
from dataclasses import dataclass

from lockstep_data_plane.core.partition_state import PartitionState
from lockstep_data_plane.fetch.fetcher import Delivery


@dataclass
class FetchFunctions:
    """What comes is dropped where nothing else is said."""

    on_fetched: Callable[[Delivery], None] = lambda delivery: None
    may_fetch: Callable[[PartitionState], bool] = lambda partition: True
    on_delivered: Callable[[], None] = lambda: None
    on_fetch_lost: Callable[[PartitionState, str], None] = lambda partition, why: None
