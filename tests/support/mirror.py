"""topic-sync and the data plane of some flows between two clusters, each a real process with Spark inside the second.

What both processes say about themselves is read from where everybody reads it: the state and events topics, MM2's
progress topic and its offset syncs.
"""

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import psutil

from lockstep_state.codecs.mm2_codec import OffsetSync, decode_offset_sync
from lockstep_state.commands.command import Command
from lockstep_state.events import Event, decode_event
from lockstep_state.names import Flow, commands_topic, events_topic, progress_topic, state_topic
from lockstep_state.rows.state_rows import (
    Assignment,
    MalformedRow,
    MirroredTopic,
    PartitionProgress,
    Row,
    decode_row,
)
from tests.support.broker import Broker
from tests.support.clusters import Isolation, Record, end_offsets, produce, read_topic
from tests.support.control import read_so_far, source_offsets
from tests.support.eventually import wait_until
from tests.support.processes import show, starting
from tests.support.services import COPY_ONLY, ServiceProcess, one_flow_file
from tests.support.topic_comparison import Comparison, compare
from tests.support.traffic import Traffic

SOURCE_CONNECTOR = "connector:MirrorSourceConnector"

R = TypeVar("R", bound=Row)
COPIED_WITHIN = 90.0  # seconds; usual is 2, but several test runs may share the cores


