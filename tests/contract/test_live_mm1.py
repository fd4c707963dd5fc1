"""MirrorMaker 1 mirrors and is stopped or killed, we go on from its group, and it goes on from ours (`mm2-behaviour.md`
§9).

Nothing carries the place over but the group's committed offsets. A writer does not stop meanwhile, and every record
bears its number. MirrorMaker 1 chooses partitions itself, so a record is looked for in all of them.
"""

import uuid
from collections import Counter
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

import pytest

from lockstep_state.events import Event, decode_event
from lockstep_state.names import Flow, events_topic
from tests.contract.turns import NumberedCopy, until
from tests.faults.numbered import Writer, read_numbers
from tests.support.broker import Broker
from tests.support.clusters import Record, admin, committed_offset, create_topic, end_offsets, produce, read_topic
from tests.support.mm1 import Legacy, LegacyFolder, MirrorMaker1

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PARTITIONS = 3
KEYS = 60
RATE = 500
MORE = 1_500
COMMIT_MS = 1_000


class Turns:
    """One topic, which either of them mirrors in turn under the same name."""

    def __init__(
        self,
        folder: Path,
        brokers: tuple[Broker, Broker],
        partitions: int = PARTITIONS,
        places: int = PARTITIONS,
        **ours: str,
    ) -> None:
        """`partitions` of the source, `places` on the target. `ours`: keys in the producer's file under
        `lockstep.legacy.`, which MirrorMaker 1 does not know."""
        self.a, self.b = (broker.bootstrap for broker in brokers)
        self.topic = f"numbers-{uuid.uuid4().hex[:6]}"
        self.group = f"mm-{self.topic}"
        self.copy = NumberedCopy(self.a, self.b, self.topic, self.topic)
        options = ("--num.streams=2", "--include", self.topic, f"--offset.commit.interval.ms={COMMIT_MS}")
        producer = {f"lockstep.legacy.{key}": value for key, value in ours.items()}
        files = LegacyFolder.write(folder, self.a, self.b, self.group, *options, producer=producer)
        self.mm1, self.lockstep = MirrorMaker1(files), Legacy(files)
        self.partitions = partitions
        create_topic(self.a, self.topic, partitions=partitions)
        create_topic(self.b, self.topic, partitions=places)

    def numbers(self, bootstrap: str) -> list[int]:
        return list(chain.from_iterable(read_numbers(bootstrap, self.topic).values()))

    def doubled(self) -> int:
        """How many records are on the target more than once, counted each time beyond the first."""
        return sum(times - 1 for times in Counter(self.numbers(self.b)).values())

    def committed(self) -> int:
        return sum(committed_offset(self.a, self.group, self.topic, p) or 0 for p in range(self.partitions))

    def wait_committed_all(self) -> None:
        """Lag tools see it: the group stands at the end, once nobody writes any more."""
        ends = sum(end_offsets(self.a, self.topic).values())
        until(lambda: self.committed() == ends, what="the group stands at the end")

    def wait_complete(self) -> None:
        wanted = set(self.numbers(self.a))
        until(lambda: set(self.numbers(self.b)) >= wanted, what="nothing is missing")

    def events(self, kind: str) -> list[Event]:
        topic = events_topic(Flow("source", "target"), self.group)
        if topic not in admin(self.b).list_topics(timeout=20).topics:
            return []
        decoded = [decode_event(record.value or b"") for record in read_topic(self.b, topic)]
        return [event for event in decoded if event.kind == kind]


