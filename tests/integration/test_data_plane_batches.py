"""A consumer of the target sees for each record what a consumer of the source sees, whatever the batches look like
(`docs/reference/batches.md`).

Hypothesis makes up logs; each is a partition. Two flows (three in the long test) copy all of them, and librdkafka reads
both sides. The first half of each log is written, and some of them cleaned, before the mirror starts: it meets a
backlog. The second half is written under its eyes.
"""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from lockstep_data_plane.record_batch.layout import CODEC_MASK, Batch
from lockstep_data_plane.record_batch.pure_python_codec import PlainRecord
from lockstep_state.names import Flow, quarantine_topic
from tests.conftest import Pair
from tests.integration.generated_logs import DAY_MS, UNKNOWN_BITS, Log, Step, Whole, Writer, generated, send
from tests.support.batch_bytes import ZSTD
from tests.support.batches import body, codecs_of_records, read_batches
from tests.support.clusters import Isolation, create_topic, delete_records, read_topic, set_configs, unique_name
from tests.support.clusters import Record as Seen
from tests.support.eventually import eventually, wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.services import two_cluster_file
from tests.support.topic_comparison import compare

FOR_EVER = {"retention.ms": "-1"}  # times in 1970 are times too
CLEANED = FOR_EVER | {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "segment.ms": "50",
    "delete.retention.ms": "86400000",
}
ANY_TIME = FOR_EVER | {"message.timestamp.after.max.ms": str(2**63 - 1)}
NOT_AHEAD = FOR_EVER | {"message.timestamp.after.max.ms": "3600000"}
LATE_MS = 2 * DAY_MS
SMALL = FOR_EVER | {"max.message.bytes": "2600"}  # a record of these logs takes 2,200 bytes at most
WITHIN = 120.0  # seconds; usual is 3, but several test runs may share the cores

NOW_MS = time.time_ns() // 1_000_000
OVERTAKEN = Whole(tuple(PlainRecord(0, 1_000, key, b"first", ()) for key in (b"a", b"b", b"a", b"c", b"b")), 0, 0)
"""What each cleaned log begins with: its first records are superseded within their own batch, so the cleaner leaves a
batch with gaps."""
KEPT = (7_000_000, 0, 0)
"""A producer that appends once: the cleaner keeps its last batch for its sequence, when all records in it are gone."""
EMPTIED = Whole((PlainRecord(0, NOW_MS, b"a", b"superseded", ()),), 0, 0, KEPT)
"""Of today, or the broker forgets the producer, and with it the batch."""
CUT_AT = 3
"""Where one log begins by the time the mirror starts: within its first batch, as a fetch from there does."""
ODD = Whole((PlainRecord(0, 3_000, b"odd", b"", ()),), 0, UNKNOWN_BITS)
"""Which logs are generated depends on what else is imported: Hypothesis draws from constants that it finds there."""

LARGE = [
    Whole(tuple(PlainRecord(0, 9_000, b"large", os.urandom(3_000), ()) for _ in range(3)), codec, 0)
    for codec in range(5)
]
"""A batch of each codec that is too large to be merged with others."""
ROLL = Whole((PlainRecord(0, NOW_MS + 3_000_000, b"roll", b"", ()),), 0, 0)
"""Later than all before it, by which a segment is old enough to be rolled."""
OPEN = (PlainRecord(0, 7_000, b"open", b"for long", ()),)

SHAPES = {
    *("none", "gzip", "snappy", "lz4", "zstd"),
    *("transactional", "control batch", "log append time", "delete horizon", "unknown bits"),
    *("gap inside", "empty", "begins before", "one record", "no time"),
}
"""What the first halves of the logs must have in them, or the test shows less than it says."""


