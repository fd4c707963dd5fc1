"""Each command that waits for a state, with kill -9 at random moments before, while and after it is asked, under load:
the state is reached, or the refusal says what to do, and doing it helps.

The seed is printed; SEED gives the same commands, kills and moments again, ROUNDS says how many commands are struck.
"""

import json
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from lockstep_state.names import state_topic
from lockstep_state.rows.state_rows import DesiredState, SlotStatus, decode_row
from tests.faults.counting import Count, count
from tests.faults.numbered import Writer, read_numbers
from tests.support.broker import Broker
from tests.support.clusters import create_topic, end_offsets, read_topic
from tests.support.eventually import wait_until
from tests.support.mirror import SOURCE_CONNECTOR, Mirror, MirroredFlow

pytestmark = pytest.mark.long

T = TypeVar("T")
PARTITIONS, SLOTS, RATE = 4, 2, 1_000
ROUNDS = int(os.environ.get("ROUNDS") or 9)
WITHIN_S = 180.0  # usual is 20: the data plane starts anew, twice where it is struck twice
STAYS_S = 1.5
WHOLE = "the data plane"
KINDS = ("slot's worker", "JVM", "driver", "topic-sync", WHOLE)


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)  # noqa: T201 - pytest shows it with the failure


@dataclass(frozen=True, slots=True)
class Stretch:
    """From `at` on, an offset of the copy, stand the records of the source from `source` on, each once and in order."""

    at: int
    source: int


