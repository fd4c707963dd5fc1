"""`lockstep handback` of a flow that is killed at random moments before and after it is asked, with the real MM2 on the
other side.

What is handed back is what the target's log says: MM2 goes on behind the last record that stands there, whatever of
Lockstep was killed when. The seed is printed; set LOCKSTEP_SEED to strike at the same moments again.
"""

import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from lockstep_state.names import Flow
from tests.contract.turns import NumberedCopy, until
from tests.faults.numbered import Writer
from tests.support.broker import Broker
from tests.support.clusters import create_topic, end_offsets
from tests.support.control import read_so_far, source_offsets
from tests.support.mm2 import ConnectWorker
from tests.support.runs import LockstepRun
from tests.support.services import two_cluster_file

STRIKES = int(os.environ.get("LOCKSTEP_STRIKES", "3"))
PARTITIONS = 4
RATE = 1_500
MORE = 2_000
"""Records that are copied before the next turn: more than a second of them, so that rows lie behind."""
WORKERS = "workers"
HANDED_WITHIN_S = 240.0  # usual is 15; the data plane starts anew, three times where it is struck three times


@dataclass(slots=True)
class Struck:
    """A flow under `lockstep run`, and its source connector on a Connect worker beside the target."""

    flow: Flow
    file: Path
    copy: NumberedCopy
    worker: ConnectWorker
    dice: random.Random
    run: LockstepRun | None = None
    """From the first take-over on."""

    @property
    def connector(self) -> str:
        return f"{self.flow}.MirrorSourceConnector"

    # -- what stands where ---------------------------------------------------------------------------------------------

    def written_down(self) -> Mapping[int, int | None]:
        """MM2's own progress: where it goes on behind."""
        offsets = source_offsets(read_so_far(self.copy.b, f"{WORKERS}-offsets"), self.connector)
        return {number: offset for (topic, number), offset in offsets.items() if topic == self.copy.topic}

    def last_on_target(self) -> Mapping[int, int]:
        """Neither log has gaps, so the last record's offset there is its offset on the source."""
        return {number: end - 1 for number, end in end_offsets(self.copy.b, self.copy.remote).items()}

    # -- commands ------------------------------------------------------------------------------------------------------

    def begin(self, verb: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "lockstep_cli", verb, str(self.file), "--flow", str(self.flow), *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def end(self, command: subprocess.Popen[str]) -> tuple[int, str]:
        said, _ = command.communicate(timeout=HANDED_WITHIN_S)
        assert "Traceback" not in said, said
        return command.returncode, said

    def until_done(self, verb: str, *arguments: str, begun: subprocess.Popen[str] | None = None) -> list[str]:
        """As a person who asks again while it is refused. Returns why it was."""
        refused: list[str] = []
        deadline = time.monotonic() + HANDED_WITHIN_S
        while True:
            code, said = self.end(begun or self.begin(verb, *arguments))
            if code == 0:
                return refused
            refused.append(said.strip().splitlines()[-1])
            assert code in (1, 3), said
            assert time.monotonic() < deadline, refused
            begun = None
            time.sleep(0.5)

    # -- turns ---------------------------------------------------------------------------------------------------------

    def by_mm2(self) -> None:
        """MM2 goes on where it was left, and stops."""
        self.worker.resume_connector(self.connector)
        self.copy.wait_for_more(MORE)
        self.worker.stop_connector(self.connector)
        until(lambda: self.written_down() == self.last_on_target(), what="MM2 has written down how far it is")

    def taken_over(self) -> None:
        names = ("--offsets-topic", f"{WORKERS}-offsets", "--connector", self.connector, "--group", WORKERS)
        self.until_done("takeover", "--from", "connect", *names, "--connector-stopped", "--yes")
        if self.run is None:
            self.run = LockstepRun(self.file)
        self.until_done("resume")

    def end_all(self) -> None:
        if self.run is not None:
            self.run.kill()

    def handed_back_under(self, *kills: tuple[str, float]) -> list[str]:
        """Hand back, with kills so many seconds before (below 0) or after the command begins. Returns why it was
        refused in between."""
        asked, command = False, None
        began = time.monotonic() - min(0.0, *(at for _, at in kills))
        for kind, at in sorted((*kills, ("", 0.0)), key=lambda kill: kill[1]):
            time.sleep(max(0.0, began + at - time.monotonic()))
            if kind:
                self.kill(kind)
            elif not asked:
                asked, command = True, self.begin("handback", "--stop", "--yes", "--connector-stopped")
        return self.until_done("handback", "--stop", "--yes", "--connector-stopped", begun=command)

    def kill(self, kind: str) -> None:
        """SIGKILL for one process of that kind; while there is none, of another."""
        for each in (kind, "driver"):
            if found := list(self._victims(each)):
                with suppress(psutil.NoSuchProcess):
                    self.dice.choice(found).kill()
                return

    def _victims(self, kind: str) -> Iterator[psutil.Process]:
        for process in self.run.family() if self.run is not None else ():
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                words = process.cmdline()
                driver = any(word == "lockstep_data_plane" for word in words)
                daemon = process.name() != "java" and any(word.endswith(".daemon") for word in words)
                kinds = {"driver": driver, "JVM": process.name() == "java", "daemon": daemon}
                if process.is_running() and kinds[kind]:
                    yield process


KINDS = ("driver", "JVM", "daemon")


def moments(dice: random.Random) -> Sequence[tuple[str, float]]:
    """Before it, after it, or both: where the slots start anew, a second kill meets them as they resume."""
    before = (dice.choice(KINDS), dice.uniform(-12.0, 0.0))
    after = (dice.choice(KINDS), dice.uniform(0.0, 8.0))
    return dice.choice(([before], [after], [before, after]))


@pytest.mark.long
@pytest.mark.timeout(2400)
def test_handback_after_kills_lets_mm2_continue_behind_the_last_record(
    tmp_path: Path, brokers: tuple[Broker, Broker]
) -> None:
    seed = int(os.environ.get("LOCKSTEP_SEED") or random.randrange(1 << 30))
    dice, mark = random.Random(seed), uuid.uuid4().hex[:6]
    say: Callable[[str], None] = print
    say(f"seed {seed}")
    a, b = (broker.bootstrap for broker in brokers)
    flow = Flow(f"a{mark}", f"b{mark}")
    file = two_cluster_file(
        tmp_path,
        (flow.source, a),
        (flow.target, b),
        f"{flow}.enabled = true",
        f"{flow}.topics = {mark}-.*",
        "emit.heartbeats.enabled = false",
        "emit.checkpoints.enabled = false",
        "sync.topic.acls.enabled = false",
        "tasks.max = 2",
        "offset-syncs.topic.replication.factor = 1",
    )
    topic = create_topic(a, f"{mark}-numbers", partitions=PARTITIONS)
    copy = NumberedCopy(a, b, topic, f"{flow.source}.{topic}")
    folder = tmp_path / "connect"
    folder.mkdir()
    with ExitStack() as all_of_it:
        worker = all_of_it.enter_context(ConnectWorker(folder, b, WORKERS))
        writer = Writer(a, topic, partitions=PARTITIONS, rate=RATE, log=tmp_path / "writer.log")
        all_of_it.enter_context(writer)
        settings = {
            "source.cluster.alias": flow.source,
            "target.cluster.alias": flow.target,
            "source.cluster.bootstrap.servers": a,
            "target.cluster.bootstrap.servers": b,
            "topics": topic,
            "tasks.max": "2",
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "sync.topic.acls.enabled": "false",
        }
        struck = Struck(flow, file, copy, worker, dice)
        all_of_it.callback(struck.end_all)
        worker.run(struck.connector, "MirrorSourceConnector", settings)
        copy.wait_for_more(MORE)
        worker.stop_connector(struck.connector)
        until(lambda: struck.written_down() == struck.last_on_target(), what="MM2 has written down how far it is")
        for strike in range(STRIKES):
            struck.taken_over()
            copy.wait_for_more(MORE)
            kills = moments(dice)
            refused = struck.handed_back_under(*kills)
            back, last = struck.written_down(), struck.last_on_target()
            at = ", ".join(f"{kind} {second:+.1f} s" for kind, second in kills)
            say(f"strike {strike + 1}, kill -9 of {at}: handed back {back}; refused {refused}")
            assert back == last, f"MM2 goes on behind {back}, the last records are {last}: {copy.counted()}"
            struck.by_mm2()
        count = copy.counted()
        say(f"{STRIKES} strikes: {count}")
        assert count.equal, count
