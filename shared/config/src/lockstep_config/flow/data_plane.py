"""A flow's lines as the settings of the data plane. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from lockstep_config.flow.mm1_flow import RESET, legacy_settings
from lockstep_config.flow.model import CompressionSettings, DataPlaneSettings, FetchSettings
from lockstep_config.flow.reader import Reader, texts
from lockstep_config.keys.client_keys import CLIENT, ClientKind
from lockstep_config.keys.spark_settings import CONF_PREFIX, MASTER, SparkSettings
from lockstep_config.resolve import precedence
from lockstep_config.resolve.precedence import Layers
from lockstep_config.text import values
from lockstep_protocol.names import Flow

LONGEST_FLUSH = timedelta(seconds=1)
"""Progress is written at least this often, also with a longer `offset.flush.interval.ms`: a crash re-reads this
much."""


_FETCH = {
    "fetch.max.wait.ms": "max_wait_ms",
    "fetch.min.bytes": "min_bytes",
    "fetch.max.bytes": "max_bytes",
    "max.partition.fetch.bytes": "max_partition_bytes",
}
_LEVELS = {f"compression.{codec}.level": f"{codec}_level" for codec in ("gzip", "lz4", "zstd")}


def data_plane_settings(layers: Layers, flow: Flow, reader: Reader, worker: Reader, enabled: bool) -> DataPlaneSettings:
    """`reader` reads the flow's connectors, `worker` the Connect worker on its target."""
    consumer = texts(precedence.client(layers, flow, "source", "consumer"))
    producer = texts(precedence.record_producer(layers, flow))
    legacy = legacy_settings(reader)
    by_key = legacy is not None and legacy.partitioning == "key"
    committed = _chosen(consumer, "consumer", "isolation.level", "read_uncommitted") == "read_committed"
    latest = _chosen(consumer, "consumer", "auto.offset.reset", RESET if legacy else "earliest") == "latest"
    flush_every: timedelta = worker.value("offset.flush.interval.ms")
    return reader.settings(
        DataPlaneSettings,
        enabled=enabled,
        isolation_level="read_committed" if committed else "read_uncommitted",
        auto_offset_reset="latest" if latest else "earliest",
        fetch=FetchSettings(
            **_numbers(consumer, _FETCH),
            grows="max.partition.fetch.bytes" not in consumer,
            rack=consumer.get("client.rack", "").strip(),
            replica_lease_s=values.integer(consumer.get("metadata.max.age.ms", "300000")) / 1e3,
        ),
        compression_type=_chosen(producer, "producer", "compression.type", None),
        compression=reader.settings(CompressionSettings, **_numbers(producer, _LEVELS)),
        offset_flush_every=min(flush_every, LONGEST_FLUSH),
        mm2_flushes_every=flush_every,
        exactly_once=worker.choice("exactly.once.source.support") == "enabled" or by_key,
        transaction_interval=_transaction_interval(reader, flush_every),
        transaction_timeout=_transaction_timeout(producer),
        spark=_spark(layers),
        legacy=legacy,
    )


def _transaction_interval(reader: Reader, flush_every: timedelta) -> timedelta | None:
    """None: as soon as it can (`transaction.boundary=poll`). Connect's own default is its flush interval."""
    if reader.choice("transaction.boundary") == "poll":
        return None
    key = "transaction.boundary.interval.ms"
    interval: timedelta = reader.value(key) if reader.found(key) else flush_every
    return interval


def _transaction_timeout(producer: Mapping[str, str]) -> timedelta:
    usual = DataPlaneSettings().transaction_timeout
    text = producer.get("transaction.timeout.ms")
    return usual if text is None else timedelta(milliseconds=values.integer(text))


def _spark(layers: Layers) -> SparkSettings:
    master = layers.top.get(MASTER)
    return SparkSettings(
        master=master.value.strip() if master else "",
        conf={
            key.removeprefix(CONF_PREFIX): entry.value.strip()
            for key, entry in layers.top.items()
            if key.startswith(CONF_PREFIX)
        },
    )


def _numbers(properties: Mapping[str, str], fields: Mapping[str, str]) -> dict[str, Any]:
    """Fields of settings that the properties of a client set."""
    return {field: values.integer(properties[key]) for key, field in fields.items() if key in properties}


def _chosen(properties: Mapping[str, str], kind: ClientKind, key: str, default: str | None) -> str | None:
    return values.choice(properties[key], CLIENT[kind][key].choices) if key in properties else default
