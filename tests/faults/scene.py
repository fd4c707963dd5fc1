"""What a fault has before it: a deployment under traffic, and dice."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import psutil

from tests.faults.deployment import Deployment


@dataclass(frozen=True, slots=True)
class Scene:
    """One fault on its way: what is struck, the topic under traffic, and the dice."""

    there: Deployment
    topic: str
    dice: random.Random
    say: Callable[[str], None]

    def kill(self, kind: str) -> None:
        """SIGKILL for one of that kind."""
        victim = self.there.victim(kind, self.dice.choice)
        self.say(f"kill -9 {kind} {victim.pid}")
        with suppress(psutil.NoSuchProcess):
            victim.kill()

    def goes_on(self) -> None:
        self.say(f"went on after {self.there.goes_on(self.topic):.1f} s")
