"""The whole life of a flow: copied over a kill, its group moved, switched over, and compared record by record.

Its clusters are brokers of any version and kind, or answer through proxies as other clusters do. Tests write and read
past proxies.
"""

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import psutil

from lockstep_ops.doctor.checks.registry import PRODUCT, REQUESTS
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import GroupStatus
from tests.support.broker_pairs import numbered_records
from tests.support.clusters import (
    Isolation,
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
from tests.support.planned_flow import hazards
from tests.support.runs import LockstepRun
from tests.support.services import one_flow_file

WITHIN = 240.0
PARTITIONS = 4
BATCH = 250
"""Records that are written at once, in one codec and in one way."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""By their numbers."""
OLD_FORMATS = ("0.9.0", "0.10.2")
"""The `message.format.version` of topics in format 0 and 1. Both have all codecs but the last one."""
TABLE_CONFIGS = {
    "cleanup.policy": "compact",
    "max.message.bytes": "2000000",
    "segment.bytes": "1048576",
    "min.compaction.lag.ms": "1000",
}
KNOWS_ALL = "knows all that Lockstep asks"
"""How `doctor` says that nothing is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeCluster:
    """A cluster of the flow, and what Lockstep has to say of it in its role.

    Attributes:
        bootstrap: Where tests write and read.
        address: Where Lockstep reaches it: the same, or a proxy.
        product: What it looks like; "": not compared.
        lacks: The requests that it does not know.
    """

    bootstrap: str
    address: str
    product: str = ""
    lacks: frozenset[str] = frozenset()


class WholeLife:
    """One flow with all its services between two clusters.

    With `transactions` some records are written in transactions, some of which are aborted. The flow then reads what is
    committed. Otherwise records are plain and idempotent ones, and the isolation level is the default.
    """

    def __init__(
        self,
        folder: Path,
        source: LifeCluster,
        target: LifeCluster,
        *lines: str,
        codecs: Sequence[str] = CODECS,
        transactions: bool = False,
    ) -> None:
        """Write the file, and create the topic that the group reads. `codecs`: those that the source takes."""
        self._mark = uuid.uuid4().hex[:6]
        self._flow = Flow(f"s{self._mark}", f"t{self._mark}")
        self.clusters: Mapping[str, LifeCluster] = {self._flow.source: source, self._flow.target: target}
        self.mirrored = MirroredFlow(self._flow, source.bootstrap, target.bootstrap)
        self._isolation: Isolation = "read_committed" if transactions else "read_uncommitted"
        self._codecs, self._ways = codecs, 3 if transactions else 2
        self._file = one_flow_file(
            *(folder, self._flow, self._mark, source.address, target.address),
            f"{self._flow}.groups = {self._mark}-.*",
            *([f"{self._flow.source}.consumer.isolation.level = {self._isolation}"] if transactions else []),
            "checkpoints.topic.replication.factor = 1",
            *(f"{what}.interval.seconds = 1" for what in ("emit.checkpoints", "sync.group.offsets", "refresh.topics")),
            *("sync.group.offsets.enabled = true", "tasks.max = 1"),
            *lines,
        )
        self._topic, self._group = f"{self._mark}-orders", f"{self._mark}-billing"
        self._topics = [create_topic(source.bootstrap, self._topic, partitions=PARTITIONS)]

    def write(self, first: int, count: int) -> None:
        """Write records `first` and following in batches of all codecs and ways. After each transaction comes one that
        is aborted."""
        source = self.mirrored.source
        for number in range(first, first + count, BATCH):
            codec = self._codecs[number // BATCH % len(self._codecs)]
            records = numbered_records(min(BATCH, first + count - number), number, PARTITIONS)
            match number // BATCH % self._ways:
                case 2:
                    produce_transaction(source, self._topic, records, codec=codec)
                    aborted = numbered_records(20, 1_000_000 + number, PARTITIONS)
                    produce_transaction(source, self._topic, aborted, codec=codec, commit=False)
                case way:
                    produce(source, self._topic, records, codec=codec, idempotent=way == 1)

    def write_table(self) -> None:
        """Create a compacted topic with configs of its own, a key for each record, and tombstones."""
        rows = [Record(b"row %d" % n, None if n % 7 == 3 else b"value %d" % n, partition=0) for n in range(200)]
        self._create(f"{self._mark}-table", TABLE_CONFIGS, rows, self._codecs[-1])

    def write_old_formats(self) -> None:
        """Create a topic for each old format and codec."""
        plain = [Record(r.key, r.value, timestamp_ms=r.timestamp_ms) for r in numbered_records(150)]
        for version, codec in product(OLD_FORMATS, CODECS[:-1]):
            self._create(f"{self._mark}-old-{version}-{codec}", {"message.format.version": version}, plain, codec)

    @contextmanager
    def running(self) -> Iterator[LockstepRun]:
        """Run all services of the file, and leave none behind."""
        run = LockstepRun(self._file)
        try:
            yield run
        except BaseException:
            print(run.text()[-12_000:])  # noqa: T201 - pytest shows it
            raise
        finally:
            run.kill()

    def copy_over_kill(self, run: LockstepRun, first: int, count: int, *, groups: bool = True) -> None:
        """Write the records from `first` up to `count` while they are copied. Kill the data plane in the middle
        (SIGKILL, with its JVM and its workers; the run starts it again). The second half is written once it is killed.
        Compare all records, and move the group, unless the source has no `groups` to read."""
        self.mirrored.wait_mirrored(self._topic, partitions=PARTITIONS, within=WITHIN)
        wait_until(lambda: self._count_copied() > 0, within=WITHIN, what="the copy begins")
        half = (count - first) // 2
        with ThreadPoolExecutor(1) as writer:
            writing = writer.submit(self.write, first, half)
            wait_until(lambda: self._count_copied() > first, within=WITHIN, what="the copy goes on")
            driver = psutil.Process(run.service_pid("data-plane"))
            for process in (driver, *driver.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):  # it ended with the driver
                    process.kill()
            assert self._count_copied() < count, "it was killed in the middle"
            writing.result(WITHIN)
            self.write(first + half, count - first - half)
        committed = self._commit(0.6)
        for topic in self._topics:
            self.mirrored.wait_copied(topic, isolation=self._isolation, within=WITHIN)
        assert self._count_copied() == count
        if groups:
            self._wait_group_moved(committed)

    def switch_over(self) -> dict[str, Any]:
        """Switch over once the group has read on, compare all records, and return what `switchover` prints."""
        committed = self._commit(0.9)
        evidence = str(self._file.parent / f"evidence-{time.monotonic_ns()}")
        code, said = self._answer("switchover", "--flow", str(self._flow), "--yes", "--evidence", evidence)
        assert (code, said.get("phase"), said.get("lost")) == (0, "done", 0), said
        self._wait_group_moved(committed)
        for topic in self._topics:
            comparison = self.mirrored.compared(topic, isolation=self._isolation)
            assert comparison.equal, comparison
        return said

    def plan(self) -> tuple[int, Mapping[str, Sequence[str]]]:
        """Return the exit code of `plan`, and by the codes of its hazards their details. No right may be missing, and
        each cluster has to answer."""
        code, said = self._answer("plan")
        flow = self._only_flow(said)
        unreached = [remark for remark in flow["remarks"] if "cannot be reached" in remark]
        assert (flow["rights"], unreached) == ([], []), flow["remarks"]
        return code, hazards(flow)

    def check_doctor(self) -> None:
        """Assert that `doctor` finds no failure, and says of each cluster what it is and whether it lacks requests."""
        _, said = self._answer("doctor")
        checks = [check for category in said["categories"] for check in category["checks"]]
        failed = [check for check in checks if check["result"] == "failed"]
        assert failed == [], failed
        lacking = {check["subject"]: check["detail"] != KNOWS_ALL for check in checks if check["code"] == REQUESTS.code}
        assert lacking == {alias: bool(cluster.lacks) for alias, cluster in self.clusters.items()}
        details = {check["subject"]: check["detail"] for check in checks if check["code"] == PRODUCT.code}
        for alias, kind in self._products().items():
            assert details[alias] == f"looks like {'no kind that Lockstep knows' if kind == 'unknown' else kind}"

    def wait_fine(self) -> None:
        """Wait until `status` says that the flow is fine and ready for a switch, and has the line of each cluster."""
        lacks = {alias: sorted(cluster.lacks) for alias, cluster in self.clusters.items()}

        def is_fine() -> bool:
            code, said = self._answer("status")
            flow = self._only_flow(said)
            assert (code, flow["fine"], flow["troubles"], flow["switch_ready"]) == (0, True, [], True), flow
            assert {line["alias"]: sorted(line["lacks"]) for line in flow["clusters"]} == lacks
            assert self._products().items() <= {line["alias"]: line["product"] for line in flow["clusters"]}.items()
            return True

        wait_until(is_fine, within=WITHIN, every=2.0, what="status is fine")

    def status_text(self) -> str:
        """Return what `status` prints for people."""
        return self._run("status").stdout

    def _products(self) -> Mapping[str, str]:
        return {alias: cluster.product for alias, cluster in self.clusters.items() if cluster.product}

    def _create(self, topic: str, configs: Mapping[str, str], records: Sequence[Record], codec: str) -> None:
        self._topics.append(create_topic(self.mirrored.source, topic, configs=configs))
        produce(self.mirrored.source, topic, records, codec=codec, settings={"linger.ms": "50"})

    def _count_copied(self) -> int:
        return len(self.mirrored.copy_of(self._topic))

    def _commit(self, share: float) -> Mapping[int, int]:
        """Let the group commit behind this share of the records of each partition; return its offsets."""
        last = {record.partition or 0: record.offset or 0 for record in read_topic(self.mirrored.source, self._topic)}
        committed = {number: int((offset + 1) * share) for number, offset in last.items()}
        for number, offset in committed.items():
            commit_offset(self.mirrored.source, self._group, self._topic, number, offset)
        return committed

    def _wait_group_moved(self, committed: Mapping[int, int]) -> None:
        """Wait until a reader in the group finds the same next record on the target, in every partition."""
        target, remote = self.mirrored.target, self.mirrored.remote(self._topic)
        wanted = _next_records(self.mirrored.source, self._topic, committed)

        def is_moved() -> bool:
            offsets = {number: committed_offset(target, self._group, remote, number) for number in committed}
            moved = _next_records(target, remote, {n: offset for n, offset in offsets.items() if offset is not None})
            assert moved == wanted, [row for row in self.mirrored.rows(GroupStatus) if row.group == self._group]
            return True

        wait_until(is_moved, within=WITHIN, every=0.5, what="the group is moved exactly")

    def _only_flow(self, said: Mapping[str, Any]) -> dict[str, Any]:
        (flow,) = (flow for flow in said["flows"] if flow["flow"] == str(self._flow))
        return dict(flow)

    def _answer(self, command: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Return the exit code of a command about the file, and what it prints as JSON."""
        ran = self._run(command, "--output", "json", *arguments)
        assert "Traceback" not in ran.stderr, ran.stderr
        assert ran.stdout, ran.stderr
        return ran.returncode, json.loads(ran.stdout)

    def _run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "lockstep_cli", command, str(self._file), *arguments]
        return subprocess.run(words, capture_output=True, text=True, timeout=WITHIN, check=False)


def _next_records(bootstrap: str, topic: str, offsets: Mapping[int, int]) -> Mapping[int, Any]:
    """Return by partition the first record that is at the offset or behind it; None: there is none."""
    read = read_topic(bootstrap, topic)
    return {
        number: next((r.same_as() for r in read if r.partition == number and (r.offset or 0) >= offset), None)
        for number, offset in offsets.items()
    }
