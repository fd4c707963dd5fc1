"""The runbook `docs/guides/disaster-recovery.md` is carried out from its first block to its last, on two clusters.

The clusters are set up as `docs/guides/switchover.md` says."""

import json
import os
import pty
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from tests.support.application import Application
from tests.support.broker import Broker, two_brokers
from tests.support.clusters import admin, create_topic, read_topic
from tests.support.eventually import wait_until
from tests.support.runs import LockstepRun

pytestmark = pytest.mark.long

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
SET_UP = re.compile(r"^## Set it up\n(.*?)^## ", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^ *```(properties|sh)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
TOPICS, PARTITIONS, WITHIN = ("orders", "payments"), 3, 180.0
COMMAND_WITHIN = 240.0

ONE_BROKER = """tasks.max = 1
offset.storage.replication.factor = 1
heartbeats.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
"""
"""What the file needs beyond the guide's because each cluster of the test is one broker."""

Said = subprocess.CompletedProcess[str]


def blocks() -> list[tuple[str, str]]:
    """Language and text of each block that is to be carried out, in order."""
    (set_up,) = SET_UP.findall((GUIDES / "switchover.md").read_text("utf-8"))
    text = set_up + (GUIDES / "disaster-recovery.md").read_text("utf-8")
    return [(language, textwrap.dedent(block).strip()) for language, block in BLOCK.findall(text)]


class Day:
    """The operator who follows the guide, and the application between the clusters."""

    def __init__(self, folder: Path, a: Broker, b: Broker) -> None:
        self.folder, self.a, self.b = folder, a, b
        self.app = Application("billing", TOPICS, partitions=PARTITIONS, rate=100.0)
        self.run: LockstepRun | None = None
        self.loss = 0
        self.failed_over: dict[str, Any] = {}

    def end(self) -> None:
        if self.run is not None:
            self.run.kill()

    # -- commands ------------------------------------------------------------------------------------------------------

    def lines(self, text: str) -> list[str]:
        """The commands of a block, with the addresses of these clusters."""
        for host, broker in (("b1.example.org:9092", self.b), ("a1.example.org:9092", self.a)):
            text = text.replace(host, broker.bootstrap)
        return text.splitlines()

    def say(self, line: str, *more: str, codes: tuple[int, ...] = (0,)) -> Said:
        """Run a `lockstep` command of the guide; a question is answered with y, on a terminal."""
        name, *arguments = shlex.split(line)
        assert name == "lockstep", line
        keyboard, terminal = pty.openpty()
        try:
            os.write(keyboard, b"y\n")
            ran = subprocess.run(
                [sys.executable, "-m", "lockstep_cli", *arguments, *more],
                cwd=self.folder,
                stdin=terminal,
                capture_output=True,
                text=True,
                timeout=COMMAND_WITHIN,
                check=False,
            )
        finally:
            os.close(keyboard)
            os.close(terminal)
        assert "Traceback" not in ran.stderr, ran.stderr
        assert ran.returncode in codes, f"{line}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran

    def describe(self, line: str) -> dict[tuple[str, int], int]:
        """What `kafka-consumer-groups.sh --describe` prints of a group: its offset in each partition."""
        name, *arguments = shlex.split(line)
        values = [one for one in arguments if one != "--describe"]
        options = dict(zip(values[::2], values[1::2], strict=True))
        assert name == "kafka-consumer-groups.sh", line
        assert options.keys() == {"--bootstrap-server", "--group"}, line
        group = options["--group"]
        client = admin(options["--bootstrap-server"])  # its answers come while it is referred to
        asked = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        offsets = asked[group].result(30).topic_partitions
        return {(partition.topic, partition.partition): partition.offset for partition in offsets}

    def evidence(self, verb: str, flow: str) -> dict[str, Any]:
        """The newest evidence of a command, which has its page beside it."""
        path = max(self.folder.glob(f"{verb}-{flow}-*.json"))
        assert path.with_suffix(".md").exists()
        evidence: dict[str, Any] = json.loads(path.read_text())
        return evidence

    def until_fine(self, line: str, words: str = "") -> None:
        """Until `status` ends with exit code 0, and says these words."""

        def is_fine() -> bool:
            ran = self.say(line, codes=(0, 1))
            assert ran.returncode == 0, ran.stdout + ran.stderr
            assert words in ran.stdout, ran.stdout
            return True

        wait_until(is_fine, within=WITHIN, every=1.0, what=line)

    def copied(self) -> set[str]:
        """What B has of the records that were written on A."""
        return {
            (record.value or b"").decode() for name in TOPICS for record in read_topic(self.b.bootstrap, f"A.{name}")
        }

    # -- blocks, in the order of the guide ----

    def write_file(self, text: str) -> None:
        text = text.replace("a1.example.org:9092, a2.example.org:9092", self.a.bootstrap)
        text = text.replace("b1.example.org:9092, b2.example.org:9092", self.b.bootstrap)
        assert "example.org" not in text
        assert "replication.factor = 3" in text
        text = text.replace("replication.factor = 3", "replication.factor = 1")
        (self.folder / "mm2.properties").write_text(f"{text}\n{ONE_BROKER}")

    def start(self, text: str) -> None:
        check, run = self.lines(text)
        assert "A->B, B->A enabled" in self.say(check).stdout
        assert run == "lockstep run mm2.properties"
        for name in TOPICS:
            create_topic(self.a.bootstrap, name, partitions=PARTITIONS)
        self.run = LockstepRun(self.folder / "mm2.properties")
        self.app.start(self.a.bootstrap, [*TOPICS, *(f"B.{name}" for name in TOPICS)])
        self.until_fine("lockstep status mm2.properties --flow 'A->B'", "ready to switch: yes")

    def drill(self, text: str) -> None:
        (line,) = self.lines(text)
        self.say(line)
        evidence = self.evidence("switchover", "A-B")
        assert (evidence["phase"], evidence["drill"], evidence["late"]) == ("done", True, 0), evidence
        self.app.go_on(within=WITHIN)
        self.until_fine("lockstep status mm2.properties --flow 'A->B'", "ready to switch: yes")

    def check(self, text: str) -> None:
        self.app.stop()
        self.a.kill()
        flow, groups = self.lines(text)
        said = self.say(flow, codes=(1,)).stdout
        assert "ready to switch: no" in said, said
        assert "in trouble" in said, said
        assert "billing" in self.say(groups, codes=(1,)).stdout

    def see_the_loss(self, text: str) -> None:
        (line,) = self.lines(text)
        ran = self.say(line, codes=(0, 1))
        named = re.findall(r"Say --allow-data-loss (\d+)", ran.stderr)
        assert len(named) == ran.returncode, ran.stderr
        self.loss = int(named[0]) if named else 0

    def fail_over(self, text: str) -> None:
        (line,) = self.lines(text)
        assert "--allow-data-loss 12" in line
        self.say(line.replace("--allow-data-loss 12", f"--allow-data-loss {self.loss}"))
        self.failed_over = self.evidence("failover", "A-B")
        assert self.failed_over["phase"] == "done"
        missing = set(self.app.written) - self.copied()
        assert self.failed_over["lost"] <= min(self.loss, len(missing)), (self.failed_over, len(missing))

    def check_groups(self, text: str) -> None:
        groups, services = self.lines(text)
        offsets = self.describe(groups)
        assert all(offsets[f"A.{name}", number] >= 0 for name in TOPICS for number in range(PARTITIONS)), offsets
        assert "stopped" in self.say(services, codes=(1,)).stdout
        for name in TOPICS:
            create_topic(self.b.bootstrap, name, partitions=PARTITIONS)
        self.app.start(self.b.bootstrap, [*TOPICS, *(f"A.{name}" for name in TOPICS)])

    def see_work(self, text: str) -> None:
        (line,) = self.lines(text)
        self.app.go_on(within=WITHIN)
        where = {(name, number) for name in TOPICS for number in range(PARTITIONS)}
        wait_until(lambda: where <= self.describe(line).keys(), within=WITHIN, every=1.0, what="the group reads on B")

    def bring_back(self, text: str) -> None:
        (line,) = self.lines(text)
        self.a.start()
        self.until_fine(line)

    def see_what_prevents(self, text: str) -> None:
        (line,) = self.lines(text)
        ran = self.say(line, "--allow-soon", codes=(0, 1))  # this day has less than ten minutes
        missing = set(self.app.written) - self.copied() - self.written_on_b()
        assert ("Say --diverged copy" in ran.stderr) is bool(missing), (ran.stderr, len(missing))
        assert ran.returncode == bool(missing), ran.stderr

    def written_on_b(self) -> set[str]:
        return {(record.value or b"").decode() for name in TOPICS for record in read_topic(self.b.bootstrap, name)}

    def fail_back(self, text: str) -> None:
        (line,) = self.lines(text)
        self.app.stop()
        self.say(line, "--allow-soon")
        evidence = self.evidence("failback", "B-A")
        assert (evidence["phase"], evidence["lost"], evidence["late"]) == ("done", 0, 0), evidence
        assert set(self.app.written) <= self.copied() | self.written_on_b(), "what A had alone is on B"
        self.app.start(self.a.bootstrap, [*TOPICS, *(f"B.{name}" for name in TOPICS)])
        self.app.go_on(within=WITHIN)

    def be_ready(self, text: str) -> None:
        resume, status = self.lines(text)
        self.say(resume)
        self.until_fine(status, "ready to switch: yes")
        self.app.stop_when_read()


HANDLERS: Mapping[str, Callable[[Day, str], None]] = {
    "clusters = A, B": Day.write_file,
    "lockstep config check mm2.properties": Day.start,
    "lockstep switchover mm2.properties --flow 'A->B' --drill": Day.drill,
    "lockstep status mm2.properties --flow 'A->B'": Day.check,
    "lockstep failover mm2.properties --flow 'A->B' --dry-run": Day.see_the_loss,
    "lockstep failover mm2.properties --flow 'A->B' --allow-data-loss 12": Day.fail_over,
    "kafka-consumer-groups.sh --bootstrap-server b1.example.org:9092 --describe --group billing": Day.check_groups,
    "lockstep status mm2.properties --flow 'B->A'": Day.bring_back,
    "lockstep failback mm2.properties --flow 'A->B' --dry-run": Day.see_what_prevents,
    "lockstep failback mm2.properties --flow 'A->B' --diverged copy": Day.fail_back,
    "lockstep resume mm2.properties --flow 'B->A'": Day.be_ready,
}
"""By the first line of a block. Each command of the block has to be one that its handler expects."""

AGAIN: Mapping[Callable[[Day, str], None], Callable[[Day, str], None]] = {Day.check_groups: Day.see_work}
"""The handler of a block that begins as an earlier one."""


@pytest.fixture
def day(tmp_path: Path) -> Iterator[Day]:
    with two_brokers() as (a, b):
        day = Day(tmp_path, a, b)
        try:
            with day.app:
                yield day
        finally:
            day.end()


def test_disaster_recovery_guide_works_as_written(day: Day) -> None:
    seen, begun = set[str](), list[Callable[[Day, str], None]]()
    for _, text in blocks():
        first = text.splitlines()[0]
        assert first in HANDLERS, f"the test has no handler of this block of the guide:\n{text}"
        handler = HANDLERS[first]
        begun.append(AGAIN[handler] if first in seen else handler)
        seen.add(first)
    assert seen == HANDLERS.keys(), "the guide lacks a block"
    for handler, (_, text) in zip(begun, blocks(), strict=True):
        handler(day, text)
