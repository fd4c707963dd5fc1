"""`lockstep takeover` and `handback` on real clusters, with offsets as MirrorMaker 2 writes them."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from lockstep_state.codecs.mm2_codec import encode_source_progress
from lockstep_state.names import progress_topic, state_topic
from lockstep_state.rows.state_rows import Handover, PartitionProgress, SlotStatus
from tests.conftest import Pair
from tests.support.clusters import Record, create_topic, end_offsets, produce, unique_name
from tests.support.commands import lockstep
from tests.support.control import last_row, read_so_far, source_offsets
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.own_flow import OwnFlow
from tests.support.services import COPY_ONLY
from tests.support.wire import join_as_connect, leave_group

Offsets = dict[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class Migration(OwnFlow):
    """A flow that MM2 has mirrored so far, under Strimzi's names, with a topic of two partitions."""

    @property
    def topic(self) -> str:
        return f"{self.mark}-orders"

    @property
    def offsets_topic(self) -> str:
        return f"{self.mark}-offsets"

    @property
    def group(self) -> str:
        """Of MM2's workers."""
        return f"{self.mark}-workers"

    @property
    def connector(self) -> str:
        return f"{self.flow}.MirrorSourceConnector"

    @property
    def place(self) -> list[str]:
        return ["--offsets-topic", self.offsets_topic, "--group", self.group]

    def mm2_copied(self, *offsets: int, connector: str = "") -> None:
        """Offsets of the partitions from 0 on, as MM2 leaves them."""
        alias = self.flow.source
        records = [
            encode_source_progress(alias, self.topic, number, offset, connector or self.connector)
            for number, offset in enumerate(offsets)
        ]
        self.write(self.offsets_topic, records)

    def offsets(self, topic: str, connector: str) -> Offsets:
        """What Connect would find."""
        offsets = source_offsets(read_so_far(self.target, topic), connector)
        return {tp: offset for tp, offset in offsets.items() if offset is not None}

    @property
    def theirs(self) -> Offsets:
        return self.offsets(self.offsets_topic, self.connector)

    @property
    def ours(self) -> Offsets:
        return self.offsets(progress_topic(self.flow), "MirrorSourceConnector")

    def handover(self) -> Handover | None:
        row = last_row(self.target, self.flow, "handover/progress")
        assert row is None or isinstance(row, Handover)
        return row

    def lockstep(self, verb: str, *arguments: str, code: int = 0) -> str:
        """What a command of the flow prints."""
        return lockstep(*verb.split(), self.file, "--flow", str(self.flow), *arguments, code=code)

    def take_over(self, *arguments: str, code: int = 0) -> str:
        return self.lockstep("takeover", "--from", "strimzi", *self.place, *arguments, code=code)


def numbered(counts: tuple[int, ...]) -> list[Record]:
    """So many records for each partition, the first ones always the same."""
    return [
        Record(value=f"{number}".encode(), partition=partition, timestamp_ms=1_700_000_000_000 + number)
        for partition, count in enumerate(counts)
        for number in range(count)
    ]


@pytest.fixture
def migration(tmp_path: Path, pair: Pair) -> Migration:
    lines = ("offset.storage.partitions = 3", "heartbeats.replication.enabled = false", *COPY_ONLY)
    migration = Migration.between(pair.a, pair.b, tmp_path, unique_name("m"), *lines)
    create_topic(migration.source, migration.topic, partitions=2)
    produce(migration.source, migration.topic, numbered((100, 100)))
    create_topic(migration.target, migration.offsets_topic, partitions=5, configs={"cleanup.policy": "compact"})
    return migration


def ends(m: Migration) -> list[dict[int, int]]:
    """Of every topic that these commands write to."""
    return [end_offsets(m.target, topic) for topic in (progress_topic(m.flow), m.offsets_topic, state_topic(m.flow))]


def test_takeover_and_handback_write_nothing_the_second_time(migration: Migration) -> None:
    m = migration
    m.write(m.offsets_topic, [(b"another connector's", b"\xff"), (b'["x",{"y":1}]', b"{}")])
    m.mm2_copied(1, 1, connector="somebody")
    m.mm2_copied(9, 49)
    said = m.take_over("--yes")
    assert "140 records still to copy" in said
    assert f"lockstep run {m.file}" in said
    assert m.ours == m.theirs == {(m.topic, 0): 9, (m.topic, 1): 49}
    taken = m.handover()
    assert taken is not None
    assert (taken.phase, taken.topic, taken.connector) == ("taken-over", m.offsets_topic, m.connector)
    m.write_rows(
        PartitionProgress(topic=m.topic, partition=0, upstream=99, located=True),
        PartitionProgress(topic=m.topic, partition=1, upstream=60, located=True),
        SlotStatus(slot=0, phase="released"),
    )
    assert "Start MirrorMaker 2 now" in m.lockstep("handback", "--yes")
    assert m.theirs == {(m.topic, 0): 99, (m.topic, 1): 60}
    back = m.handover()
    assert back is not None
    assert (back.phase, back.connector) == ("handed-back", m.connector)
    before = ends(m)
    body = json.loads(m.lockstep("handback", "--yes", "--output", "json"))
    assert (body["writes"], body["done"], len(body["offsets"])) == (0, True, 2)
    assert ends(m) == before


