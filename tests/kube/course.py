"""How the copy of a topic goes on while a test does something to a release, and figures on the terminal."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.kube.conftest import Stage
from tests.support.clusters import end_offsets


def say(capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Print a figure on the terminal."""
    with capsys.disabled():
        print(f"\n  {text}", end="", flush=True)  # noqa: T201


def copied(stage: Stage, topic: str) -> int:
    """Return how many records of the topic's copy there are. Raises AssertionError while there is no copy."""
    remote = stage.mirrored.remote(topic)
    try:
        return sum(end_offsets(stage.target, remote).values())
    except KeyError:
        raise AssertionError(f"{remote} does not exist") from None


class Pause:
    """The longest time in seconds in which no record arrived; what follows the last one counts too."""

    def __init__(self) -> None:
        self.longest = 0.0

    def __str__(self) -> str:
        return f"{self.longest:.1f} s"


@contextmanager
def pauses(stage: Stage, topic: str) -> Iterator[Pause]:
    """Look at the copy of a topic four times a second."""
    pause, leaving = Pause(), threading.Event()

    def measure() -> None:
        last, since = -1, time.monotonic()
        while not leaving.wait(0.25):
            now = copied(stage, topic)
            if now != last:
                last, since = now, time.monotonic()
            pause.longest = max(pause.longest, time.monotonic() - since)

    thread = threading.Thread(target=measure, name="pauses", daemon=True)
    thread.start()
    try:
        yield pause
    finally:
        leaving.set()
        thread.join(30)
