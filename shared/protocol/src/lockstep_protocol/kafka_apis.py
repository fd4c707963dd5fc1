"""Kafka's requests that the data plane sends, with the versions of each that it knows."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class KafkaApi(NamedTuple):
    """An API we speak and the versions we know how to fill; all of them are flexible ones (Kafka 2.8 and newer)."""

    key: int
    oldest: int
    newest: int


APIS: Mapping[str, KafkaApi] = MappingProxyType(
    {
        "produce": KafkaApi(0, 9, 13),
        "fetch": KafkaApi(1, 12, 17),
        "list_offsets": KafkaApi(2, 6, 8),  # 7 is of Kafka 3.0
        "metadata": KafkaApi(3, 10, 12),
        "find_coordinator": KafkaApi(10, 3, 4),
        "init_producer_id": KafkaApi(22, 4, 4),
        "offset_for_leader_epoch": KafkaApi(23, 4, 4),
        "add_partitions_to_txn": KafkaApi(24, 3, 3),
        "end_txn": KafkaApi(26, 3, 4),  # from 5 on each one changes the epoch (KIP-890): our chain keeps its own
        "describe_producers": KafkaApi(61, 0, 0),
    }
)