@dataclass(slots=True)
class Struck:
    """A mirror whose commands are asked while parts of it are killed; whatever has ended is started again."""

    mirror: Mirror
    topic: str
    dice: random.Random
    stretches: dict[int, list[Stretch]] = field(
        default_factory=lambda: {number: [Stretch(0, 0)] for number in range(PARTITIONS)}
    )
    """Of each partition. Each offset that is altered or reset begins one."""

    @property
    def flow(self) -> MirroredFlow:
        return self.mirror.flow

    # -- kills and commands --------------------------------------------------------------------------------------------

    def supervise(self) -> None:
        for service in (self.mirror.topic_sync, self.mirror.data_plane):
            if not service.running:
                service.start()

    def until(self, condition: Callable[[], T | None], what: str) -> T:
        def supervised() -> T | None:
            self.supervise()
            return condition()

        return wait_until(supervised, within=WITHIN_S, every=0.25, what=what)

    def kill(self, kind: str) -> None:
        """One process of that kind; where there is none now, the whole data plane."""
        victims = self._victims(kind)
        say(f"  kill -9 of {kind}" if victims or kind == WHOLE else f"  kill -9 of {WHOLE}, for there is no {kind}")
        if victims:
            with suppress(psutil.NoSuchProcess):
                self.dice.choice(victims).kill()
        else:
            self.mirror.kill_data_plane()

    def _victims(self, kind: str) -> Sequence[psutil.Process]:
        with suppress(psutil.NoSuchProcess, LookupError):
            match kind:
                case "slot's worker":
                    return [worker for worker in self.mirror.workers() if self.mirror.is_connected(worker)]
                case "JVM":
                    return [self.mirror.jvm()]
                case "driver":
                    return [psutil.Process(self.mirror.data_plane.pid)]
                case "topic-sync":
                    return [psutil.Process(self.mirror.topic_sync.pid)]
        return []

    def begin(self, verb: str, *arguments: str) -> subprocess.Popen[str]:
        """`offsets VERB` of the source connector, or VERB of what `arguments` name."""
        say(f"  {verb} {' '.join(arguments)}")
        words = [*verb.split(), str(self.mirror.config), *arguments]
        command = [sys.executable, "-m", "lockstep_cli", *words, "--flow", str(self.flow)]
        command += ["--timeout", f"{WITHIN_S:g}", "--output", "json"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def end(self, command: subprocess.Popen[str]) -> str:
        """What it printed. As a person who asks again where it says so, and nowhere else."""
        deadline = time.monotonic() + WITHIN_S
        while True:
            while command.poll() is None:
                self.supervise()
                time.sleep(0.1)
            said, _ = command.communicate()
            if command.returncode == 0:
                return said
            assert command.returncode == 1, said
            assert "ask again" in said, said
            assert time.monotonic() < deadline, said
            say(f"  refused: {said.strip()}")
            assert isinstance(command.args, list)
            command = subprocess.Popen(command.args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def ask(self, verb: str, *arguments: str) -> str:
        return self.end(self.begin(verb, *arguments))

    def ask_under_kills(self, verb: str, *arguments: str, behind: str = "") -> str:
        """`behind`: what is asked for shortly before, and answered when this is asked for."""
        running: list[subprocess.Popen[str]] = []

        def ask() -> None:
            for earlier in running:
                self.end(earlier)
            running[:] = [self.begin(verb, *arguments)]

        steps: list[tuple[float, Callable[[], None]]] = [(0.0, ask)]
        steps += [(at, partial(self.kill, kind)) for kind, at in self._moments()]
        if behind:
            earlier = -self.dice.uniform(0.0, 4.0)
            steps.append((earlier, lambda: running.append(self.begin(behind, SOURCE_CONNECTOR))))
        steps.sort(key=lambda step: step[0])
        began = time.monotonic() - steps[0][0]
        for at, step in steps:
            while time.monotonic() < began + at:
                self.supervise()
                time.sleep(0.05)
            step()
        return self.end(running[0])

    def _moments(self) -> Sequence[tuple[str, float]]:
        """What is killed so many seconds before or after a command begins, or both: the second kill may meet what is
        only starting. Most that come after it meet it while it is carried out."""
        before, after = -self.dice.uniform(0.0, 8.0), self.dice.triangular(0.0, 8.0, 1.5)
        moments = self.dice.choice(([before], [after], [before, after]))
        return list(zip(self.dice.sample(KINDS, len(moments)), moments, strict=True))

    # -- what is so ----------------------------------------------------------------------------------------------------

    def ends(self) -> Mapping[int, int]:
        return end_offsets(self.flow.target, self.flow.remote(self.topic))

    def copied(self) -> Mapping[int, int]:
        """By the target's log, the source's offset of each partition's last record there. Neither has a gap."""
        last = {number: stretches[-1] for number, stretches in self.stretches.items()}
        return {number: last[number].source + end - last[number].at - 1 for number, end in self.ends().items()}

    def rests(self, word: str) -> None:
        """Every row says so, and where the copy ends; and there it stays."""

        def all_say_so() -> Mapping[int, int] | None:
            phases = {row.phase for row in self.flow.progress(self.topic).values()}
            assert phases == {word}, phases
            located = self.flow.located(self.topic)
            assert located == self.copied(), located
            return located

        ends_at = self.until(all_say_so, what=f"all of it is {word}, and says where")
        if word == "stopped":
            self.until(self.no_slot_runs, what="every slot has ended")
        time.sleep(STAYS_S)
        assert self.copied() == ends_at, f"nothing is copied while it is {word}"

    def no_slot_runs(self) -> bool | None:
        assert (started := [row.slot for row in self.flow.rows(SlotStatus) if row.phase == "started"]) == [], started
        return True

    def goes_on(self) -> None:
        before = self.ends()

        def each_grows() -> bool | None:
            rows = self.flow.progress(self.topic).values()
            assert {(row.phase, row.located, row.begins) for row in rows} == {("copying", False, "")}, rows
            return all(end > before[number] for number, end in self.ends().items()) or None

        self.until(each_grows, what="each partition is copied on")

    def restart_of(self, scope: str) -> str:
        return next((row.restart for row in self.flow.rows(DesiredState) if row.scope == scope), "")

    def begun_anew(self, scope: str, asked_before: str) -> set[int] | None:
        """The slots that spoke first in a new run behind the row that asks for it, in the log of all rows."""
        runs: set[str] = set()
        found: set[int] | None = None
        for record in read_topic(self.flow.target, state_topic(self.flow.flow)):
            row = decode_row(record.key or b"", record.value)
            if isinstance(row, DesiredState) and row.scope == scope and row.restart not in ("", asked_before):
                found = set() if found is None else found
            elif isinstance(row, SlotStatus) and row.phase == "started" and row.run not in runs:
                runs.add(row.run)
                if found is not None:
                    found.add(row.slot)
        return found

    def listed(self, said: str) -> Mapping[int, int]:
        """Of our topic; heartbeats that another test left on the source are mirrored too."""
        entries = [(offset["partition"], offset["offset"]) for offset in json.loads(said)["offsets"]]
        others = {source_partition["topic"] for source_partition, _ in entries} - {self.topic}
        assert all(topic.endswith("heartbeats") for topic in others), said
        return {
            source_partition["partition"]: offset["offset"]
            for source_partition, offset in entries
            if source_partition["topic"] == self.topic
        }

    # -- rounds --------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        self.ask_under_kills("stop", SOURCE_CONNECTOR)
        self.rests("stopped")

    def pause(self) -> None:
        self.ask_under_kills("pause", SOURCE_CONNECTOR)
        self.rests("paused")

    def restart_at_rest(self) -> None:
        verb, word = self.dice.choice((("stop", "stopped"), ("pause", "paused")))
        self.ask_under_kills("restart", SOURCE_CONNECTOR, behind=verb)
        self.rests(word)

    def resume(self) -> None:
        self.ask_under_kills("resume", SOURCE_CONNECTOR, behind=self.dice.choice(("stop", "pause")))

    def restart_connector(self) -> None:
        self._restart(SOURCE_CONNECTOR, set(range(SLOTS)))

    def restart_slot(self) -> None:
        slot = self.dice.randrange(SLOTS)
        self._restart(f"slot:{slot}", {slot})

    def _restart(self, scope: str, slots: set[int]) -> None:
        asked_before = self.restart_of(scope)
        self.ask_under_kills("restart", scope)
        self.until(lambda: (self.begun_anew(scope, asked_before) or set()) >= slots or None, what=f"{scope} is new")

    def offsets_list(self) -> None:
        said = self.ask_under_kills("offsets list", behind="stop")
        self.rests("stopped")
        assert self.listed(said) == self.copied()

    def offsets_alter(self) -> None:
        number = self.dice.randrange(PARTITIONS)
        offset = self.dice.randrange(end_offsets(self.flow.source, self.topic)[number])
        which = ("--topic", self.topic, "--partition", str(number), "--offset", str(offset))
        self.ask_under_kills("offsets alter", *which, behind="stop")
        self._begins_at({number: offset}, "altered")

    def offsets_reset(self) -> None:
        self.ask_under_kills("offsets reset", behind="stop")
        self._begins_at(dict.fromkeys(range(PARTITIONS), -1), "reset")

    def _begins_at(self, altered: Mapping[int, int], word: str) -> None:
        """These begin behind these offsets, and no record of before comes in; the others say where they end."""

        def all_say_so() -> Mapping[int, int] | None:
            rows, copied = self.flow.progress(self.topic), self.copied()
            said = {number: (row.upstream, row.begins, row.located) for number, row in rows.items()}
            others = {number: (offset, "", True) for number, offset in copied.items()}
            assert said == others | {number: (offset, word, False) for number, offset in altered.items()}, said
            return copied

        ends_at = self.until(all_say_so, what=f"{altered} is {word}")
        self.until(self.no_slot_runs, what="every slot has ended")
        listed_offsets = {number: offset for number, offset in {**ends_at, **altered}.items() if offset >= 0}
        assert self.listed(self.ask("offsets list")) == listed_offsets
        theirs = self.flow.mm2_progress(self.topic)
        assert [theirs.get(number) for number in altered] == [listed_offsets.get(number) for number in altered], theirs
        time.sleep(STAYS_S)
        assert self.copied() == ends_at, "nothing is copied while it is stopped"
        for number, end in self.ends().items():
            if number in altered:
                self.stretches[number].append(Stretch(end, altered[number] + 1))

    def rounds(self) -> Iterator[Callable[[], None]]:
        """Each command once, in random order, and again."""
        while True:
            each = [self.stop, self.pause, self.resume, self.restart_connector, self.restart_slot]
            each += [self.restart_at_rest, self.offsets_list, self.offsets_alter, self.offsets_reset]
            yield from self.dice.sample(each, len(each))

    def counted(self) -> Count:
        """Once all of the source is copied. What is altered or reset is copied again, or left out, as it was told."""

        def complete() -> bool | None:
            return self.copied() == {n: end - 1 for n, end in end_offsets(self.flow.source, self.topic).items()} or None

        self.until(complete, what="all of it is copied")
        source = read_numbers(self.flow.source, self.topic)
        wanted: dict[int, list[int]] = {}
        for number, stretches in self.stretches.items():
            last = stretches[-1]
            end = Stretch(last.at + len(source[number]) - last.source, -1)
            parts = [source[number][one.source :][: up_to.at - one.at] for one, up_to in pairwise([*stretches, end])]
            wanted[number] = [record for part in parts for record in part]
        return count(wanted, read_numbers(self.flow.target, self.flow.remote(self.topic)))


@pytest.mark.timeout(3600)
def test_command_reaches_its_state_or_names_a_remedy_under_kills(
    tmp_path: Path, broker_a: Broker, broker_b: Broker
) -> None:
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1_000_000))
    say(f"SEED={seed} ROUNDS={ROUNDS}")
    mark = uuid.uuid4().hex[:6]
    with Mirror.of_records(tmp_path, mark, broker_a, broker_b, slots=SLOTS) as mirror:
        flow = mirror.flow
        topic = create_topic(flow.source, f"{mark}-numbers", partitions=PARTITIONS)
        struck = Struck(mirror, topic, random.Random(seed))
        with Writer(flow.source, topic, partitions=PARTITIONS, rate=RATE, log=tmp_path / "writer.log"):
            wait_until(lambda: len(flow.progress(topic)) == PARTITIONS, within=90, every=0.1)
            for number, strike in zip(range(ROUNDS), struck.rounds(), strict=False):
                say(f"round {number + 1}: {strike.__name__}")
                struck.goes_on()
                strike()
                struck.ask("resume", SOURCE_CONNECTOR)
            struck.goes_on()
        count = struck.counted()
        say(f"{ROUNDS} commands: {count}")
        assert count.equal, count
        assert flow.events("PartitionHalted") == flow.events("GapFound") == []
