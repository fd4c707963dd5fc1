"""A consumer of the target sees for each record what a consumer of the source sees, whatever the batches look like
(`docs/batches.md`).

Hypothesis makes up logs; each is a partition. Two flows (three in the long test) copy all of them, and librdkafka reads
both sides. The first half of each log is written, and some of them cleaned, before the mirror starts: it meets a
backlog. The second half is written under its eyes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from lockstep_data_plane.batches.rebuild import Record
from lockstep_protocol.names import Flow
from tests.conftest import Pair
from tests.harness.clusters import Isolation, compare, create_topic, read_topic, set_configs, unique_name
from tests.harness.clusters import Record as Seen
from tests.harness.eventually import eventually, wait_until
from tests.harness.mirror import Mirror, MirroredFlow
from tests.harness.services import two_cluster_file
from tests.integration.generated_logs import UNKNOWN_BITS, Log, Step, Whole, Writer, generated, send

FOR_EVER = {"retention.ms": "-1"}  # times in 1970 are times too
CLEANED = FOR_EVER | {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "segment.ms": "50",
    "delete.retention.ms": "86400000",
}
SMALL = FOR_EVER | {"max.message.bytes": "2600"}  # a record of these logs takes 2,200 bytes at most
WITHIN = 120.0  # seconds; usual is 3, but several test runs may share the cores

OVERTAKEN = Whole(tuple(Record(0, 1_000, key, b"first", ()) for key in (b"a", b"b", b"a", b"c", b"b")), 0, 0)
"""What each cleaned log begins with: its first records are superseded within their own batch, so the cleaner leaves a
batch with gaps."""
ODD = Whole((Record(0, 3_000, b"odd", b"", ()),), 0, UNKNOWN_BITS)
"""Which logs are generated depends on what else is imported: Hypothesis draws from constants that it finds there."""

ROLL = Whole((Record(0, 5_000, b"roll", b"", ()),), 0, 0)
OPEN = (Record(0, 7_000, b"open", b"for long", ()),)

SHAPES = {
    *("none", "gzip", "snappy", "lz4", "zstd"),
    *("transactional", "control batch", "log append time", "delete horizon", "unknown bits"),
    *("gap inside", "one record", "no time"),
}
"""What the first halves of the logs must have in them, or the test shows less than it says."""


@dataclass(frozen=True, slots=True)
class Family:
    """Logs of one topic, a partition each. `configs` are the source's; `there`: those of the first flow's remote
    topic."""

    topic: str
    logs: Sequence[Log]
    configs: Mapping[str, str]
    there: Mapping[str, str]

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

                def equal(flow: MirroredFlow = flow, topic: str = family.topic, wanted: list[Seen] = wanted) -> bool:
                    comparison = compare(wanted, read_topic(flow.target, flow.remote(topic)))
                    assert comparison.equal, f"{flow}: {comparison}"
                    return True

                wait_until(equal, within=WITHIN, every=0.25, what=f"{family.topic} is on both sides of {flow}")


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
    small = Family(f"{mark}-small", [(ODD, *plain[0]), *plain[1:logs]], FOR_EVER, SMALL)
    stamped = Family(f"{mark}-stamped", plain[logs:], appended, FOR_EVER)
    cleaned = Family(f"{mark}-cleaned", [(OVERTAKEN, *log) for log in keyed], CLEANED, FOR_EVER)
    families = (small, stamped, cleaned)
    flows = Flows(pair, folder, mark, third=third)
    for family in families:
        create_topic(pair.a.bootstrap, family.topic, partitions=logs, configs=family.configs)
        for flow in flows.isolations:
            there = family.there if flow is flows.there else FOR_EVER
            create_topic(pair.b.bootstrap, flow.remote(family.topic), partitions=logs, configs=there)
    async with Writer(pair.a.bootstrap) as writer:
        for family in families:
            for number, step in family.half(0):
                await writer.write(family.topic, number, step)
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


async def test_every_shape_of_log_reads_the_same_on_both_sides(pair: Pair, tmp_path: Path) -> None:
    await differential(pair, tmp_path, 8)


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_so_do_many_more(pair: Pair, tmp_path: Path) -> None:
    await differential(pair, tmp_path, 40, third=True)
