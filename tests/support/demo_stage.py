"""The clusters, the traffic and the group of `make demo`, and `lockstep run` between them, for as long as wanted."""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.broker import Broker, started
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow
from tests.support.runs import LockstepRun
from tools.demo import scene
from tools.demo.actors import GroupReader, Traffic
from tools.demo.scene import FLOWS, READ, SHOP

MOVES_WITHIN_S = 300.0


class DemoStage:
    """A context manager, in which both flows copy what is written all the time. Nothing is left running after it."""

    def __init__(self, folder: Path, *lines: str) -> None:
        """`lines` are added to the file of the demo."""
        self.file = folder / "mm2.properties"
        self._lines = lines
        self._ends = ExitStack()
        self.brokers = {alias: Broker(alias, authorizer=True) for alias in SHOP}

    def __enter__(self) -> Self:
        with ExitStack() as ends:
            ends.enter_context(started(*self.brokers.values()))
            bootstrap = {alias: broker.bootstrap for alias, broker in self.brokers.items()}
            for broker in self.brokers.values():
                scene.create(broker)
            self.traffic = {alias: Traffic(alias, address) for alias, address in bootstrap.items()}
            for actor in (*self.traffic.values(), GroupReader(bootstrap["A"], READ)):
                actor.start()
                ends.callback(actor.stop)
            self.file.write_text("\n".join([scene.properties(bootstrap), *self._lines]) + "\n")
            self.run = LockstepRun(self.file)
            ends.callback(self.run.kill)
            self.flows = {
                str(flow): MirroredFlow(flow, bootstrap[flow.source], bootstrap[flow.target]) for flow in FLOWS
            }
            wait_until(self._move, within=MOVES_WITHIN_S, every=0.5, what="both flows of the demo copy")
            self._ends = ends.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ends.close()

    def _move(self) -> bool:
        return all(
            any(row.upstream > 0 for row in flow.progress(topic.name).values())
            for flow in self.flows.values()
            for topic in SHOP[flow.flow.source]
        )