def test_mm1_and_legacy_continue_where_the_other_stopped(tmp_path: Path, brokers: tuple[Broker, Broker]) -> None:
    """MirrorMaker 1, Lockstep, MirrorMaker 1, Lockstep: stopped in order nothing is lost and nothing doubled, although
    Lockstep has progress of its own from its first turn when its second begins."""
    turns = Turns(tmp_path, brokers)
    with ExitStack() as writing:
        log = tmp_path / "writer.log"
        writing.enter_context(Writer(turns.a, turns.topic, partitions=PARTITIONS, rate=RATE, log=log))
        for process in (turns.mm1, turns.lockstep, turns.mm1):
            with process:
                turns.copy.wait_for_more(MORE)
                process.stop()
            assert turns.doubled() == 0, process
        with turns.lockstep:
            turns.copy.wait_for_more(MORE)
            writing.close()
            turns.wait_complete()
            turns.wait_committed_all()
            turns.lockstep.stop()
    assert turns.doubled() == 0
    assert turns.events("GroupPositionsTaken")
    assert turns.events("GroupPositionObeyed")
    assert not turns.events("GroupPositionOverwritten")


def test_mm1_and_legacy_by_key_choose_the_same_partitions(tmp_path: Path, brokers: tuple[Broker, Broker]) -> None:
    """Six partitions into four, in turn: all records of a key lie in one partition, once and in order."""
    turns = Turns(tmp_path, brokers, 6, 4, partitioning="key")
    order: list[MirrorMaker1 | Legacy] = [turns.mm1, turns.lockstep, turns.mm1, turns.lockstep]
    for turn, process in enumerate(order):
        numbers = range(turn * MORE, (turn + 1) * MORE)
        keyed = [Record(key=b"key-%d" % (n % KEYS), value=b"%012d" % n, partition=n % KEYS % 6) for n in numbers]
        produce(turns.a, turns.topic, keyed)
        with process:
            turns.wait_complete()
            process.stop()
        assert turns.doubled() == 0, process
    turns.wait_committed_all()
    records = read_topic(turns.b, turns.topic)
    for key in range(KEYS):
        of_key = [r for r in records if r.key == b"key-%d" % key]
        assert len({r.partition for r in of_key}) == 1
        assert [int(r.value or b"") for r in of_key] == list(range(key, 4 * MORE, KEYS))
    assert len({r.partition for r in records}) == 4


def test_killed_mm1_is_waited_for_and_its_commit_is_the_start(tmp_path: Path, brokers: tuple[Broker, Broker]) -> None:
    """While the broker still counts the dead one among the group's members nothing is copied; what it copied after its
    last commit comes again, as it would by itself."""
    turns = Turns(tmp_path, brokers)
    with ExitStack() as writing:
        log = tmp_path / "writer.log"
        writing.enter_context(Writer(turns.a, turns.topic, partitions=PARTITIONS, rate=RATE, log=log))
        with turns.mm1, turns.lockstep:
            turns.copy.wait_for_more(MORE)
            until(lambda: turns.events("GroupOccupied"), what="it waits")
            turns.mm1.kill()
            again = sum(end_offsets(turns.b, turns.topic).values()) - turns.committed()
            turns.copy.wait_for_more(MORE)
            writing.close()
            turns.wait_complete()
            turns.lockstep.stop()
    assert turns.events("GroupFreed")
    assert turns.doubled() == again


def test_mm1_started_beside_us_gets_the_partitions_and_gives_them_back(
    tmp_path: Path, brokers: tuple[Broker, Broker]
) -> None:
    turns = Turns(tmp_path, brokers)
    with ExitStack() as writing:
        log = tmp_path / "writer.log"
        writing.enter_context(Writer(turns.a, turns.topic, partitions=PARTITIONS, rate=RATE, log=log))
        with turns.lockstep:
            turns.copy.wait_for_more(MORE)
            with turns.mm1:
                until(lambda: turns.events("GroupOccupied"), what="it is noticed")
                turns.copy.wait_for_more(MORE)
                turns.mm1.stop()
            until(lambda: turns.events("GroupFreed"), what="it is free again")
            turns.copy.wait_for_more(MORE)
            writing.close()
            turns.wait_complete()
            turns.wait_committed_all()
            doubled = turns.doubled()
            turns.lockstep.stop()
    # What was copied since our last commit, and until we noticed.
    assert doubled <= RATE * 30
    assert turns.doubled() == doubled
