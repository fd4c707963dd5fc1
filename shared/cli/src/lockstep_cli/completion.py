"""`lockstep completion`: what a shell needs to complete the commands and options of `lockstep`."""

import click

SHELLS = ("bash", "zsh", "fish")

HELP = """\
Print a script for a shell. With it, the Tab key completes commands, options, their values and files.

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


@click.command(name="completion", short_help="Print a script that completes commands.", help=HELP, epilog=EXIT_CODES)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    from click.shell_completion import ShellComplete, get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, shell
    root = context.find_root()
    # What BashComplete adds is a question to the bash of this machine, which need not be the one that reads the script.
    click.echo(ShellComplete.source(kind(root.command, {}, "lockstep", "_LOCKSTEP_COMPLETE")))
