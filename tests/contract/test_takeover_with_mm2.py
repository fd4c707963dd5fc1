"""`lockstep takeover` and `handback` with the real MM2 on the other side, while a writer goes on (`mm2-behaviour.md`
§1.7).

Every record bears its number, so that what is lost or doubled can be counted. Each test prints its figures (`-rP`);
those in `docs/guides/migrate-from-mm2.md` are from here.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lockstep_protocol.mm2_codec import decode_checkpoint
from lockstep_protocol.mm2_records import Checkpoint
from lockstep_protocol.names import Flow
from tests.contract.turns import NumberedCopy, until
from tests.faults.counting import Count
from tests.faults.numbered import Writer
from tests.support.broker import Broker
from tests.support.clusters import commit_offset, committed_offset, create_topic, end_offsets
from tests.support.commands import lockstep
from tests.support.control import read_so_far
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.mm2 import GRACE_MS, ConnectWorker, MirrorMaker
from tests.support.services import ServiceProcess, two_cluster_file

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

PARTITIONS = 4
RATE = 1_000
MORE = 3_000
"""Records that each of them copies before the next one's turn."""
FACTORS = ("offset-syncs.topic", "checkpoints.topic", "status.storage", "config.storage")
EVERY_SECOND = ("emit.checkpoints", "refresh.groups", "sync.group.offsets")
STRIMZI = "mirrormaker2-cluster"
"""The group of Strimzi's workers, and how the names of their topics begin."""


@pytest.fixture
def mark() -> str:
    return uuid.uuid4().hex[:6]


@dataclass(frozen=True, slots=True)
class Moved:
    """A flow that goes from one to the other, with its only topic, `<mark>-numbers`."""

    flow: Flow
    file: Path
    copy: NumberedCopy

    @classmethod
    def of(cls, flow: Flow, file: Path, a: str, b: str, mark: str) -> Moved:
        topic = create_topic(a, f"{mark}-numbers", partitions=PARTITIONS)
        return cls(flow, file, NumberedCopy(a, b, topic, f"{flow.source}.{topic}"))

    @property
    def mirrored(self) -> MirroredFlow:
        return MirroredFlow(self.flow, self.copy.a, self.copy.b)

    @property
    def connector(self) -> str:
        return f"{self.flow}.MirrorSourceConnector"

    def writer(self, folder: Path) -> Writer:
        log = folder / f"writer-{self.flow.source}.log"
        return Writer(self.copy.a, self.copy.topic, partitions=PARTITIONS, rate=RATE, log=log)

    def lockstep(self, verb: str, *arguments: str, code: int = 0) -> str:
        """What the command prints."""
        return lockstep(verb, self.file, "--flow", str(self.flow), *arguments, code=code)

    def not_written_down(self) -> int:
        """Records that MM2 copied and has not in its progress; before anybody else has copied."""
        kept = self.mirrored.mm2_progress(self.copy.topic)
        ends = end_offsets(self.copy.b, self.copy.remote)
        return sum(end - 1 - (kept[number] or 0) for number, end in ends.items())

    def refused_while_it_runs(self, *kind: str, looks: Sequence[str] = ("--dry-run", "--yes")) -> None:
        """Neither a look nor a take-over goes through, and both name who runs."""
        group = STRIMZI if kind else f"{self.flow.source}-mm2"
        for how in looks:
            said = self.lockstep("takeover", *kind, how, code=1)
            assert f"MirrorMaker 2 still runs: group {group} on {self.flow.target} has 1 member." in said


def dedicated(folder: Path, brokers: tuple[Broker, Broker], mark: str, *lines: str) -> Moved:
    """One file for both of them."""
    a, b = (broker.bootstrap for broker in brokers)
    flow = Flow(f"a{mark}", f"b{mark}")
    file = two_cluster_file(
        folder,
        (flow.source, a),
        (flow.target, b),
        f"{flow}.enabled = true",
        f"{flow}.topics = {mark}-.*",
        "emit.heartbeats.enabled = false",
        "sync.topic.acls.enabled = false",
        "tasks.max = 2",
        f"{flow.target}.task.shutdown.graceful.timeout.ms = {GRACE_MS}",
        *(f"{topic}.replication.factor = 1" for topic in FACTORS),
        *lines,
    )
    return Moved.of(flow, file, a, b, mark)


