"""The course of events: clusters, traffic and mirroring start, a group moves, traffic ends, everything is compared."""

import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from lockstep_state.codecs.mm2_codec import Checkpoint
from tests.support import clusters, processes
from tests.support.acls import acls_of
from tests.support.broker import Broker, started
from tests.support.topic_comparison import compare
from tools.demo import scene, verdict
from tools.demo.actors import Actor, GroupReader, Probe, Traffic
from tools.demo.scene import FLOWS, GROUP, OFFSET_LAG_MAX, READ, SHOP, remote
from tools.demo.screen import Snapshot
from tools.demo.verdict import Finding, GroupMove
from tools.demo.watch import Watch

CONSOLE = re.compile(r"the console is at (http\S+)")

SNAPSHOT_EVERY_SECONDS = 0.25
FIRST_RECORD_WITHIN = 300.0
OFFSETS_SETTLED_WITHIN = 60.0
SETTLED_AFTER_SECONDS = 3.0
"""Three rounds of checkpoints and of group sync, whose intervals are a second here."""

CAUGHT_UP_WITHIN = 90.0
ACLS_WITHIN = 15.0
UP_TO_DATE = OFFSET_LAG_MAX
"""Records, of all topics together, that may be on their way while traffic goes on."""

LEAST_SECONDS_ON_B = 3.0
"""Traffic goes on at least so long after the move, so that the group on B also reads what was written after it."""

LOCKSTEP_ENDS_WITHIN = 10.0

Show = Callable[[Snapshot], None]
Say = Callable[[str], None]


class DemoFailed(Exception):
    """The demo cannot go on; the message is one sentence."""


