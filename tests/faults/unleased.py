"""Slots that nobody coordinates: each a process of its own, all copying the *same* partitions of one flow at once.

What a driver does is missing on purpose: no lease, no leader, no assignment that differs from slot to slot. Only the
rows that slots read are written (`Unleased.ready`).
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

from lockstep_config import FlowSettings, load
from lockstep_data_plane.provenance.producer_ids import new_producer_id
from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_data_plane.slot.worker import run_slot
from lockstep_kafka.wire.cluster import KafkaProtocolError
from lockstep_kafka.wire.connection_errors import BrokerUnreachable
from lockstep_state.names import Flow, progress_topic, state_topic
from lockstep_state.rows.state_rows import Assignment, PartitionProgress, Row, decode_row
from tests.support import eventually, processes
from tests.support.clusters import create_topic, read_topic
from tests.support.mirror import MirroredFlow

STARTED_WITHIN = 60.0


class Unleased:
    """`slots` processes that copy all of `topic`'s partitions at once; a context manager that leaves none behind."""

    def __init__(self, config: Path, flow: MirroredFlow, topic: str, partitions: int, slots: int) -> None:
        self._config = config
        self._flow = flow
        self._topic = topic
        self._partitions = tuple((topic, number) for number in range(partitions))
        self._slots = slots
        self._runs = 0
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self.frozen: set[int] = set()

    def __enter__(self) -> Self:
        flow = self._flow
        create_topic(flow.target, progress_topic(flow.flow), configs={"cleanup.policy": "compact"})
        syncs = f"mm2-offset-syncs.{flow.flow.target}.internal"
        create_topic(flow.source, syncs, configs={"cleanup.policy": "compact"})
        self._producer_id = eventually.wait_until(self._some_producer_id, within=STARTED_WITHIN, every=0.5)
        self._write([Assignment(slot=slot, generation=1, partitions=self._partitions) for slot in range(self._slots)])
        for slot in range(self._slots):
            self._start(slot)
        return self

    def _some_producer_id(self) -> int | None:
        """None while a broker that has just started is loading what it coordinates."""
        try:
            return asyncio.run(new_producer_id(_settings(self._config, self._flow.flow)))
        except (BrokerUnreachable, KafkaProtocolError):
            return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self._running.values():
            processes.kill(process)
        if error is not None:
            processes.show(*sorted(self._config.parent.glob("slot-*.log")))

    def strike(self, dice: random.Random) -> str:
        """Freeze a slot, wake one, or kill one with SIGKILL and start another in its place; returns which."""
        slot = dice.randrange(self._slots)
        if slot in self.frozen:
            self.wake(slot)
            return "woken"
        # At least one is awake, so that there is something to collide with for those that wake.
        if dice.random() < 0.7 and len(self.frozen) < self._slots - 1:
            self.freeze(slot)
            return "frozen"
        self.replace(slot)
        return "killed"

    def freeze(self, slot: int) -> None:
        """It does nothing until it is woken."""
        self._running[slot].send_signal(signal.SIGSTOP)
        self.frozen.add(slot)

    def wake(self, slot: int) -> None:
        """It goes on with whatever it had in hand."""
        self._running[slot].send_signal(signal.SIGCONT)
        self.frozen.discard(slot)

    def wake_all(self) -> None:
        for slot in list(self.frozen):
            self.wake(slot)

    def replace(self, slot: int) -> None:
        """kill -9, and another at once."""
        processes.kill(self._running[slot])
        self.frozen.discard(slot)
        self._start(slot)

    def check(self) -> None:
        """Raises AssertionError when a slot has ended by itself."""
        for slot, process in self._running.items():
            assert process.poll() is None, f"slot {slot} ended with {process.returncode}"

    def appended_by(self) -> set[int]:
        """The slots that wrote down to have appended records, now or earlier."""
        found = (decode_row(r.key or b"", r.value) for r in read_topic(self._flow.target, state_topic(self._flow.flow)))
        rows = [row for row in found if isinstance(row, PartitionProgress) and row.topic == self._topic]
        return {row.slot for row in rows if row.records}

    def _start(self, slot: int) -> None:
        self._runs += 1
        command = [sys.executable, "-m", "tests.faults.unleased", str(self._config), str(self._flow), str(slot)]
        command += [f"run-{self._runs}", str(self._producer_id)]
        log = self._config.parent / f"slot-{slot}.log"
        self._running[slot] = processes.spawn(command, output=log, environment=dict(os.environ))

    def _write(self, rows: list[Row]) -> None:
        producer = Producer({"bootstrap.servers": self._flow.target, "log_level": 0})
        for row in rows:
            key, value = replace(row, at_ms=time.time_ns() // 1_000_000).encode()
            producer.produce(state_topic(self._flow.flow), value, key, partition=0)
        assert producer.flush(STARTED_WITHIN) == 0


def _settings(config: Path, flow: Flow) -> FlowSettings:
    return load(config, os.environ).flow(flow)


def main() -> None:
    """One slot, until it is killed."""
    config, flow, slot, run, producer_id = sys.argv[1:]
    settings = _settings(Path(config), Flow.parse(flow))
    run_slot(SlotSpec(settings=settings, slot=int(slot), run=run, producer_id=int(producer_id)))


if __name__ == "__main__":
    main()