@dataclass(frozen=True, slots=True)
class Family:
    """Logs of one topic, a partition each. `configs` are the source's; `there`: those of the first flow's remote
    topic, which takes no record dated later than `until_ms`."""

    topic: str
    logs: Sequence[Log]
    configs: Mapping[str, str]
    there: Mapping[str, str]
    until_ms: int = 2**63 - 1

    def taken(self, records: Sequence[Seen]) -> list[Seen]:
        """Those that the first flow's remote topic takes."""
        return [r for r in records if (r.timestamp_ms or 0) <= self.until_ms]

    def half(self, which: int) -> list[tuple[int, Step]]:
        """(partition, step) of the first or second half of each log, the logs taking turns."""
        halves = [log[: len(log) // 2] if which == 0 else log[len(log) // 2 :] for log in self.logs]
        turns = range(max(map(len, halves)))
        return [(number, steps[turn]) for turn in turns for number, steps in enumerate(halves) if turn < len(steps)]


class Flows:
    """Flows that copy the same topics in different ways, and the isolation under which each reads. The third one, which
    takes compression away, is left out unless asked for."""

    def __init__(self, pair: Pair, folder: Path, mark: str, *, third: bool) -> None:
        there, committed, opened = (Flow(f"{letter}{mark}", f"t{mark}") for letter in "rco")
        a, b = pair.a.bootstrap, pair.b.bootstrap
        self.file = two_cluster_file(
            folder,
            (there.source, a),
            (there.target, b),
            f"clusters = {there.source}, {committed.source}, {opened.source}, {there.target}",
            f"{committed.source}.bootstrap.servers = {a}",
            f"{opened.source}.bootstrap.servers = {a}",
            "offset-syncs.topic.replication.factor = 1",
            "heartbeats.replication.enabled = false",
            "sync.topic.configs.enabled = false",  # targets are as they are made here
            "tasks.max = 1",
            f"{there}.enabled = true",
            f"{committed}.enabled = true",
            f"{committed}.consumer.isolation.level = read_committed",
            f"{committed}.producer.override.compression.type = zstd",
            f"{there}.lockstep.on.refused = {mark}-late=quarantine",
            f"{opened}.enabled = {str(third).lower()}",
            "emit.heartbeats.enabled = false",
            f"{opened}.lockstep.recompress = true",
            f"{opened}.producer.override.compression.type = none",
            *(f"{flow}.topics = {mark}-.*" for flow in (there, committed, opened)),
        )
        self.there, self.committed, self.opened = (MirroredFlow(flow, a, b) for flow in (there, committed, opened))
        self.isolations: dict[MirroredFlow, Isolation] = {
            self.there: "read_uncommitted",
            self.committed: "read_committed",
        }
        if third:
            self.isolations[self.opened] = "read_uncommitted"

    def mirror(self) -> Mirror:
        return Mirror(self.file, list(self.isolations))

    def wait_equal(self, families: Sequence[Family]) -> None:
        """Both sides, record by record. What differs, and where, is in the message."""
        for family in families:
            for flow, isolation in self.isolations.items():
                wanted = read_topic(flow.source, family.topic, isolation=isolation)
                assert wanted
                if flow is self.there:
                    wanted = family.taken(wanted)

                def equal(flow: MirroredFlow = flow, topic: str = family.topic, wanted: list[Seen] = wanted) -> bool:
                    comparison = compare(wanted, read_topic(flow.target, flow.remote(topic)))
                    assert comparison.equal, f"{flow}: {comparison}"
                    return True

                wait_until(equal, within=WITHIN, every=0.25, what=f"{family.topic} is on both sides of {flow}")

    def check_codecs(self, family: Family) -> None:
        """Each record has the codec that it had, where the first flow has copied it; one compressed with zstd if it had
        none, where the second one has; and none at all where the third one has."""
        had = codecs_of_records(self.there.source, family.topic)
        for flow, isolation in self.isolations.items():
            read = read_topic(flow.source, family.topic, isolation=isolation)
            if flow is self.there:
                read = family.taken(read)
            codecs = [(r.partition or 0, had[r.partition or 0, r.offset or 0]) for r in read]
            if flow is not self.there:
                codecs = [(number, codec or ZSTD if flow is self.committed else 0) for number, codec in codecs]
            found = codecs_of_records(flow.target, flow.remote(family.topic))
            assert [(number, codec) for (number, _), codec in found.items()] == codecs, f"{flow}: {family.topic}"

    def check_large(self, family: Family) -> None:
        """Batches too large to be merged are the source's own bytes behind their headers, but for those whose codec
        is another one."""

        def bodies(batches: Sequence[Batch], codec: int) -> list[bytes]:
            return [body(b) for b in batches if b.attributes & CODEC_MASK == codec]

        source = read_batches(self.there.source, family.topic)
        for flow, passed in ((self.there, range(5)), (self.committed, range(1, ZSTD))):
            copied = read_batches(flow.target, flow.remote(family.topic))
            for codec in passed:
                assert bodies(copied, codec) == bodies(source, codec) != [], f"{flow}: codec {codec}"

    def check_quarantined(self, family: Family) -> None:
        """What the first flow's target does not take is in its quarantine, each record once, and nothing else."""
        wanted = read_topic(self.there.source, family.topic, isolation="read_uncommitted")
        refused = [r for r in wanted if r not in family.taken(wanted)]
        assert refused, "nothing was to be refused"
        kept = [dict(r.headers) for r in read_topic(self.there.target, quarantine_topic(self.there.flow))]
        places = {(int(h["lockstep.partition"] or b""), int(h["lockstep.offset"] or b"")) for h in kept}
        assert places == {(r.partition or 0, r.offset or 0) for r in refused}
        assert len(kept) == len(refused)


async def clean(writer: Writer, bootstrap: str, family: Family) -> None:
    """Until the cleaner has been through all of the family's logs. An append rolls a segment, nothing else does."""

    async def cleaned() -> dict[int, int] | None:
        for number in range(len(family.logs)):
            await writer.write(family.topic, number, ROLL)
        found: dict[int, int] = {}
        for r in await asyncio.to_thread(read_topic, bootstrap, family.topic):
            found.setdefault(r.partition or 0, r.offset or 0)
        return found if len(found) == len(family.logs) and all(found.values()) else None

    firsts: dict[int, int] = await eventually(cleaned, within=WITHIN, every=0.2, what=f"{family.topic} is cleaned")
    assert min(firsts.values()) > 0
    set_configs(
        bootstrap, family.topic, {"cleanup.policy": "delete"}
    )  # nothing is removed while both sides are compared


async def differential(pair: Pair, folder: Path, logs: int, *, third: bool = False) -> None:
    """The whole test, with so many logs in each of three families."""
    mark = f"shapes{unique_name('')[-6:]}"
    plain, keyed = generated(2 * logs, keyed=False), generated(logs, keyed=True)
    assert (len(plain), len(keyed)) == (2 * logs, logs)
    appended = FOR_EVER | {"message.timestamp.type": "LogAppendTime"}
    small = Family(f"{mark}-small", [(ODD, *plain[0]), (OVERTAKEN, *plain[1]), *plain[2:logs]], FOR_EVER, SMALL)
    stamped = Family(f"{mark}-stamped", plain[logs:], appended, FOR_EVER)
    cleaned = Family(f"{mark}-cleaned", [(EMPTIED, OVERTAKEN, *log) for log in keyed], CLEANED, FOR_EVER)
    ahead = generated(logs // 4, keyed=False, ahead_ms=LATE_MS)
    late = Family(f"{mark}-late", ahead, ANY_TIME, NOT_AHEAD, NOW_MS + LATE_MS // 2)
    large = Family(f"{mark}-large", [(*LARGE, *LARGE)], FOR_EVER, FOR_EVER)
    families = (small, stamped, cleaned, late, large)
    flows = Flows(pair, folder, mark, third=third)
    for family in families:
        partitions = len(family.logs)
        create_topic(pair.a.bootstrap, family.topic, partitions=partitions, configs=family.configs)
        for flow in flows.isolations:
            there = family.there if flow is flows.there else ANY_TIME
            create_topic(pair.b.bootstrap, flow.remote(family.topic), partitions=partitions, configs=there)
    async with Writer(pair.a.bootstrap) as writer:
        for family in families:
            for number, step in family.half(0):
                await writer.write(family.topic, number, step)
        delete_records(pair.a.bootstrap, small.topic, CUT_AT, partition=1)
        await clean(writer, pair.a.bootstrap, cleaned)
        assert await writer.shapes([family.topic for family in families]) >= SHAPES, "the logs are what they should be"
        left_open = writer.begin()
        send(left_open, small.topic, 0, OPEN)
        with flows.mirror():
            await asyncio.to_thread(flows.wait_equal, families)
            send(left_open, small.topic, 0, OPEN)
            writer.end(left_open, commit=False)
            set_configs(pair.a.bootstrap, stamped.topic, {"message.timestamp.type": "CreateTime"})
            for family in families:
                for number, step in family.half(1):
                    await writer.write(family.topic, number, step)
            await asyncio.to_thread(flows.wait_equal, families)
            for flow in flows.isolations:
                assert flow.events("PartitionHalted") == []
            for family in families:
                await asyncio.to_thread(flows.check_codecs, family)
            await asyncio.to_thread(flows.check_large, large)
            flows.check_quarantined(late)


async def test_every_shape_of_log_reads_the_same_on_both_sides(pair: Pair, tmp_path: Path) -> None:
    await differential(pair, tmp_path, 8)


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_batches_of_many_more_logs_read_the_same(pair: Pair, tmp_path: Path) -> None:
    await differential(pair, tmp_path, 40, third=True)
