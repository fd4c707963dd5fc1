"""Java reads what we build anew, and the levels of its producer mean to us what they mean to it."""

from typing import Any

import pytest

from lockstep_data_plane.record_batch.classify import TargetLimits
from lockstep_data_plane.record_batch.codecs import CODECS, LZ4, CompressionLevels, compress
from lockstep_data_plane.record_batch.layout import stamp
from lockstep_data_plane.record_batch.rebuild import rebuild
from tests.support.batch_bytes import batch, record

ORDERS = b"".join(b'{"order": %d, "customer": "c-%d", "note": "as ever"}' % (n, n * 7919 % 1000) for n in range(3000))


def read_by_java(
    java: Any, data: bytes
) -> list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]:
    """(timestamp, key, value, headers) of each record of a batch, once Java finds the batch valid."""
    utils, common = java.jvm.org.apache.kafka.common.utils, java.jvm.org.apache.kafka.common
    batches = common.record.internal.MemoryRecords.readableRecords(java.jvm.java.nio.ByteBuffer.wrap(data))
    (one,) = utils.Utils.toList(batches.batchIterator())
    one.ensureValid()

    def content(buffer: Any) -> bytes | None:
        return None if buffer is None else bytes(utils.Utils.toArray(buffer))

    return [
        (r.timestamp(), content(r.key()), content(r.value()), [(h.key(), h.value()) for h in r.headers()])
        for r in utils.Utils.toList(one.iterator())
    ]


@pytest.mark.parametrize("codec", CODECS.values(), ids=list(CODECS))
def test_java_reads_what_was_rebuilt(java: Any, codec: int) -> None:
    content = [
        record(0, None, key=b"", timestamp=-1, headers=[("a", None), ("a", b"x")]),
        record(2, b"value " * 50, key=None, timestamp=0),
        record(3, b"", timestamp=2**40),
    ]
    (outgoing,) = rebuild(batch(content, codec=codec), 0, TargetLimits())
    theirs = read_by_java(java, bytes(stamp(outgoing.data, 4000, 1, 0)))
    assert theirs == [(r.timestamp, r.key, r.value, list(r.headers)) for r in content]


def test_nine_is_the_fast_lz4_to_java_as_well(java: Any) -> None:
    def size(level: int) -> int:
        codec = java.jvm.org.apache.kafka.common.compress.Compression.lz4().level(level).build()
        out = java.jvm.org.apache.kafka.common.utils.ByteBufferOutputStream(len(ORDERS))
        stream = codec.wrapForOutput(out, java.jvm.java.lang.Byte.parseByte("2"))
        stream.write(ORDERS)
        stream.close()
        return int(out.position())

    levels = (1, 3, 8, 9, 10, 17)
    javas = {level: size(level) for level in levels}
    ours = {level: len(compress(ORDERS, LZ4, CompressionLevels(lz4=level))) for level in levels}
    assert max(levels, key=javas.__getitem__) == 9
    for level in levels:
        assert abs(ours[level] - javas[level]) < 0.02 * javas[level], (ours, javas)
