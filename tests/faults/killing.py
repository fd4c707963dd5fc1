"""Faults by kill -9, at random moments."""

import time
from collections.abc import Callable, Sequence
from functools import partial

from tests.faults.scene import Scene

MOVES = ("driver", "JVM", "Python daemon", "slot")
"""What moves records, or is needed to; each is killed equally often."""


def killed(scene: Scene, kinds: Sequence[str], times: int) -> int:
    """Each kind so many times, in random order; three of four times once all goes on, else while it still recovers."""
    order = list(kinds) * times
    scene.dice.shuffle(order)
    for kind in order:
        time.sleep(scene.dice.uniform(0.0, 3.0))
        scene.kill(kind)
        if scene.dice.random() < 0.75:
            scene.goes_on()
    return len(order)


def killed_while_paced(scene: Scene, seconds: float = 60.0, times: int = 3) -> int:
    """Three kills of something, whatever has recovered by then."""
    return _at_moments(scene, seconds, times, lambda: partial(scene.kill, scene.dice.choice(MOVES)))


def killed_and_started_while_paced(scene: Scene, seconds: float = 60.0, times: int = 3) -> int:
    """The same for a run that is one process: killed at the moments that these dice give `killed_while_paced`, and
    started again at once, for nothing else would."""

    def kill() -> None:
        scene.say(f"kill -9 {scene.there.run.pid}, and started again")
        scene.there.run.kill_and_start()

    return _at_moments(scene, seconds, times, lambda: kill)


def _at_moments(scene: Scene, seconds: float, times: int, drawn: Callable[[], Callable[[], None]]) -> int:
    """So many kills within ``seconds``, at moments that are drawn before anything else is."""
    moments = sorted(scene.dice.uniform(0.0, seconds) for _ in range(times))
    kills = [drawn() for _ in moments]
    began = time.monotonic()
    for moment, kill in zip(moments, kills, strict=True):
        time.sleep(max(0.0, began + moment - time.monotonic()))
        kill()
    time.sleep(max(0.0, began + seconds - time.monotonic()))
    return times