class MirroredFlow:
    """One flow of a `Mirror`: its topics, and what its services have written down about it."""

    def __init__(self, flow: Flow, source: str, target: str, group_id: str | None = None) -> None:
        """`source` and `target` are addresses at which tests write and read: past any proxy. `group_id`: the name of
        its instance on the target, where it has one."""
        self.flow = flow
        self.group_id = group_id
        self.source = source
        self.target = target

    def __str__(self) -> str:
        return str(self.flow)

    def remote(self, topic: str) -> str:
        """Return what the copy of `topic` is called."""
        return f"{self.flow.source}.{topic}"

    def rows(self, kind: type[R]) -> list[R]:
        """Return the rows of a kind as they stand now, each key once."""
        return [row for row in self._rows().values() if isinstance(row, kind)]

    def progress(self, topic: str) -> dict[int, PartitionProgress]:
        """Return what is written down about the topic, by partition."""
        return {row.partition: row for row in self.rows(PartitionProgress) if row.topic == topic}

    def located(self, topic: str) -> dict[int, int] | None:
        """Return where the copies end on the source, by partition, once every row says so."""
        rows = self.progress(topic)
        return {number: row.upstream for number, row in rows.items()} if all(r.located for r in rows.values()) else None

    def assigned(self, topic: str) -> dict[int, set[int]]:
        """Return the partitions of the topic that each slot has. Other topics of the source, as heartbeats, may be
        there."""
        rows = self.rows(Assignment)
        return {row.slot: {number for name, number in row.partitions if name == topic} for row in rows}

    def mirrored(self, topic: str) -> MirroredTopic | None:
        """topic-sync's row."""
        return next((row for row in self.rows(MirroredTopic) if row.source_topic == topic), None)

    def events(self, kind: str, about: str = "") -> list[Event]:
        """Return events of a kind, oldest first, whose subject begins with `about`."""
        return [event for event in self._events() if event.kind == kind and event.subject.startswith(about)]

    def mm2_progress(self, topic: str) -> dict[int, int | None]:
        """Return what MM2 would find about the topic in its own progress topic, by partition."""
        offsets = source_offsets(read_so_far(self.target, progress_topic(self.flow)))
        return {number: offset for (name, number), offset in offsets.items() if name == topic}

    def offset_syncs(self, topic: str, *, on_target: bool = False) -> list[OffsetSync]:
        """Return every sync of the topic, oldest first, from where MM2 keeps them: on the source, unless told
        otherwise."""
        bootstrap, other = (self.target, self.flow.source) if on_target else (self.source, self.flow.target)
        records = read_topic(bootstrap, f"mm2-offset-syncs.{other}.internal")
        syncs = [decode_offset_sync(record.key, record.value) for record in records]
        return [sync for sync in syncs if sync.topic == topic]

    def compared(self, topic: str, *, isolation: Isolation = "read_uncommitted") -> Comparison:
        """Return how the copy differs now from what a reader of the source sees under `isolation`."""
        wanted = read_topic(self.source, topic, isolation=isolation)
        return compare(wanted, self.copy_of(topic))

    def copy_of(self, topic: str) -> list[Record]:
        """Return what a reader of the target finds: what is committed, where the flow writes in transactions."""
        return read_topic(self.target, self.remote(topic), isolation="read_committed")

    def wait_copied(
        self, topic: str, *, isolation: Isolation = "read_uncommitted", within: float = COPIED_WITHIN
    ) -> list[Record]:
        """Return the copy once it equals the source: the same records in the same order, each once."""
        wanted = read_topic(self.source, topic, isolation=isolation)
        assert wanted, f"{topic} is empty: nothing to compare"

        def equal() -> list[Record]:
            copy = self.copy_of(topic)
            comparison = compare(wanted, copy)
            assert comparison.equal, comparison
            return copy

        self.wait_mirrored(topic, within=within)
        return wait_until(equal, within=within, every=0.25, what=f"{topic} is copied")

    def wait_holds(self, topic: str, wanted: Sequence[Record], *, within: float = COPIED_WITHIN) -> None:
        """Wait until the copy of the topic is these records, each once and in this order, and no others."""

        def equal() -> bool:
            comparison = compare(wanted, self.copy_of(topic))
            assert comparison.equal, comparison
            return True

        self.wait_mirrored(topic, within=within)
        wait_until(equal, within=within, every=0.25, what=f"{topic} is copied as it was told")

    def wait_mirrored(self, topic: str, *, partitions: int = 1, within: float = COPIED_WITHIN) -> MirroredTopic:
        """topic-sync's row, once the remote topic exists with as many partitions."""

        def is_mirrored() -> MirroredTopic | None:
            row = self.mirrored(topic)
            return row if row and row.phase == "mirrored" and row.target_partitions >= partitions else None

        return wait_until(is_mirrored, within=within, every=0.25, what=f"{topic} is mirrored")

    def wait_written_down(self, topic: str, *, within: float = COPIED_WITHIN) -> dict[int, PartitionProgress]:
        """Progress once it says that nothing is left to copy of what the source holds by now.

        A row that says so may have been written before the last record was: the source's own end is asked.
        """
        ends = end_offsets(self.source, topic)

        def all_of_it() -> dict[int, PartitionProgress] | None:
            rows = self.progress(topic)
            done = all(row.lag_records == 0 and row.upstream >= ends[number] - 1 for number, row in rows.items())
            return rows if rows and done and all(row.upstream >= 0 for row in rows.values()) else None

        return wait_until(all_of_it, within=within, every=0.25, what=f"progress of {topic} is complete")

    def wait_for_more(self, topic: str, records: int = 1, *, within: float = COPIED_WITHIN) -> None:
        """Wait until so many more are written down as copied: whatever follows meets a copy that is under way."""
        wanted = self._copied(topic) + records
        wait_until(lambda: self._copied(topic) >= wanted, within=within, every=0.1, what=f"{topic} goes on")

    def wait_event(self, kind: str, about: str = "", *, within: float = COPIED_WITHIN) -> Event:
        """Return the first such event."""
        return wait_until(lambda: self.events(kind, about), within=within, every=0.25, what=f"{kind} {about}")[0]

    def ask(self, verb: str, subject: str, **arguments: Any) -> Event:
        """Return the first answer to a command."""
        command = Command(id=uuid.uuid4().hex, verb=verb, subject=subject, arguments=arguments)
        key, value = command.encode()
        produce(self.target, commands_topic(self.flow, self.group_id), [Record(key, value, partition=0)])

        def answers() -> list[Event]:
            return [event for event in self._events() if event.answers == command.id]

        return wait_until(answers, within=COPIED_WITHIN, every=0.1, what=f"{verb} {subject} is answered")[0]

    def alter(self, topic: str, offset: int | None, partition: int = 0) -> Event:
        """Return the answer to altering the offset of a source partition; None resets it."""
        which = {"cluster": self.flow.source, "topic": topic, "partition": partition}
        entry = {"partition": which, "offset": None if offset is None else {"offset": offset}}
        return self.ask("offsets-alter", SOURCE_CONNECTOR, offsets=[entry])

    def listed(self, *topics: str) -> dict[str, dict[int, int]]:
        """Return the offsets that are listed of these topics, by partition."""
        offsets: dict[str, dict[int, int]] = {topic: {} for topic in topics}
        for entry in self.ask("offsets-list", SOURCE_CONNECTOR).detail["offsets"]:
            source_partition, offset = entry["partition"], entry["offset"]["offset"]
            offsets.setdefault(source_partition["topic"], {})[source_partition["partition"]] = offset
        return {topic: offsets[topic] for topic in topics}

    def _events(self) -> list[Event]:
        topic = events_topic(self.flow, self.group_id)
        events: list[Event] = []
        for record in read_topic(self.target, topic):
            with suppress(MalformedRow):
                events.append(decode_event(record.value or b""))
        return events

    def _copied(self, topic: str) -> int:
        return sum(row.upstream + 1 for row in self.progress(topic).values())

    def _rows(self) -> dict[str, Row]:
        rows: dict[str, Row] = {}
        for record in read_topic(self.target, state_topic(self.flow, self.group_id)):
            with suppress(MalformedRow):
                row = decode_row(record.key or b"", record.value)
                if row is not None:
                    rows[row.key()] = row
        return rows


