"""Single records are joined to the very bytes that building their batch anew makes."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lockstep_data_plane.record_batch.coalesce import concatenate
from lockstep_data_plane.record_batch.layout import HEADER_SIZE, scan
from lockstep_data_plane.record_batch.outgoing_batch import OutgoingBatch, as_outgoing
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_data_plane.record_batch.rebuild import build
from tests.support.batch_bytes import DELETE_HORIZON, TRANSACTIONAL, batch, batch_bytes, record

NOW = 1_790_000_000_000

SIZED = st.none() | st.binary(max_size=70) | st.sampled_from((62, 63, 4000)).map(bytes)
Content = tuple[bytes | None, bytes | None, int, list[tuple[str, bytes | None]]]
RECORDS: st.SearchStrategy[Content] = st.tuples(
    SIZED,
    SIZED,
    st.sampled_from((-1, 0, 1)) | st.integers(NOW - 200, NOW + 200) | st.integers(0, 2**53),
    st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2),
)


def numbered(content: Sequence[Content]) -> list[PlainRecord]:
    """With gaps, as compaction leaves them."""
    return [
        PlainRecord(3 * number, at, key, value, tuple(headers))
        for number, (key, value, at, headers) in enumerate(content)
    ]


def outgoing_batches(content: Sequence[PlainRecord], *, attributes: int = 0) -> list[OutgoingBatch]:
    return [as_outgoing(batch([each], attributes=attributes)) for each in content]


@given(st.lists(RECORDS, min_size=1, max_size=80))
@example([(None, None, -1, []), (b"k", b"v", NOW, [])])
@example([(b"k", b"v", NOW, [])] * 200)
def test_concatenate_equals_a_rebuilt_batch(content: list[Content]) -> None:
    records = numbered(content)
    (anew,) = build(records, 0, 2**31 - 1, leader_epoch=0)
    group = outgoing_batches(records)
    made = concatenate(group)
    assert made is not None
    assert bytes(made.data) == bytes(anew.data)
    assert list(made.offsets) == list(anew.offsets)
    assert (made.count, made.covers, made.to) == (anew.count, group[-1].covers, group[-1].to)
    assert (made.base_timestamp, made.max_timestamp) == (anew.base_timestamp, anew.max_timestamp)
    assert made.leader_epoch == group[-1].leader_epoch


@pytest.mark.parametrize("attributes", [TRANSACTIONAL, DELETE_HORIZON])
def test_concatenate_drops_what_a_stamp_drops(attributes: int) -> None:
    records = [record(number, timestamp=NOW + number) for number in range(3)]
    made = concatenate(outgoing_batches(records, attributes=attributes))
    assert made is not None
    assert bytes(made.data) == bytes(build(records, 0, 2**31 - 1, 0)[0].data)


def test_concatenate_refuses_anything_but_single_plain_records() -> None:
    whole = batch_bytes([record(1)])
    one = as_outgoing(batch([record(0)]))

    def with_body(body: bytes) -> OutgoingBatch:
        head = bytearray(whole[:HEADER_SIZE])
        head[8:12] = (HEADER_SIZE - 12 + len(body)).to_bytes(4, "big")
        (found,) = scan(bytes(head) + body)
        return as_outgoing(found)

    body = whole[HEADER_SIZE:]
    assert concatenate([one, with_body(body)]) is not None
    for spoilt in (b"", body[:1], body[:-1], body + b"\0", b"\x80\x80\x01" + body[1:], b"\x80", b"\x01" + body[1:]):
        assert concatenate([one, with_body(spoilt)]) is None
    for place in (1, 2, 3):  # attributes, and a timestamp or an offset that is not the batch's
        assert concatenate([one, with_body(body[:place] + b"\x02" + body[place + 1 :])]) is None
    assert concatenate([one, as_outgoing(batch([record(1), record(2)]))]) is None
    assert concatenate([one, as_outgoing(batch([record(1, bytes(1 << 14))]))]) is None
