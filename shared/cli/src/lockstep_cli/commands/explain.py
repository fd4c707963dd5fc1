"""`lockstep explain`: print what a code means, and what to do."""

import click
from click.shell_completion import CompletionItem

from lockstep_cli.command_group import CliCommand
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.options import output_option
from lockstep_cli.rendering.result import print_result
from lockstep_ops.exit_codes import CannotUse, Exit

HELP = """\
Say what a code means, and what to do: a check of doctor, a hazard of plan, a reason of status, verify or a switch, an
alert, an event, or an error code of Kafka. No cluster is asked: the texts are those of this release.

\b
Examples:
  lockstep explain LD301
  lockstep explain LS003 --output json
  lockstep explain LockstepLagging
  lockstep explain target-recreated
"""

EXIT_CODES = """\b
Exit codes:
  0  the code is explained
  2  no such code; the nearest ones are named"""


def complete_code(_: click.Context, __: click.Parameter, begin: str) -> list[CompletionItem]:
    """Return the codes that begin like this."""
    from lockstep_ops.findings.catalogue import FINDINGS

    codes = dict.fromkeys(kind.code for kind in FINDINGS)
    return [CompletionItem(code) for code in codes if code.casefold().startswith(begin.casefold())]


@click.command(
    cls=CliCommand,
    name="explain",
    short_help="Explain a code: what it means, and what to do.",
    help=HELP,
    epilog=EXIT_CODES,
)
@click.argument("code", shell_complete=complete_code)
@output_option
@asynchronous
async def command(code: str, output: str) -> int:
    from lockstep_cli.rendering.findings import explained_lines
    from lockstep_ops.findings.catalogue import find, nearest

    kinds = find(code)
    if not kinds:
        near = nearest(code)
        advice = f"Did you mean {' or '.join(near)}?" if near else "lockstep explain --help says what has a code."
        raise CannotUse(f"{code!r} is not a code of this release. {advice}")
    text = "\n\n".join("\n".join(explained_lines(kind)) for kind in kinds)
    print_result(output, [text], lambda: [kind.as_json() for kind in kinds])
    return Exit.FINE
