"""Switches that consoles carry out, and consoles that are killed meanwhile."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from lockstep_state.rows.state_rows import Switch
from tests.support.acting_console import ActingConsole
from tests.support.broker import Broker
from tests.support.eventually import wait_until
from tests.support.mirror import MirroredFlow
from tests.support.switch_scene import WITHIN, SwitchScene


class HeldScene(SwitchScene):
    """The first call of a hook in `held_hooks` is not answered before `free` is set; `held` is set once it comes."""

    def __init__(self, folder: Path, a: Broker, b: Broker, *held_hooks: str) -> None:
        super().__init__(folder, a, b)
        self.held_hooks = set(held_hooks)
        self.held, self.free = threading.Event(), threading.Event()

    def _called(self, call: dict[str, Any]) -> int:
        if call["hook"] in self.held_hooks:
            self.held_hooks.discard(call["hook"])
            self.held.set()
            self.free.wait(WITHIN)
            self.free.clear()
        return super()._called(call)


@contextmanager
def live_consoles(scene: SwitchScene, count: int = 2) -> Iterator[list[ActingConsole]]:
    """Yield consoles of the scene's file: `console-1`, `console-2` and so on."""
    with ExitStack() as stack:
        consoles = [
            stack.enter_context(ActingConsole(scene.file, instance=f"console-{number}"))
            for number in range(1, count + 1)
        ]
        for console in consoles:
            console.wait_ready()
        yield consoles


def wait_row(
    scene: SwitchScene,
    holds: Callable[[Switch], bool],
    what: str,
    flow: MirroredFlow | None = None,
) -> Switch:
    """Return the row of the last switch by a flow once it is so."""

    def row() -> Switch | None:
        last = scene.last(flow)
        return last if last is not None and holds(last) else None

    found = wait_until(row, within=WITHIN, every=0.05, what=what)
    assert found is not None
    return found
