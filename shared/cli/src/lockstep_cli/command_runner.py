"""Running a command to its end: an error is one sentence on standard error, and an exit code."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

import click

from lockstep_ops.exit_codes import INTERRUPTED, CannotUse, Exit

P = ParamSpec("P")


def exit_with(work: Coroutine[Any, Any, int]) -> None:
    """Run `work`, and end the process with the exit code that it returns, or with that of its error.

    Ctrl-C ends it without a traceback.
    """
    from lockstep_config import ConfigurationError
    from lockstep_config.keys.python_classes import ClassFailed
    from lockstep_kafka.common.errors import ClusterError, ClusterUnreachable, NotAppended, TopicMissing
    from lockstep_state.rows.row import NewerVersion

    code: int
    try:
        code = asyncio.run(work)
    except (CannotUse, ConfigurationError, ClassFailed, ClusterError, NewerVersion) as exc:
        click.echo(str(exc), err=True)
        code = Exit.TROUBLE
        if isinstance(exc, (CannotUse, ConfigurationError)):
            code = Exit.USAGE
        elif isinstance(exc, (ClusterUnreachable, NotAppended, TopicMissing)):
            code = Exit.NO_ANSWER
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(int(code))


def ask_yes_or_no(question: str) -> bool:
    """Ask the person at the terminal, and return whether the answer is yes.

    Raises:
        KeyboardInterrupt: Ctrl-C. The handler of asyncio would only cancel a task, and nothing wakes a thread that
            waits for the terminal.
    """
    asyncio_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return click.confirm(question, err=True)
    except click.Abort as exc:
        if isinstance(exc.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from exc
        return False  # the terminal is gone
    finally:
        signal.signal(signal.SIGINT, asyncio_handler)


def asynchronous(command: Callable[P, Coroutine[Any, Any, int]]) -> Callable[P, None]:
    """Make a command of a coroutine function that returns the exit code (`exit_with`)."""

    @wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
        exit_with(command(*args, **kwargs))

    return wrapper
