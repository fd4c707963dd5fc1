"""The whole life of a flow between two clusters as they are: all services of a file, records of every kind, groups,
kills and a switch. Nothing lies between Lockstep and the clusters."""

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import psutil

from lockstep_protocol.names import Flow
from lockstep_protocol.rows.state_rows import GroupStatus
from tests.support.broker_pairs import numbered_records
from tests.support.clusters import (
    Record,
    commit_offset,
    committed_offset,
    create_topic,
    produce,
    produce_transaction,
    read_topic,
)
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow
from tests.support.runs import LockstepRun
from tests.support.services import one_flow_file

WITHIN = 240.0
PARTITIONS = 4
BATCH = 125
"""Records that are written at once, in one codec."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OLD_FORMATS: Mapping[str, Sequence[str]] = {"0.9.0": CODECS[:4], "0.10.2": CODECS[:4]}
"""By the `message.format.version` of a topic, the codecs of format 0 and 1."""


class Cluster(Protocol):
    """What Lockstep reaches at an address."""

    @property
    def bootstrap(self) -> str:
        """Where clients connect."""


class WholeLife:
    """One flow with all its services between two clusters.

    The reader of the source is one of what is committed, so what was aborted must not come.

    Attributes:
        topic: A source topic of four partitions.
        group: A consumer group of the source.
    """

    def __init__(self, folder: Path, source: Cluster, target: Cluster, *lines: str) -> None:
        mark = uuid.uuid4().hex[:6]
        self.mark = mark
        self.flow = Flow(f"s{mark}", f"t{mark}")
        self.topic, self.group = f"{mark}-orders", f"{mark}-billing"
        self.mirrored = MirroredFlow(self.flow, source.bootstrap, target.bootstrap)
        self.file = one_flow_file(
            *(folder, self.flow, mark, source.bootstrap, target.bootstrap),
            f"{self.flow}.groups = {mark}-.*",
            f"{self.flow.source}.consumer.isolation.level = read_committed",
            "checkpoints.topic.replication.factor = 1",
            *(f"{what}.interval.seconds = 1" for what in ("emit.checkpoints", "sync.group.offsets", "refresh.topics")),
            *("sync.group.offsets.enabled = true", "tasks.max = 1"),
            *lines,
        )

    def create_topic(self) -> None:
        """Create the source topic."""
        create_topic(self.mirrored.source, self.topic, partitions=PARTITIONS)

    def write(self, first: int, count: int, codecs: Sequence[str] = CODECS) -> None:
        """Write records `first` and following in batches of these codecs: plain ones, idempotent ones, and ones of
        transactions. After each of the last kind comes a transaction that is aborted."""
        source = self.mirrored.source
        for number in range(first, first + count, BATCH):
            codec = codecs[number // BATCH % len(codecs)]
            records = numbered_records(min(BATCH, first + count - number), number, PARTITIONS)
            match number // BATCH % 3:
                case 2:
                    produce_transaction(source, self.topic, records, codec=codec)
                    lost = numbered_records(20, 1_000_000 + number, PARTITIONS)
                    produce_transaction(source, self.topic, lost, codec=codec, commit=False)
                case kind:
                    produce(source, self.topic, records, codec=codec, idempotent=kind == 1)

    @contextmanager
    def writing(self, first: int, count: int) -> Iterator[None]:
        """Write them meanwhile, and wait for all of them at the end. Raises what the writer has ended with."""
        troubles: list[Exception] = []

        def write() -> None:
            try:
                self.write(first, count)
            except Exception as exc:  # noqa: BLE001 - raised below
                troubles.append(exc)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            yield
        finally:
            writer.join(WITHIN)
        for trouble in troubles:
            raise trouble
        assert not writer.is_alive(), "the source does not take its records"

    def write_old_formats(self) -> Sequence[str]:
        """Create a topic for each old format and codec, with 150 records in it, and return their names."""
        names = []
        for version, codecs in OLD_FORMATS.items():
            for codec in codecs:
                name = f"{self.mark}-old-{version}-{codec}"
                create_topic(self.mirrored.source, name, configs={"message.format.version": version})
                plain = [Record(r.key, r.value, timestamp_ms=r.timestamp_ms) for r in numbered_records(150)]
                produce(self.mirrored.source, name, plain, codec=codec, settings={"linger.ms": "50"})
                names.append(name)
        return names

    @contextmanager
    def running(self) -> Iterator[LockstepRun]:
        """Run all services of the file, and leave none behind."""
        run = LockstepRun(self.file)
        try:
            yield run
        except BaseException:
            print(run.text()[-12_000:])  # noqa: T201 - pytest shows it
            raise
        finally:
            run.kill()

    def copied(self) -> int:
        """Return how many records of the topic the target has."""
        return len(self.mirrored.copy_of(self.topic))

    def wait_copied(self, *topics: str) -> None:
        """Wait until the copies are what a reader of the source sees: the same records in order, each once."""
        for topic in topics or (self.topic,):
            self.mirrored.wait_copied(topic, isolation="read_committed", within=WITHIN)

    def kill_data_plane(self, run: LockstepRun) -> None:
        """Kill it with its JVM and its workers (SIGKILL). The run starts it again."""
        driver = psutil.Process(run.service_pid("data-plane"))
        for process in (driver, *driver.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):  # it ended with the driver
                process.kill()

    def commit_half(self) -> Mapping[int, int]:
        """Let the group commit in the middle of each partition; return its offsets."""
        ends: dict[int, int] = {}
        for record in read_topic(self.mirrored.source, self.topic):
            ends[record.partition or 0] = (record.offset or 0) + 1
        committed = {number: end // 2 for number, end in ends.items()}
        for number, offset in committed.items():
            commit_offset(self.mirrored.source, self.group, self.topic, number, offset)
        return committed

    def wait_group_moved(self, committed: Mapping[int, int]) -> None:
        """Wait until a reader in the group finds the same next record on the target, in every partition."""
        remote = self.mirrored.remote(self.topic)
        wanted = {number: self._next(self.mirrored.source, self.topic, number, at) for number, at in committed.items()}

        def is_moved() -> bool:
            offsets = {n: committed_offset(self.mirrored.target, self.group, remote, n) for n in committed}
            found = {
                number: self._next(self.mirrored.target, remote, number, offset)
                for number, offset in offsets.items()
                if offset is not None
            }
            assert found == wanted, [row for row in self.mirrored.rows(GroupStatus) if row.group == self.group]
            return True

        wait_until(is_moved, within=WITHIN, every=0.5, what="the group is moved exactly")

    def answer(self, command: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Return the exit code of a command about the file, and what it prints as JSON."""
        words = [sys.executable, "-m", "lockstep_cli", command, str(self.file), "--output", "json", *arguments]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=WITHIN, check=False)
        assert "Traceback" not in ran.stderr, ran.stderr
        assert ran.stdout, ran.stderr
        return ran.returncode, json.loads(ran.stdout)

    def switch(self) -> dict[str, Any]:
        """Switch over; the source is at rest."""
        evidence = str(self.file.parent / f"evidence-{time.monotonic_ns()}")
        code, said = self.answer("switchover", "--flow", str(self.flow), "--yes", "--evidence", evidence)
        assert (code, said.get("phase")) == (0, "done"), said
        return said

    def _next(self, bootstrap: str, topic: str, partition: int, offset: int) -> Any:
        records = (record for record in read_topic(bootstrap, topic) if record.partition == partition)
        return next((record.same_as() for record in records if (record.offset or 0) >= offset), None)
