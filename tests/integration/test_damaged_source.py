"""Batches of the source are damaged on its disk. With `lockstep.on.refused=quarantine` each goes there once, and no
other record is lost with it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_data_plane.record_batch.layout import scan
from lockstep_state.names import quarantine_topic
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, produce, read_topic
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

WITHIN = 120.0
BATCHES, EACH, DAMAGED = 30, 10, 12
FIRST, LAST = DAMAGED * EACH, DAMAGED * EACH + EACH - 1
DELTA_AT = 23
CLAIMS = {"below its base": -5, "too low": 3, "right": EACH - 1, "in the next": 12, "far": 700, "largest": 2**31 - 1}
"""Last offset deltas in the header of the damaged batch. A byte of its records is another one, too."""
MODES = {
    "raw": (),
    "transactions": ("TARGET.exactly.once.source.support = enabled",),
    "transform": (
        "lockstep.transform.pii.topics = MARK-.*",
        "lockstep.transform.pii.sql = SELECT upper(CAST(value AS STRING)) AS value FROM records",
    ),
}
"""Lines of the file, in which TARGET is the target's alias and MARK the mark of the flow."""


def damage(folder: Path, claimed: int) -> None:
    """Write the only segment of a partition anew. Its indexes stay, or the broker would cut the log at a wrong CRC."""
    (segment,) = folder.glob("*.log")
    data = bytearray(segment.read_bytes())
    start = 0
    for batch in scan(bytes(data)):
        if batch.base_offset == FIRST:
            data[start + DELTA_AT : start + DELTA_AT + 4] = claimed.to_bytes(4, "big", signed=True)
            data[start + len(batch.data) - 1] ^= 1
        start += len(batch.data)
    segment.write_bytes(data)


@pytest.fixture(params=MODES)
def damaged(
    request: pytest.FixtureRequest, broker_b: Broker, tmp_path: Path
) -> Iterator[tuple[Mirror, dict[str, str], str]]:
    """A flow whose source was damaged before it began, and the topic of each damage."""
    mark = f"dms{request.param}"
    with Broker("damaged-source") as source:
        topics = {name: create_topic(source.bootstrap, f"{mark}-{n}") for n, name in enumerate(CLAIMS)}
        for first in range(0, BATCHES * EACH, EACH):
            for topic in topics.values():
                produce(source.bootstrap, topic, [Record(b"k", b"order %d" % n) for n in range(first, first + EACH)])
        source.stop()
        for name, topic in topics.items():
            damage(source.folder / "data" / f"{topic}-0", CLAIMS[name])
        source.start()
        lines = [line.replace("TARGET", f"t{mark}").replace("MARK", mark) for line in MODES[request.param]]
        quarantines = "lockstep.on.refused = quarantine"
        with Mirror.of_records(tmp_path, mark, source, broker_b, quarantines, *lines) as mirror:
            yield mirror, topics, request.param


def test_damaged_batch_of_the_source_goes_to_quarantine_once(damaged: tuple[Mirror, dict[str, str], str]) -> None:
    mirror, topics, mode = damaged
    flow = mirror.flow

    def values(topic: str) -> list[bytes]:
        return [(record.value or b"").lower() for record in read_topic(flow.target, flow.remote(topic))]

    def is_whole(upto: int) -> bool:
        wanted = [b"order %d" % n for n in range(upto) if not FIRST <= n <= LAST]
        assert {name: values(topic) == wanted for name, topic in topics.items()} == dict.fromkeys(topics, True)
        return True

    wait_until(lambda: is_whole(BATCHES * EACH), within=WITHIN, every=1.0, what="all good records are there")
    mirror.kill_data_plane()
    mirror.data_plane.start()
    for topic in topics.values():
        produce(flow.source, topic, [Record(b"k", b"order %d" % n) for n in range(BATCHES * EACH, BATCHES * EACH + 20)])
    wait_until(lambda: is_whole(BATCHES * EACH + 20), within=WITHIN, every=1.0, what="it goes on after a kill")
    kept = [dict(record.headers) for record in read_topic(flow.target, quarantine_topic(flow.flow))]
    entries = sorted(
        (headers["lockstep.topic"], headers["lockstep.offset"], headers["lockstep.last.offset"]) for headers in kept
    )
    # A broker that is asked from the base offset on does not give a batch whose header ends before it.
    assert entries == [(topic.encode(), b"%d" % FIRST, b"%d" % LAST) for topic in sorted(topics.values())], mode
    assert flow.events("PartitionHalted") == []
