"""How a command ends: with one sentence and the exit code of what went wrong."""

import logging
import os
import pty
import select
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from lockstep_cli.command_runner import exit_with
from lockstep_config import ConfigurationError
from lockstep_config.text.config_errors import Problem
from lockstep_kafka.common.errors import ClusterUnreachable, NotPermitted, TopicMissing
from lockstep_ops.exit_codes import INTERRUPTED, CannotUse, Exit
from lockstep_state.rows.row import NewerVersion


async def fail(trouble: BaseException) -> int:
    raise trouble


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (CannotUse("--rate and --measure exclude each other"), Exit.USAGE),
        (ConfigurationError([Problem(Path("mm2.properties"), 3, "topics", "is empty")]), Exit.USAGE),
        (ClusterUnreachable("A", "a:9092", "no broker answered"), Exit.NO_ANSWER),
        (TopicMissing("B", "orders"), Exit.NO_ANSWER),
        (NotPermitted("B", "describe", "the cluster"), Exit.TROUBLE),
        (NewerVersion("partition/t/0", 9, 1), Exit.TROUBLE),
        (NewerVersion("partition/t/0", 9, 1).within("topic state on cluster B"), Exit.TROUBLE),
    ],
)
def test_trouble_of_a_command_is_one_sentence_and_a_code(
    trouble: BaseException, code: Exit, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        exit_with(fail(trouble))
    said = capsys.readouterr()
    assert (ended.value.code, said.out, said.err) == (code, "", f"{trouble}\n")


def test_interrupted_command_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        exit_with(fail(KeyboardInterrupt()))
    assert (ended.value.code, capsys.readouterr().err) == (INTERRUPTED, "")


def test_client_library_logs_nothing_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    async def connect() -> int:
        logging.getLogger("aiokafka.conn").error("Unable connect to node with id 1")
        return Exit.FINE

    library = logging.getLogger("aiokafka")
    level = library.level
    try:
        with pytest.raises(SystemExit):
            exit_with(connect())
        assert capsys.readouterr().err == ""
    finally:
        library.setLevel(level)


def test_row_of_a_newer_release_is_named_with_its_place() -> None:
    text = str(NewerVersion("partition/t/0", 9, 1).within("topic state on cluster B"))
    assert text.startswith(
        "'partition/t/0' in topic state on cluster B was written in version 9, this release reads up "
    )


ASKS = """
from lockstep_cli.command_runner import ask_yes_or_no, exit_with

async def ask():
    return 0 if ask_yes_or_no("Do this?") else 7

exit_with(ask())
"""


@pytest.mark.parametrize(("typed", "code"), [(b"y\n", 0), (b"n\n", 7), (b"\x04", 7), (b"\x03", INTERRUPTED)])
def test_question_of_a_command_ends_with_its_answer(typed: bytes, code: int) -> None:
    """Ctrl-C too, at once, though the terminal is waited for within an event loop."""
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [sys.executable, "-c", ASKS])  # noqa: S606  # no shell is meant
    with suppress(OSError):  # the terminal is gone with the process
        while b"[y/N]" not in os.read(terminal, 1024):
            pass
        os.write(terminal, typed)
        while True:
            if not select.select([terminal], [], [], 2.0)[0]:
                os.write(terminal, typed)  # `input` misses a signal of the moment before it waits, so it is sent again
            elif not os.read(terminal, 1024):
                break
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == code