class Play:
    """One performance. Use it as a context manager: whatever happens, nothing is left running after it.

    `folder` gets mm2.properties and lockstep.log. Attributes that end with `_s` are seconds since the demo began.
    """

    def __init__(self, folder: Path, *, show: Show, say: Say) -> None:
        self.log = folder / "lockstep.log"
        self.file = folder / "mm2.properties"
        self.clusters_up_s = self.first_record_s = 0.0
        self.bootstrap: dict[str, str] = {}
        self.latencies: list[float] = []
        self._show, self._say = show, say
        self._began = time.monotonic()
        self._ends = ExitStack()
        self._phase = "starting"
        self._last_synced: tuple[dict[int, int], dict[int, Checkpoint]] = ({}, {})
        self._synced_since = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def perform(self, seconds: float) -> list[Finding]:
        """Play it all. Raises DemoFailed, and what clients raise when a cluster does not answer."""
        self._start_clusters()
        traffic = {alias: Traffic(alias, address) for alias, address in self.bootstrap.items()}
        self._group = on_a = GroupReader(self.bootstrap["A"], READ)
        self._begin(*traffic.values(), on_a)
        self._start_lockstep()
        self._watch = Watch(self.bootstrap)
        self._ends.callback(self._watch.close)
        probes = [Probe(self.bootstrap[f.target], [remote(f, t.name) for t in SHOP[f.source]]) for f in FLOWS]
        self._begin(*probes)
        self._await_first_records()
        self._phase = "traffic on both clusters, the copies catch up with what was written before"
        self._until(self._up_to_date, CAUGHT_UP_WITHIN, "the copies catch up")
        for probe in probes:
            probe.measure_from = time.time() * 1000

        ends_at = time.monotonic() + seconds
        self._phase = "traffic on both clusters, the group reads on A"
        self._go_on_until(time.monotonic() + seconds / 2)
        # A copy that runs behind passes the group's position in a leap, and MM2's syncs translate no closer than it.
        self._until(self._up_to_date, CAUGHT_UP_WITHIN, "the copies keep up")
        on_a.stop()
        self._phase = "traffic goes on, the group has left A and waits for its offsets on B"
        self._until(lambda: self._offsets_settled(on_a), OFFSETS_SETTLED_WITHIN, "the group's offsets settle on B")
        self._group = on_b = GroupReader(self.bootstrap["B"], remote(FLOWS[0], READ))
        self._begin(on_b)
        self._phase = "traffic goes on, the group reads on B"
        self._go_on_until(max(ends_at, time.monotonic() + LEAST_SECONDS_ON_B))

        for writing in traffic.values():
            writing.stop()
        written = Counter({topic: count for writing in traffic.values() for topic, count in writing.written.items()})
        self._phase = "traffic has ended, the last records arrive"
        self._until(lambda: self._caught_up(written), CAUGHT_UP_WITHIN, "the lag is zero")
        move = GroupMove(on_a.read, on_b.read)
        # What is still missing when the time is over is for the verdict to say.
        self._happens(lambda: not move.skipped(range(written[READ])), CAUGHT_UP_WITHIN)
        on_b.stop()
        for probe in probes:
            probe.stop()
        self.latencies = [latency for probe in probes for latency in probe.milliseconds]
        refused = [line for writing in traffic.values() for line in writing.refused]
        return [verdict.judge_traffic(refused), *self._compare(written), *self._judge_the_rest(move, written[READ])]

    @property
    def console(self) -> str:
        """Return the address of the console, or "" before it is there."""
        found = CONSOLE.search(self.log.read_text(errors="replace")) if self.log.exists() else None
        return found.group(1) if found else ""

    def end_lockstep(self) -> Finding:
        """End the run as `kill` would, and return whether it ended in time."""
        began = time.monotonic()
        exit_code = processes.end(self._lockstep, within=LOCKSTEP_ENDS_WITHIN + 2)
        duration_s = time.monotonic() - began
        held = exit_code == 0 and duration_s <= LOCKSTEP_ENDS_WITHIN
        return Finding("lockstep run ends cleanly within 10 s", held, f"exit code {exit_code} after {duration_s:.1f} s")

    def _start_clusters(self) -> None:
        self._brokers = {alias: Broker(alias, authorizer=True) for alias in SHOP}
        self._ends.enter_context(started(*self._brokers.values()))
        self.bootstrap = {alias: broker.bootstrap for alias, broker in self._brokers.items()}
        self._admin = AdminClient(scene.client(self.bootstrap["B"]))  # kept: an answer never comes without its client
        for broker in self._brokers.values():
            scene.create(broker)
        self.clusters_up_s = self._elapsed_s()
        addresses = ", ".join(f"{alias} at {address}" for alias, address in self.bootstrap.items())
        self._say(f"clusters are up after {self.clusters_up_s:.1f} s: {addresses}")

    def _start_lockstep(self) -> None:
        self.file.write_text(scene.properties(self.bootstrap))
        command = [sys.executable, "-m", "lockstep_cli", "run", str(self.file), "--console"]
        self._lockstep = processes.spawn(command, output=self.log)
        self._ends.callback(processes.end, self._lockstep, within=LOCKSTEP_ENDS_WITHIN + 2)
        self._say(f"lockstep run {self.file}")

    def _begin(self, *actors: Actor) -> None:
        for actor in actors:
            actor.start()
            self._ends.callback(actor.stop)

    def _await_first_records(self) -> None:
        self._phase = "waiting for the first mirrored record"

        def both_flows_move() -> bool:
            moving = {line.flow for line in self._seen.topics if line.target_end > 0}
            if moving and not self.first_record_s:
                self.first_record_s = self._elapsed_s()
                self._say(f"the first mirrored record is there {self.first_record_s:.1f} s after the demo began")
                if self.console:
                    self._say(f"the console is at {self.console}")
            return len(moving) == len(FLOWS)

        self._until(both_flows_move, FIRST_RECORD_WITHIN, "both flows have mirrored a record")

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._began

    def _go_on_until(self, moment: float) -> None:
        self._happens(lambda: time.monotonic() >= moment, within=moment - time.monotonic() + 1)

    def _until(self, condition: Callable[[], bool], within: float, what: str) -> None:
        if not self._happens(condition, within):
            raise DemoFailed(f"not within {within:g} s: {what}")

    def _happens(self, condition: Callable[[], bool], within: float) -> bool:
        """Show what is going on until `condition` holds. Return whether it held in time."""
        deadline = time.monotonic() + within
        while True:
            began = time.monotonic()
            if self._lockstep.poll() is not None:
                raise DemoFailed(f"lockstep run has ended with exit code {self._lockstep.returncode}")
            self._read_status()
            if condition():
                return True
            if began >= deadline:
                return False
            time.sleep(max(0.0, began + SNAPSHOT_EVERY_SECONDS - time.monotonic()))

    def _read_status(self) -> None:
        topics, flows = self._watch.read_status()
        where = "B" if self._group.topic != READ else "A"
        group = f"group {GROUP}: {self._group.count:,} records read on {where} ({self._group.topic})"
        self._seen = Snapshot(self._elapsed_s(), self._phase, group, topics, flows)
        self._show(self._seen)

    def _offsets_settled(self, on_a: GroupReader) -> bool:
        """Return whether everything the group read on A is on B, and its offsets there have stood still since for some
        rounds.

        Before the copy has passed the group's position, its translation can still come closer.
        """
        checkpoints = self._watch.checkpoints(FLOWS[0], GROUP)
        if any(self._watch.copied_to(FLOWS[0], READ, p) < offset - 1 for p, offset in on_a.committed.items()):
            return False
        answers = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)])
        positions = answers[GROUP].result(10).topic_partitions or []
        synced = {tp.partition: tp.offset for tp in positions if tp.topic == remote(FLOWS[0], READ)}
        # The last checkpoint need not be of the last position: MM2 sends none that would translate to an earlier place.
        if (synced, checkpoints) != self._last_synced:
            self._last_synced, self._synced_since = (synced, checkpoints), time.monotonic()
        if time.monotonic() - self._synced_since < SETTLED_AFTER_SECONDS:
            return False
        return all(p in checkpoints and synced.get(p, -1) >= checkpoints[p].downstream for p in on_a.committed)

    def _up_to_date(self) -> bool:
        return self._seen.lag_records <= UP_TO_DATE

    def _caught_up(self, written: Counter[str]) -> bool:
        lines = self._seen.topics
        return self._seen.lag_records == 0 and all(line.target_end >= written[line.topic] for line in lines)

    def _compare(self, written: Counter[str]) -> list[Finding]:
        findings = []
        for flow in FLOWS:
            for topic in SHOP[flow.source]:
                sent = clusters.read_topic(self.bootstrap[flow.source], topic.name, isolation="read_uncommitted")
                copy = remote(flow, topic.name)
                arrived = clusters.read_topic(self.bootstrap[flow.target], copy, isolation="read_uncommitted")
                comparison = compare(sent, arrived)
                findings.append(verdict.judge_comparison(str(flow), topic.name, written[topic.name], comparison))
        return findings

    def _judge_the_rest(self, move: GroupMove, written: int) -> list[Finding]:
        self._happens(lambda: self._judge_acls().held, ACLS_WITHIN)
        beats = {line.flow: line.heartbeat_age_ms for line in self._seen.flows}
        return [*verdict.judge_group(move, written), self._judge_acls(), verdict.judge_heartbeats(beats)]

    def _judge_acls(self) -> Finding:
        return verdict.judge_acls(acls_of(self._brokers["B"], remote(FLOWS[0], READ)))
