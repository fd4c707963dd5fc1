"""What a command shows of its progress: the time that is left, and where it is shown."""

import os
import subprocess
import sys

import pytest

from lockstep_ops.work_progress import TimeLeft, WorkProgress

BEGAN = 100.0
"""10 of 100 were done then."""


@pytest.mark.parametrize(
    ("progress", "after_s", "words"),
    [
        (WorkProgress("waiting"), 3, "3 s"),
        (WorkProgress("waiting"), 72, "1.2 min"),
        (WorkProgress("reading", done=30, total=100), 10, "35 s left"),
        (WorkProgress("reading", done=100, total=100), 10, "0 s left"),
        (WorkProgress("reading", done=120, total=100), 10, "0 s left"),
        (WorkProgress("reading", done=10, total=100), 10, "10 s"),
        (WorkProgress("reading", done=30, total=100), 0.1, "0 s"),
        (WorkProgress("tls", ends_at=BEGAN + 8), 0, "at most 8 s left"),
        (WorkProgress("tls", ends_at=BEGAN + 8), 9, "9 s"),
    ],
)
def test_time_left_follows_from_the_rate_since_the_start(progress: WorkProgress, after_s: float, words: str) -> None:
    assert TimeLeft(WorkProgress(done=10, total=100), BEGAN).words(progress, BEGAN + after_s) == words


def test_progress_adds_up_the_parts_that_begin() -> None:
    progress = WorkProgress()
    progress.begin("listing topics", 4)
    progress.advance(3)
    assert progress.fraction == 0.75
    progress.begin("reading configs", 2)
    assert progress.text == "reading configs"
    assert progress.fraction == 0.5


def test_progress_of_an_unknown_total_has_no_fraction() -> None:
    assert WorkProgress("reaching the clusters", done=3).fraction is None


PROGRAM = """
import asyncio, sys
from lockstep_cli.rendering.progress_display import ProgressDisplay
from lockstep_ops.work_progress import WorkProgress

async def work():
    progress = WorkProgress("reading <orders> [bold]", done=1, total=4)
    with ProgressDisplay(lambda: progress) as display:
        await asyncio.sleep(0.9)
        progress.advance(2)
        await asyncio.sleep(0.5)
        display.hide()
        print("a line")
        progress.text = "what is over at once"
        display.show()

asyncio.run(work())
"""
COMMAND = [sys.executable, "-c", PROGRAM]
TERMINAL = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}


def test_display_on_a_terminal_shows_text_and_part_then_clears() -> None:
    master, slave = os.openpty()
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=slave, env=TERMINAL) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        assert process.stdout is not None
        printed = process.stdout.read()
    os.close(master)
    text = shown.decode()
    assert process.returncode == 0, text
    assert printed == b"a line\n"
    assert "reading <orders> [bold]" in text
    assert " 25%" in text
    assert " 75%" in text
    assert "left" in text
    assert "over at once" not in text
    assert text.rstrip().endswith("\x1b[2K"), "the line is cleared"


def test_display_without_a_terminal_shows_nothing() -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("a line\n", "")
