"""The exit codes of all commands. Pure."""

from enum import IntEnum


class Exit(IntEnum):
    """`TROUBLE` is also that of a command that was refused. `NOT_VERIFIED`: nothing is wrong as far as was seen, but
    not everything was. `NOT_REACHED`: the desired state was not reached in time."""

    FINE = 0
    TROUBLE = 1
    USAGE = 2
    NO_ANSWER = 3
    NOT_VERIFIED = 4
    NOT_REACHED = 5


CHANGES = 2
"""With `--detailed-exitcode`: there is something to do."""

INTERRUPTED = 130
"""After Ctrl-C, the shell's for SIGINT."""

TERMINATED = 143
"""After SIGTERM, the shell's for it."""


class CannotUse(Exception):
    """What was written on the command line, or in the file, cannot be meant; the message is a sentence. Nothing was
    done."""
