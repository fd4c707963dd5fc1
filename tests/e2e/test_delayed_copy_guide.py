"""The guide `docs/guides/delayed-copy.md` is carried out from its first block to its last, on two clusters.

Its delay is shorter here, and the mistake is not ten minutes ago but as long ago as the test has taken.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import SeenEnds, SourceEnds
from tests.support.broker import Broker, two_brokers
from tests.support.clusters import Record, create_topic, produce
from tests.support.eventually import wait_until
from tests.support.guides import ONE_BROKER, run_guide_line
from tests.support.mirror import MirroredFlow
from tests.support.runs import LockstepRun

pytestmark = pytest.mark.long

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "delayed-copy.md"
BLOCK = re.compile(r"^```(properties|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITHIN, DELAY_S = 120.0, 40
RIGHT, WRONG = 120, 30


class Operator:
    """Who follows the guide, and what happens on A meanwhile."""

    def __init__(self, folder: Path, a: Broker, b: Broker) -> None:
        self.folder, self.a, self.b = folder, a, b
        self.file = folder / "mm2.properties"
        self.flow = MirroredFlow(Flow("A", "B"), a.bootstrap, b.bootstrap)
        self.run: LockstepRun | None = None
        self.mistake_ms = 0

    def say(self, line: str, *, codes: tuple[int, ...] = (0,)) -> str:
        """Return what a command of the guide prints, with this file and the time of the mistake."""
        replacements = {"mm2.properties": str(self.file), "10m ago": str(self.mistake_ms)}
        return run_guide_line(line, replacements, codes=codes, within=WITHIN)

    def write_file(self, text: str) -> None:
        for host, broker in (("a1.example.org:9092", self.a), ("b1.example.org:9092", self.b)):
            assert host in text
            text = text.replace(host, broker.bootstrap)
        assert "A->B.lockstep.delay = 30m" in text
        self.file.write_text(f"{text.replace('= 30m', f'= {DELAY_S}s')}\n{ONE_BROKER}")

    def start(self, check: str, plan: str, run: str) -> None:
        for topic in ("orders", "payments"):
            create_topic(self.a.bootstrap, topic, partitions=1, configs={"retention.ms": "3600000"})
        assert "A->B enabled" in self.say(check)
        assert "LS036" in self.say(plan, codes=(0, 1))
        assert run == "lockstep run mm2.properties"
        self.run = LockstepRun(self.file)
        self.flow.wait_mirrored("orders", within=WITHIN)
        self._write(b"right", RIGHT)
        wait_until(lambda: self._seen("orders") == RIGHT, within=WITHIN, every=0.2, what="they were seen")

    def see_the_delay(self, status: str) -> None:
        wait_until(lambda: self.flow.progress("orders"), within=WITHIN, every=0.5, what="a slot has it")
        assert f"delayed {DELAY_S} s" in self.say(status, codes=(0, 1))

    def see_the_end(self, dry_run: str) -> None:
        time.sleep(0.01)
        self.mistake_ms = round(time.time() * 1000)
        self._write(b"wrong", WRONG)
        wait_until(lambda: self._checked_ms() >= self.mistake_ms, within=WITHIN, every=0.2, what="A was checked")
        assert f"orders-0  ends at {RIGHT}" in self.say(dry_run)
        assert self.flow.copy_of("orders") == []

    def end(self, stop: str) -> None:
        said = self.say(stop)
        assert "topic:orders is stopped" in said
        assert [record.value for record in self.flow.copy_of("orders")] == [b"right"] * RIGHT

    def go_on(self, resume: str) -> None:
        self.say(resume)
        self.flow.wait_copied("orders", within=WITHIN)

    def _write(self, value: bytes, count: int) -> None:
        produce(self.a.bootstrap, "orders", [Record(value=value)] * count)

    def _seen(self, topic: str) -> int:
        return max((row.ends[-1][0] for row in self.flow.rows(SeenEnds) if row.topic == topic and row.ends), default=-1)

    def _checked_ms(self) -> int:
        return max((row.asked_ms for row in self.flow.rows(SourceEnds)), default=0)


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    with two_brokers() as (a, b):
        operator = Operator(tmp_path, a, b)
        try:
            yield operator
        finally:
            if operator.run is not None:
                operator.run.kill()


def test_delayed_copy_guide_works_as_written(operator: Operator) -> None:
    blocks = [text.strip() for _, text in BLOCK.findall(GUIDE.read_text("utf-8"))]
    file, start, status, dry_run, stop, resume = blocks
    operator.write_file(file)
    operator.start(*start.splitlines())
    operator.see_the_delay(status)
    operator.see_the_end(dry_run)
    operator.end(stop)
    operator.go_on(resume)
