"""Measures what batches take with each codec, on the records of a sample."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import cramjam

from lockstep_kafka.session.batch_heads import HEADER_BYTES, BatchHead
from lockstep_ops.plan.rules.batch_sample import CodecSample, TopicSample
from lockstep_state.kafka.batch_codecs import GZIP, LZ4, SNAPPY, UNCOMPRESSED, ZSTD

_COMPRESSED: Mapping[str, Callable[[bytes], int]] = MappingProxyType(
    {
        UNCOMPRESSED: len,
        GZIP: lambda records: len(cramjam.gzip.compress(records, level=6)),
        SNAPPY: lambda records: len(cramjam.snappy.compress_raw(records)),
        LZ4: lambda records: len(cramjam.lz4.compress(records, level=0)),
        ZSTD: lambda records: len(cramjam.zstd.compress(records, level=3)),
    }
)
"""The size of records with each codec, at the levels of Java's producer."""


def measure(heads: Iterable[BatchHead], records: Mapping[int, bytes]) -> TopicSample:
    """Return the sample of one topic.

    A batch of which only some records were read is measured on these, as if the others were alike.

    Args:
        heads: The headers of its batches.
        records: The bytes of its records, by offset, as far as they were read.
    """
    by_codec: dict[str, list[BatchHead]] = {}
    for head in heads:
        by_codec.setdefault(head.codec, []).append(head)
    return tuple(_measure_codec(codec, batches, records) for codec, batches in sorted(by_codec.items()))


def _measure_codec(codec: str, batches: list[BatchHead], records: Mapping[int, bytes]) -> CodecSample:
    sizes: dict[str, float] = dict.fromkeys(_COMPRESSED, 0.0)
    measured: list[BatchHead] = []
    for batch in batches:
        offsets = range(batch.base_offset, batch.last_offset + 1)
        read = [records[offset] for offset in offsets if offset in records]
        if not read or not batch.records:
            continue
        measured.append(batch)
        payload = b"".join(read)
        for name, compressed in _COMPRESSED.items():
            sizes[name] += HEADER_BYTES + compressed(payload) * batch.records / len(read)
    counted = measured or batches
    return CodecSample(
        codec=codec,
        batches=len(batches),
        records=sum(batch.records for batch in counted),
        stored=sum(batch.stored_bytes for batch in counted),
        sizes={name: round(size) for name, size in sizes.items()} if measured else {},
    )