def test_takeover_while_mm2_runs_or_as_dry_run_writes_nothing(migration: Migration) -> None:
    m = migration
    m.mm2_copied(9, 49)
    member = join_as_connect(m.target, m.group)
    try:
        said = m.take_over("--yes", code=1)
        assert f"MirrorMaker 2 still runs: group {m.group}" in said
        assert "has 1 member." in said
    finally:
        leave_group(m.target, m.group, member)
    assert "9 49" in m.take_over("--dry-run")
    assert m.ours == {}
    assert m.handover() is None


@pytest.mark.long
def test_takeover_that_would_lose_or_double_records_is_refused(migration: Migration) -> None:
    m = migration
    assert f"has no offsets of {m.connector}" in m.take_over("--yes", code=1)
    missing = ["--from", "strimzi", "--offsets-topic", "nowhere"]
    assert "there is no topic nowhere" in m.lockstep("takeover", *missing, "--yes", code=1)
    m.mm2_copied(9, 49)
    assert "nobody can be asked here" in m.take_over(code=2)
    assert m.ours == {}
    m.take_over("--yes")
    before = ends(m)
    m.take_over("--yes")
    assert ends(m) == before
    assert "copied nothing" in m.lockstep("handback", "--yes", code=1)
    m.write_rows(
        PartitionProgress(topic=m.topic, partition=0, upstream=50, located=True), SlotStatus(slot=0, phase="started")
    )
    assert "slot 0 ended without writing down" in m.lockstep("handback", "--yes", code=1)
    assert m.theirs == {(m.topic, 0): 9, (m.topic, 1): 49}
    assert "the flow has progress of its own" in m.take_over("--yes", code=1)
    m.write_rows(SlotStatus(slot=0, phase="released"))
    m.lockstep("handback", "--yes")
    m.mm2_copied(99, 75)
    assert "is further than this flow" in m.lockstep("handback", "--yes", code=1)
    assert "went on under MirrorMaker 2 after the hand-back" in m.take_over("--yes", code=1)
    assert m.theirs == {(m.topic, 0): 99, (m.topic, 1): 75}


@pytest.mark.long
def test_takeover_copies_exactly_the_records_that_mm2_did_not(migration: Migration) -> None:
    m = migration
    # MM2 has copied the first 10 and 50 records.
    remote = create_topic(m.target, f"{m.flow.source}.{m.topic}", partitions=2)
    produce(m.target, remote, numbered((10, 50)))
    m.mm2_copied(9, 49)
    m.take_over("--yes")
    mirrored = MirroredFlow(m.flow, m.source, m.target)
    with Mirror(m.file, [mirrored]):
        mirrored.wait_copied(m.topic)
        mirrored.wait_written_down(m.topic)
        assert "the flow runs: lockstep stop" in m.lockstep("handback", "--dry-run", code=1)
        m.lockstep("handback", "--stop", "--yes")
        assert m.theirs == {(m.topic, 0): 99, (m.topic, 1): 99}
        assert end_offsets(m.target, remote) == {0: 100, 1: 100}

        # MM2 copies ten more of the one partition, and is taken over again.
        later = numbered((110, 105))
        produce(m.source, m.topic, [record for record in later if int(record.value or b"") >= 100])
        produce(m.target, remote, [record for record in numbered((110,)) if int(record.value or b"") >= 100])
        m.mm2_copied(109, 99)
        assert "lockstep resume" in m.take_over("--yes")
        listed = json.loads(m.lockstep("offsets list", "--output", "json"))
        offsets = {
            (o["partition"]["topic"], o["partition"]["partition"]): o["offset"]["offset"] for o in listed["offsets"]
        }
        assert offsets == m.theirs
        assert f"{m.flow}  flow is running" in m.lockstep("resume", "--wait", "--timeout", "90")
        mirrored.wait_copied(m.topic)
    assert end_offsets(m.target, remote) == {0: 110, 1: 105}
