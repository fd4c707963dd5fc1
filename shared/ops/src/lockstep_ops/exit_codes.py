"""The exit codes of all commands. Pure."""

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of all commands.

    `TROUBLE` is also that of a command that was refused. With `NOT_VERIFIED` nothing that was seen is wrong, but not
    everything was seen. With `NOT_REACHED` the desired state was not reached in time.
    """

    FINE = 0
    TROUBLE = 1
    USAGE = 2
    NO_ANSWER = 3
    NOT_VERIFIED = 4
    NOT_REACHED = 5


CHANGES = 2
"""The exit code with `--detailed-exitcode` if there is something to do."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as the shell has it for SIGINT."""

TERMINATED = 143
"""The exit code after SIGTERM, as the shell has it."""


class CannotUse(Exception):
    """The command line or the file asks for something impossible.

    The message is a sentence. Nothing was done.
    """
