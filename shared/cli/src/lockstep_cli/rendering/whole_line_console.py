"""A console that cuts no line."""

from functools import partialmethod

from rich.console import Console


class WholeLineConsole(Console):
    """A place for tables. No word is broken: a longer one goes beyond the line, and the terminal wraps it."""

    print = partialmethod(Console.print, crop=False, overflow="ignore")
