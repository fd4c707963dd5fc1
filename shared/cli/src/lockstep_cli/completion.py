"""`lockstep completion`: what a shell needs to complete commands, options, and the names in a file and a flow."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    ShellComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from lockstep_cli.command_group import CliCommand
from lockstep_state.commands.command_vocabulary import Connector, ControlCommand, ScopeKind

SHELLS = ("bash", "zsh", "fish")

HELP = """\
Print a script for a shell. With it, the Tab key completes commands, options, their values and files. Flows are
those of FILE. Topics and slots are those of the flow's state topic, if the target answers within 3 seconds.

\b
Examples, each for new shells:
  lockstep completion bash > ~/.local/share/bash-completion/completions/lockstep
  lockstep completion zsh > "${fpath[1]}/_lockstep"
  lockstep completion fish > ~/.config/fish/completions/lockstep.fish

\b
Without a file, in this shell only:
  source <(lockstep completion bash)
  source <(lockstep completion zsh)
  lockstep completion fish | source

bash needs version 4.4 or newer, zsh its function compinit.
"""

EXIT_CODES = """\b
Exit codes:
  0  the script is printed
  2  the shell is none of these"""


WITHIN_S = 3.0
"""The seconds that the state topic may take. What was not read by then is not completed."""

BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' completion type value
    COMPREPLY=()
    for completion in $(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" %(complete_var)s=bash_complete $1); do
        IFS=',' read -r type value <<< "$completion"
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                COMPREPLY+=("$value")
                if [[ $value == *: ]]; then compopt -o nospace; fi ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@add_completion_class
class ScopedBashComplete(BashComplete):
    """Completion in bash of words with a colon, which bash takes for several, and of names that need quotes."""

    source_template = BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_LINE"]
        self._word = last_word(line)
        return split_arg_string(line[: len(line) - len(self._word)])[1:], "".join(split_arg_string(self._word))

    def format_completion(self, item: CompletionItem) -> str:
        value, typed = str(item.value), self._word
        if typed.startswith("-") and "=" in typed:
            typed = typed.partition("=")[2]
        if item.type == "plain" and not typed.startswith(("'", '"')):
            prefix, colon, _ = typed.rpartition(":")
            value = shlex.quote(value.removeprefix(prefix + colon))
        return f"{item.type},{value}"


def last_word(line: str) -> str:
    """Return the unfinished word at the end of a command line, with its quotes, or "" behind a blank."""
    begin, quote = 0, ""
    for place, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char.isspace():
            begin = place + 1
    return line[begin:]


def complete_flows(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the enabled flows of FILE. References in the file are not resolved."""
    from lockstep_config import ConfigurationError
    from lockstep_config.loader.configuration import build_configuration, read

    file = ctx.params.get("file")
    if not isinstance(file, Path):
        return []
    with suppress(ConfigurationError, OSError):
        loaded = build_configuration(read(file, os.environ), file, os.environ, alone=True)
        return _starting(incomplete, (str(flow.flow) for flow in loaded.flows if flow.enabled))
    return []


def complete_topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the mirrored source topics of the flow."""
    return _starting(incomplete, (name for kind, name in _state_names(ctx) if kind == "topic"))


def scope_completer(verb: ControlCommand) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return what completes the scopes of a verb: their kinds, and behind the colon the names of one kind."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        kind, colon, _ = incomplete.partition(":")
        if not colon:
            kinds = (scope.value if scope is ScopeKind.FLOW else f"{scope.value}:" for scope in verb.scopes)
            return _starting(incomplete, kinds)
        if kind == ScopeKind.CONNECTOR.value:
            return _starting(incomplete, (f"{kind}:{connector.value}" for connector in Connector))
        return _starting(incomplete, (f"{kind}:{name}" for of_kind, name in _state_names(ctx) if of_kind == kind))

    return complete


def _starting(incomplete: str, names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in sorted(set(names)) if name.startswith(incomplete)]


def _state_names(ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Yield kinds and names of what a flow's state topic has.

    A process of its own reads the topic, because a process can be ended.
    """
    file, flows = ctx.params.get("file"), ctx.params.get("flows") or ctx.params.get("flow") or ()
    if not isinstance(file, Path):
        return
    names = [flows] if isinstance(flows, str) else [*flows]
    reader = [sys.executable, "-m", "lockstep_cli.completion_names", str(file), *names]
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(reader, capture_output=True, text=True, timeout=WITHIN_S, check=False)
        for line in done.stdout.splitlines():
            kind, _, name = line.partition(" ")
            yield kind, name


@click.command(
    name="completion",
    cls=CliCommand,
    short_help="Print a script that completes commands.",
    help=HELP,
    epilog=EXIT_CODES,
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    kind: Any = get_completion_class(shell)
    root = context.find_root()
    # What BashComplete adds is a question to the bash of this machine, which need not be the one that reads the script.
    click.echo(ShellComplete.source(kind(root.command, {}, "lockstep", "_LOCKSTEP_COMPLETE")))