class Mirror:
    """Both services for `flows` of one file; a context manager that leaves no process behind."""

    def __init__(self, config: Path, flows: Sequence[MirroredFlow], *, instance: str = "test") -> None:
        self.config = config
        self.flows = {str(flow): flow for flow in flows}
        self.topic_sync = ServiceProcess("lockstep_topic_sync", config, *self.flows, instance=instance)
        self.data_plane = ServiceProcess("lockstep_data_plane", config, *self.flows, instance=instance)

    @classmethod
    def one_flow(
        cls, folder: Path, mark: str, source: tuple[str, str], target: tuple[str, str], *lines: str, slots: int = 1
    ) -> Self:
        """Return a mirror of one flow for the topics that begin with `mark`, which also names its aliases. `source` and
        `target`: the address for tests and the address for the services (a proxy's, perhaps)."""
        flow = Flow(f"s{mark}", f"t{mark}")
        file = one_flow_file(folder, flow, mark, source[1], target[1], f"{flow}.tasks.max = {slots}", *lines)
        return cls(file, [MirroredFlow(flow, source[0], target[0])])

    @classmethod
    def of_records(cls, folder: Path, mark: str, source: Broker, target: Broker, *lines: str, slots: int = 1) -> Self:
        """Return `one_flow` without ACLs, heartbeats and checkpoints."""
        addresses = [(broker.bootstrap, broker.bootstrap) for broker in (source, target)]
        return cls.one_flow(folder, mark, addresses[0], addresses[1], *COPY_ONLY, *lines, slots=slots)

    def __enter__(self) -> Self:
        self.topic_sync.start()
        self.data_plane.start()
        with starting(self):
            self.topic_sync.wait_ready()  # then the control topics are there
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is not None:
            show(self.topic_sync.log, self.data_plane.log, lines=40)
        self.topic_sync.kill()
        self.kill_data_plane()

    def said_last(self, lines: int = 12) -> str:
        """Return what the processes logged last, and whether they still run, for a message about what did not
        happen."""
        return "\n".join(service.said_last(lines) for service in (self.topic_sync, self.data_plane))

    @property
    def flow(self) -> MirroredFlow:
        """Return the only flow, or the first."""
        return next(iter(self.flows.values()))

    def kill_data_plane(self) -> None:
        """SIGKILL for the driver, and then for what did not end with it."""
        processes = self.processes() if self.data_plane.running else []
        self.data_plane.kill()
        for process in processes:
            if process.is_running():
                process.kill()
        psutil.wait_procs(processes, timeout=10)

    def processes(self) -> list[psutil.Process]:
        """Return all processes of the data plane: the driver first, then the JVM, its Python daemon, and the
        workers."""
        driver = psutil.Process(self.data_plane.pid)
        return [driver, *driver.children(recursive=True)]

    def jvm(self) -> psutil.Process:
        """Raises LookupError where there is none (any more)."""
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                if process.name() == "java":
                    return process
        raise LookupError("the data plane has no JVM")

    def workers(self) -> list[psutil.Process]:
        """Return Spark's Python workers: what its Python daemon forked."""
        workers: list[psutil.Process] = []
        for daemon in self._daemons():
            with suppress(psutil.NoSuchProcess):
                workers += daemon.children()
        return workers

    def kill_while_copying(
        self, traffic: Traffic, topic: str, *, within: float, while_away: Callable[[], object] = lambda: None
    ) -> None:
        """SIGKILL for a worker, then for the whole data plane, while records are written. `while_away` is called before
        it starts again. Returns when the only flow has copied more."""
        self.flow.wait_mirrored(topic, partitions=traffic.partitions, within=within)
        self.flow.wait_for_more(topic, 200, within=within)
        self.copying_worker(within=within).kill()
        traffic.wait_for_more(300, within=within)
        self.flow.wait_for_more(topic, 100, within=within)
        self.kill_data_plane()
        traffic.wait_for_more(300, within=within)
        while_away()
        self.data_plane.start()
        self.flow.wait_for_more(topic, 100, within=within)

    def copying_worker(self, *, within: float = COPIED_WITHIN) -> psutil.Process:
        """Return the one worker that holds connections to brokers, where there is one slot; waits until it does."""

        def connected() -> psutil.Process | None:
            connected_workers = [worker for worker in self.workers() if self.is_connected(worker)]
            return connected_workers[0] if len(connected_workers) == 1 else None

        return wait_until(connected, within=within, what="one worker copies")

    def is_connected(self, worker: psutil.Process) -> bool:
        """Return whether it holds connections to brokers. Spark keeps a spare worker for a minute, connected to its
        JVM."""
        brokers = {int(port) for port in re.findall(r"bootstrap\.servers = \S+:(\d+)", self.config.read_text())}
        return bool(brokers & set(ports_of(worker).values()))

    def _daemons(self) -> Iterator[psutil.Process]:
        for process in self.jvm().children():
            try:
                named = process.cmdline()
            except psutil.NoSuchProcess:
                continue  # a zombie, or gone: Spark replaces its daemon after a worker was killed
            if any(part.endswith(".pyspark_daemon") for part in named):
                yield process


def ports_of(process: psutil.Process) -> dict[int, int]:
    """Return established connections to others, as own port to remote port. Empty for a process that has ended."""
    try:
        connections = process.net_connections("tcp4")
    except psutil.NoSuchProcess:
        return {}
    return {c.laddr.port: c.raddr.port for c in connections if c.raddr and c.status == psutil.CONN_ESTABLISHED}