def flushes(mark: str) -> str:
    """MM2 writes its progress ten times as often as by default. It takes this for a cluster only."""
    return f"b{mark}.offset.flush.interval.ms = 6000"


def say(what: str, found: Count) -> None:
    print(f"{what}: {found}")  # noqa: T201 - the figures are what it is for


def equal(what: str, moved: Moved) -> Count:
    """Nothing of what was copied so far is lost, doubled or out of order."""
    found = moved.copy.counted()
    say(f"{what}, {moved.flow}", found)
    assert found.equal, found
    return found


def test_dedicated_there_and_back_and_there_again(tmp_path: Path, brokers: tuple[Broker, Broker], mark: str) -> None:
    """Stopped in order each time, so that nothing is lost and nothing doubled."""
    moved = dedicated(tmp_path, brokers, mark, "emit.checkpoints.enabled = false")
    mirror = Mirror(moved.file, [moved.mirrored])
    with ExitStack() as writing:
        writing.enter_context(moved.writer(tmp_path))
        with MirrorMaker(moved.file) as mm2:
            moved.copy.wait_for_more(MORE)
            moved.refused_while_it_runs()
            mm2.stop()
            assert "in the same place" in moved.lockstep("takeover", "--yes")
            equal("MM2", moved)
            with mirror:
                moved.copy.wait_for_more(MORE)
                assert "Start MirrorMaker 2 now" in moved.lockstep("handback", "--stop", "--yes")
            equal("MM2, Lockstep", moved)
            mm2.start()
            moved.copy.wait_for_more(MORE)
            mm2.stop()
        equal("MM2, Lockstep, MM2", moved)
        with mirror:
            mirror.data_plane.hear("leading")  # it is who alters the offsets
            assert "lockstep resume" in moved.lockstep("takeover", "--yes")
            moved.lockstep("resume")
            moved.copy.wait_for_more(MORE)
            writing.close()
            moved.copy.wait_complete()
    equal("MM2, Lockstep, MM2, Lockstep", moved)


# -- a Connect cluster with Strimzi's names ----------------------------------------------------------------------------


def source_connector(moved: Moved) -> Mapping[str, str]:
    return {
        "source.cluster.alias": moved.flow.source,
        "target.cluster.alias": moved.flow.target,
        "source.cluster.bootstrap.servers": moved.copy.a,
        "target.cluster.bootstrap.servers": moved.copy.b,
        "topics": moved.copy.topic,
        "tasks.max": "2",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "sync.topic.acls.enabled": "false",
    }


