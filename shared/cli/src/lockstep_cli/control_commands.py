"""`lockstep pause|resume|stop|restart|refresh`: what is asked of a flow's services."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from lockstep_cli.exit_codes import asynchronous
from lockstep_cli.options import answer_timeout_option, echo_json, file_argument, flow_options, output_option

__all__ = ["COMMANDS", "EXIT_CODES"]

SCOPES = """\b
WHAT is one of
  flow                   everything (the default)
  connector:NAME         MirrorSourceConnector, MirrorCheckpointConnector or MirrorHeartbeatConnector
  slot:N                 one of the data plane's slots
  topic:T                a topic by its name on the source
  partition:T-N          one of its partitions"""

EXIT_CODES = """\b
Exit codes:
  0    every service that was asked did it
  1    one of them refused (the line says why)
  2    FILE or the arguments cannot be used; nothing was asked
  3    a service did not answer in time (the line says what to look at), or the cluster cannot be reached"""


def _show_questions(replies: Sequence[Any], output: str) -> None:
    if output == "json":
        bodies = [
            {
                "flow": str(r.question.flow),
                "asked": sorted(r.question.services),
                **json.loads(r.question.command.encode()[1]),
            }
            for r in replies
        ]
        echo_json({"dry_run": True, "flows": bodies})
        return
    for reply in replies:
        asked = reply.question
        names = ", ".join(sorted(asked.services))
        click.echo(f"{asked.flow}  would ask {names}: {asked.command.verb} {asked.command.subject}")


def _command(
    verb: str, short: str, about: str, example: str, *, what: str = SCOPES, changes: bool = True
) -> click.Command:
    """One verb as a click command."""

    @click.command(
        name=verb, short_help=short, help="\n\n".join((about, "\b\nExample:\n" + example, what)), epilog=EXIT_CODES
    )
    @file_argument
    @click.argument("what", default="flow")
    @flow_options
    @answer_timeout_option
    @output_option
    @asynchronous
    async def command(
        file: Path,
        what: str,
        flows: tuple[str, ...],
        all_flows: bool,
        timeout: float,
        output: str,
        dry_run: bool = False,
    ) -> int:
        """Ask each flow meant, all at the same time, and print what came of it."""
        from lockstep_cli.command_client import ask, new_request
        from lockstep_cli.command_request import CommandReply, exit_code
        from lockstep_cli.exit_codes import CannotUse, Exit
        from lockstep_cli.flow_selection import flows_of
        from lockstep_cli.progress_display import ProgressDisplay
        from lockstep_protocol.commands.command_vocabulary import Scope

        try:
            scope = Scope.parse(what)
        except ValueError as exc:
            raise CannotUse(str(exc)) from exc
        meant = flows_of(file, flows, all_flows)
        replies = [CommandReply(new_request(settings, verb, scope)) for settings in meant]
        if dry_run:
            _show_questions(replies, output)
            return Exit.FINE
        with ProgressDisplay(replies):
            await asyncio.gather(*(ask(settings, one, timeout) for settings, one in zip(meant, replies, strict=True)))
        if output == "json":
            echo_json({"flows": [reply.as_json() for reply in replies]})
        else:
            for reply in replies:
                for line in reply.as_lines():
                    click.echo(line)
        return exit_code(replies)

    if changes:
        return click.option("--dry-run", is_flag=True, help="Say what would be asked of whom, and ask nothing.")(
            command
        )
    return command


COMMANDS = (
    _command(
        "pause",
        "Let a part of the work rest, ready to go on.",
        "Pause WHAT: its processes and assignments stay, and nothing is done until `lockstep resume`. That it is "
        "wanted is written down, and holds over restarts and upgrades. Nothing is lost: it goes on where it was.",
        "  lockstep pause mm2.properties topic:orders",
    ),
    _command(
        "resume",
        "Let what was paused or stopped go on.",
        "Resume WHAT, where it was. Its topic and connector must run too: a partition of a paused topic stays paused.",
        "  lockstep resume mm2.properties topic:orders",
    ),
    _command(
        "stop",
        "End a part of the work, until somebody resumes it.",
        "Stop WHAT: it drains, writes down how far it is and ends. Offsets may be altered and a flow handed back to "
        "MirrorMaker 2 only while it is stopped. `lockstep resume` starts it again.",
        "  lockstep stop mm2.properties connector:MirrorSourceConnector --flow 'A->B'",
        what=SCOPES.split("\n  topic:")[0],
    ),
    _command(
        "restart",
        "Begin a part of the work anew, such as one that failed.",
        "Restart WHAT: it drains and begins anew where it was. This also starts what has failed as often as "
        "lockstep.auto.restart.max allows. What is paused or stopped stays so.",
        "  lockstep restart mm2.properties slot:0",
    ),
    _command(
        "refresh",
        "Look for topics, groups, ACLs and configs now.",
        "Do every round of WHAT (flow or connector:NAME) now instead of at its time: look for new topics, groups, ACLs "
        "and configs.",
        "  lockstep refresh mm2.properties",
        what="\b\n" + "\n".join(SCOPES.splitlines()[1:4]),
        changes=False,
    ),
)
