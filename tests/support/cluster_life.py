"""The whole life of a flow beside a known cluster: copied over a kill, its groups moved, switched over, compared.

The source or the target answers by the profile of that cluster. Tests write and read past the proxies.
"""

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from lockstep_cli.doctor.registry import REQUESTS
from lockstep_protocol.names import Flow
from lockstep_protocol.rows.state_rows import AclStatus, ClusterCapabilities
from tests.support.broker import Broker
from tests.support.broker_pairs import numbered_records
from tests.support.cluster_expectations import Role
from tests.support.cluster_profile import ClusterProfile
from tests.support.clusters import Record, commit_offset, committed_offset, create_topic, produce, read_topic
from tests.support.eventually import wait_until
from tests.support.known_clusters import GZIP, LZ4, SNAPPY, ZSTD
from tests.support.mirror import MirroredFlow
from tests.support.runs import LockstepRun
from tests.support.services import one_flow_file

WITHIN = 180.0
CODECS: Mapping[str, int] = {"none": 0, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
PARTITIONS = 4
BATCH = 250
"""Records that are written at once, in one codec."""
TABLE_CONFIGS = {
    "cleanup.policy": "compact",
    "max.message.bytes": "2000000",
    "segment.bytes": "1048576",
    "min.compaction.lag.ms": "1000",
}
ROWS = 200
HAZARDS = frozenset({"LS015", "LS016", *(f"LS0{number}" for number in range(25, 31))})
"""Of `plan`: what clusters refuse and lack."""
EVENTS = (
    *("AppendModeChosen", "CodecRefused", "ConfigRefused", "ReplicationFactorRefused", "RequestsLimited"),
    *("RequestUnsupported", "PartitionHalted", "GapFound"),
)
KNOWS_ALL = "knows all that Lockstep asks"
"""How `doctor` says that nothing is missing."""


class ClusterLife:
    """Two brokers behind proxies, of which one is a known cluster, and the flow of one file between them.

    Attributes:
        topic: A source topic of four partitions, with records of all codecs that its cluster takes.
        table: A compacted one, with configs of its own, a key for each record, and tombstones.
        group: A consumer group of the source.
    """

    def __init__(
        self, folder: Path, source: Broker, target: Broker, profiles: Mapping[Role, ClusterProfile], *lines: str
    ) -> None:
        """Let both clusters answer by their profiles, and create the source topics, with the records of the table."""
        assert source.proxy is not None
        assert target.proxy is not None
        source.proxy.answer_as(profiles[Role.SOURCE])
        target.proxy.answer_as(profiles[Role.TARGET])
        refused = profiles[Role.SOURCE].refused_codecs
        self._codecs = tuple(codec for codec, number in CODECS.items() if number not in refused)
        mark = uuid.uuid4().hex[:6]
        self.flow = Flow(f"s{mark}", f"t{mark}")
        self.topic, self.table, self.group = f"{mark}-orders", f"{mark}-table", f"{mark}-billing"
        self.mirrored = MirroredFlow(self.flow, source.bootstrap, target.bootstrap)
        lines = (
            f"{self.flow}.groups = {mark}-.*",
            "checkpoints.topic.replication.factor = 1",
            *(f"{what}.interval.seconds = 1" for what in ("emit.checkpoints", "sync.group.offsets", "refresh.topics")),
            *("sync.group.offsets.enabled = true", "tasks.max = 1"),
            *lines,
        )
        self.file = one_flow_file(folder, self.flow, mark, source.proxy.bootstrap, target.proxy.bootstrap, *lines)
        create_topic(self.mirrored.source, self.topic, partitions=PARTITIONS)
        create_topic(self.mirrored.source, self.table, configs=TABLE_CONFIGS)
        rows = [Record(b"row %d" % n, None if n % 7 == 3 else b"value %d" % n, partition=0) for n in range(ROWS)]
        produce(self.mirrored.source, self.table, rows, codec=self._codecs[-1])

    @property
    def aliases(self) -> Mapping[Role, str]:
        """Return the alias of each cluster."""
        return {Role.SOURCE: self.flow.source, Role.TARGET: self.flow.target}

    def write(self, first: int, count: int) -> None:
        """Write records `first` and following in batches of all codecs."""
        for number in range(first, first + count, BATCH):
            codec = self._codecs[number // BATCH % len(self._codecs)]
            records = numbered_records(min(BATCH, first + count - number), number, PARTITIONS)
            produce(self.mirrored.source, self.topic, records, codec=codec, idempotent=number // BATCH % 2 == 1)

    @contextmanager
    def writing(self, first: int, count: int) -> Iterator[None]:
        """Write them meanwhile, and wait for all of them at the end."""
        writer = threading.Thread(target=self.write, args=(first, count))
        writer.start()
        try:
            yield
        finally:
            writer.join(WITHIN)
        assert not writer.is_alive(), "the source does not take its records"

    @contextmanager
    def running(self) -> Iterator[LockstepRun]:
        """Run all services of the file, and leave none behind."""
        run = LockstepRun(self.file)
        try:
            yield run
        except BaseException:
            print(run.text()[-8000:])  # noqa: T201 - pytest shows it
            raise
        finally:
            run.kill()

    def count_copied(self) -> int:
        """Return how many records of the topic the target has."""
        return len(read_topic(self.mirrored.target, self.mirrored.remote(self.topic)))

    def kill_data_plane(self, run: LockstepRun) -> None:
        """Kill it with its JVM and its workers (SIGKILL). The run starts it again."""
        driver = psutil.Process(run.service_pid("data-plane"))
        for process in (driver, *driver.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):  # it ended with the driver
                process.kill()

    def commit(self, share: float) -> Mapping[int, int]:
        """Let the group commit behind this share of the records of each partition; by partition."""
        ends: dict[int, int] = {}
        for record in read_topic(self.mirrored.source, self.topic):
            ends[record.partition or 0] = (record.offset or 0) + 1
        committed = {number: int(end * share) for number, end in ends.items()}
        for number, offset in committed.items():
            commit_offset(self.mirrored.source, self.group, self.topic, number, offset)
        return committed

    def wait_group_moved(self, committed: Mapping[int, int]) -> None:
        """Wait until a reader in the group finds the same next record on the target, in every partition."""
        wanted = {number: self._next(self.mirrored.source, self.topic, number, at) for number, at in committed.items()}
        remote = self.mirrored.remote(self.topic)

        def is_moved() -> bool:
            moved: dict[int, Any] = {}
            for number in committed:
                offset = committed_offset(self.mirrored.target, self.group, remote, number)
                if offset is None:
                    return False
                moved[number] = self._next(self.mirrored.target, remote, number, offset)
            assert moved == wanted
            return True

        wait_until(is_moved, within=WITHIN, every=0.5, what="the group is moved exactly")

    def is_fine(self) -> bool:
        """Return whether `status` says that the flow is."""
        code, said = self.answer("status")
        (flow,) = (flow for flow in said["flows"] if flow["flow"] == str(self.flow))
        assert (code, flow["fine"], flow["troubles"]) == (0, True, []), flow
        return True

    def planned_hazards(self) -> frozenset[str]:
        """Return the codes of what `plan` warns of, but for what depends on no cluster. No right may be missing."""
        _, said = self.answer("plan")
        (flow,) = (flow for flow in said["flows"] if flow["flow"] == str(self.flow))
        assert (flow["rights"], [remark for remark in flow["remarks"] if "cannot be reached" in remark]) == ([], [])
        return frozenset(hazard["code"] for hazard in flow["hazards"]) & HAZARDS

    def lacks_by_doctor(self) -> Mapping[str, bool]:
        """Return for each alias whether `doctor` names requests that the cluster does not know. Nothing may fail."""
        _, said = self.answer("doctor")
        checks = [check for category in said["categories"] for check in category["checks"]]
        assert [check for check in checks if check["result"] == "failed"] == []
        return {check["subject"]: check["detail"] != KNOWS_ALL for check in checks if check["code"] == REQUESTS.code}

    def lacks_by_rows(self) -> Mapping[str, frozenset[str]]:
        """Return the requests that the rows of the clusters name as not known, by alias."""
        return {row.alias: frozenset(row.lacks) for row in self.mirrored.rows(ClusterCapabilities)}

    def reported(self) -> frozenset[str]:
        """Return the kinds of events by which services said that they do something in another way."""
        return frozenset(kind for kind in EVENTS if self.mirrored.events(kind))

    def acl_phase(self) -> str:
        """Return the phase of ACL sync."""
        (row,) = self.mirrored.rows(AclStatus)
        return row.phase

    def switch(self) -> None:
        """Switch over; the source is at rest."""
        evidence = str(self.file.parent / f"evidence-{time.monotonic_ns()}")
        code, said = self.answer("switchover", "--flow", str(self.flow), "--yes", "--evidence", evidence)
        assert (code, said.get("phase"), said.get("lost")) == (0, "done", 0), said

    def answer(self, command: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Return the exit code of a command about the file, and what it prints as JSON."""
        words = [sys.executable, "-m", "lockstep_cli", command, str(self.file), "--output", "json", *arguments]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=WITHIN, check=False)
        assert "Traceback" not in ran.stderr, ran.stderr
        assert ran.stdout, ran.stderr
        return ran.returncode, json.loads(ran.stdout)

    def _next(self, bootstrap: str, topic: str, partition: int, offset: int) -> Any:
        records = (record for record in read_topic(bootstrap, topic) if record.partition == partition)
        return next((record.same_as() for record in records if (record.offset or 0) >= offset), None)