def test_strimzi_both_ways(tmp_path: Path, brokers: tuple[Broker, Broker], mark: str) -> None:
    """A worker beside each target, as Strimzi has them. One is ended, the other runs on with its connector stopped.
    Both are taken over into the flow's own place and handed back from there."""
    a, b = (broker.bootstrap for broker in brokers)
    flow = Flow(f"a{mark}", f"b{mark}")
    back = Flow(flow.target, flow.source)
    file = two_cluster_file(
        tmp_path,
        (flow.source, a),
        (flow.target, b),
        *(f"{one}.enabled = true" for one in (flow, back)),
        f"topics = {mark}-.*",
        "emit.heartbeats.enabled = false",
        "emit.checkpoints.enabled = false",
        "sync.topic.acls.enabled = false",
        "tasks.max = 2",
        "offset-syncs.topic.replication.factor = 1",
    )
    there = Moved.of(flow, file, a, b, mark)
    here = Moved.of(back, file, b, a, mark)
    names = ("--offsets-topic", f"{STRIMZI}-offsets", "--connector", here.connector, "--group", STRIMZI)
    shared = ("--from", "connect", *names, "--connector-stopped")
    folders = [tmp_path / name for name in ("at-b", "at-a")]
    with ExitStack() as writing, ExitStack() as working:
        at_b, at_a = (
            working.enter_context(_worker(folder, one)) for folder, one in zip(folders, (there, here), strict=True)
        )
        for one, worker in ((there, at_b), (here, at_a)):
            writing.enter_context(one.writer(tmp_path))
            worker.run(one.connector, "MirrorSourceConnector", source_connector(one))
        for one in (there, here):
            one.copy.wait_for_more(MORE)
            one.refused_while_it_runs("--from", "strimzi")
        at_a.stop_connector(here.connector)
        here.lockstep("takeover", *shared, "--yes")
        at_b.stop()
        there.lockstep("takeover", "--from", "strimzi", "--yes")
        with Mirror(file, [there.mirrored, here.mirrored]):
            for one in (there, here):
                one.copy.wait_for_more(MORE)
            there.lockstep("handback", "--stop", "--yes")
            here.lockstep("handback", "--stop", "--yes", "--connector-stopped")
        for one in (there, here):
            equal("MM2, Lockstep", one)
        at_b.start()
        at_a.resume_connector(here.connector)
        for one in (there, here):
            one.copy.wait_for_more(MORE)
        writing.close()
        for one in (there, here):
            one.copy.wait_complete()
            equal("MM2, Lockstep, MM2", one)


def _worker(folder: Path, moved: Moved) -> ConnectWorker:
    folder.mkdir()
    return ConnectWorker(folder, moved.copy.b, STRIMZI)


# -- killed ------------------------------------------------------------------------------------------------------------


def test_takeover_from_a_killed_mm2_doubles_its_last_records_loses_none(
    tmp_path: Path, brokers: tuple[Broker, Broker], mark: str
) -> None:
    """Its workers are members until their session ends (10 s). By default it writes every minute; here more often."""
    moved = dedicated(tmp_path, brokers, mark, "emit.checkpoints.enabled = false", flushes(mark))
    with ExitStack() as writing:
        writing.enter_context(moved.writer(tmp_path))
        with MirrorMaker(moved.file) as mm2:
            until(lambda: len(moved.mirrored.mm2_progress(moved.copy.topic)) == PARTITIONS, what="MM2 has flushed")
            moved.copy.wait_for_more(MORE)
            mm2.kill()
        moved.refused_while_it_runs(looks=["--dry-run"])
        plan = until(lambda: _plan(moved), what="the killed one's session ends")
        assert any("If it was killed, records that it copied after it wrote last are copied again" in n for n in plan)
        moved.lockstep("takeover", "--yes")
        since = moved.not_written_down()
        with Mirror(moved.file, [moved.mirrored]):
            moved.copy.wait_for_more(since + MORE)
            writing.close()
            moved.copy.wait_complete()
    found = moved.copy.counted()
    say(f"MM2 killed {since} records after it wrote, Lockstep", found)
    assert (found.lost, found.doubled, found.displaced) == (0, since, 0)
    assert since > 0, "there was something to double"


def _plan(moved: Moved) -> list[str] | None:
    """The notes of a plan without refusals."""
    try:
        plan: dict[str, Any] = json.loads(moved.lockstep("takeover", "--dry-run", "--output", "json"))
    except AssertionError:
        return None
    return list(plan["notes"])


# -- groups ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reader:
    """A group on the source that reads the topic, always near its end."""

    group: str
    moved: Moved

    def moves(self) -> dict[int, int]:
        """By partition where it stands then."""
        copy = self.moved.copy
        places = {number: end - 50 for number, end in end_offsets(copy.a, copy.topic).items()}
        for number, offset in places.items():
            commit_offset(copy.a, self.group, copy.topic, number, offset)
        return places

    def checkpoints(self) -> list[Checkpoint]:
        """All that were ever written, oldest first."""
        topic = f"{self.moved.flow.source}.checkpoints.internal"
        return [decode_checkpoint(r.key, r.value) for r in read_so_far(self.moved.copy.b, topic)]

    def newest(self) -> dict[int, Checkpoint]:
        return {one.partition: one for one in self.checkpoints()}

    def on_target(self) -> dict[int, int | None]:
        copy = self.moved.copy
        return {number: committed_offset(copy.b, self.group, copy.remote, number) for number in range(PARTITIONS)}

    def is_translated(self, places: Mapping[int, int], *, exactly: bool = False) -> None:
        """Returns once each place has its checkpoint, and the group on the target stands where that leads."""

        def there() -> bool:
            newest, seen = self.newest(), self.moved.copy.seen()
            assert {number: one.upstream for number, one in newest.items()} == dict(places)
            for number, one in newest.items():
                assert not exactly or seen.again(number, one.upstream, one.downstream) == 0, one
            assert self.on_target() == {number: one.downstream for number, one in newest.items()}
            return True

        until(there, what=f"{self.group} stands at {places}")

    def was_never_beyond(self) -> int:
        """How many checkpoints there were."""
        seen, written = self.moved.copy.seen(), self.checkpoints()
        for one in written:
            assert one.downstream <= len(seen.copy[one.partition])
            assert seen.missed(one.partition, one.upstream, one.downstream) == 0, one
        return len(written)


@pytest.mark.parametrize("ended", ["stopped", "killed"])
def test_checkpointed_group_of_mm2_is_translated_on_and_never_too_far(
    tmp_path: Path, brokers: tuple[Broker, Broker], mark: str, ended: str
) -> None:
    """By MM2, by us, and where MM2 was stopped in order by MM2 again, on the syncs that both have written. Of a killed
    one some records are there twice, and MM2's syncs lead into the first ones."""
    lines = [f"{what}.interval.seconds = 1" for what in EVERY_SECOND]
    lines += ["sync.group.offsets.enabled = true", "offset.lag.max = 100", flushes(mark)]
    moved = dedicated(tmp_path, brokers, mark, *lines, f"groups = reader-{mark}")
    reader = Reader(f"reader-{mark}", moved)
    service = ServiceProcess("lockstep_checkpoint", moved.file, str(moved.flow))
    with ExitStack() as writing:
        writing.enter_context(moved.writer(tmp_path))
        with MirrorMaker(moved.file) as mm2:
            until(lambda: len(moved.mirrored.mm2_progress(moved.copy.topic)) == PARTITIONS, what="MM2 has flushed")
            moved.copy.wait_for_more(MORE)
            reader.is_translated(reader.moves())
            by_mm2 = reader.was_never_beyond()
            mm2.stop() if ended == "stopped" else mm2.kill()
            until(lambda: _plan(moved), what="MM2 is gone")
            assert "1 with checkpoints" in moved.lockstep("takeover", "--yes")
            since = moved.not_written_down()
            with Mirror(moved.file, [moved.mirrored]), service:
                moved.copy.wait_for_more(MORE)
                reader.is_translated(reader.moves(), exactly=True)
                by_us = reader.was_never_beyond() - by_mm2
                moved.lockstep("handback", "--stop", "--yes")
            mm2.start()
            moved.copy.wait_for_more(MORE)
            reader.is_translated(reader.moves())
            mm2.stop()
        writing.close()
    again = reader.was_never_beyond() - by_mm2 - by_us
    found = moved.copy.counted()
    say(f"MM2 {ended} {since} after it wrote; checkpoints {by_mm2} of MM2, {by_us} of Lockstep, {again} of MM2", found)
    assert (found.lost, found.doubled, found.displaced) == (0, since, 0)
    assert (since > 0) == (ended == "killed")
    assert min(by_mm2, by_us, again) > 0
