"""`lockstep pause|resume|stop|restart|refresh`: what is asked of a flow's services."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from lockstep_cli.command_runner import asynchronous
from lockstep_cli.options import answer_timeout_option, echo_body, file_argument, flow_options, output_option
from lockstep_state.commands.command_vocabulary import SCOPE_FORMS, VERBS, ControlCommand

EXIT_CODES = """\b
Exit codes:
  0    every service that was asked did it
  1    one of them refused (the line says why)
  2    FILE or the arguments cannot be used; nothing was asked
  3    a service did not answer in time (the line says what to look at), or the cluster cannot be reached"""


def _show_questions(replies: Sequence[Any], output: str) -> None:
    if output != "text":
        bodies = [
            {
                "flow": str(r.question.flow),
                "asked": sorted(r.question.services),
                **json.loads(r.question.command.encode()[1]),
            }
            for r in replies
        ]
        echo_body({"dry_run": True, "flows": bodies}, output)
        return
    for reply in replies:
        asked = reply.question
        names = ", ".join(sorted(asked.services))
        click.echo(f"{asked.flow}  would ask {names}: {asked.command.verb} {asked.command.subject}")


def _help(verb: ControlCommand) -> str:
    forms = (SCOPE_FORMS[kind] for kind in verb.scopes)
    scopes = "".join(f"\n  {form:<21}  {meaning}" for form, meaning in forms)
    return f"{verb.help}\n\n\b\nExample:\n  {verb.example}\n\n\b\nWHAT is one of{scopes}"


def _command(verb: ControlCommand) -> click.Command:
    """One verb as a click command."""

    @click.command(name=verb.verb, short_help=verb.summary, help=_help(verb), epilog=EXIT_CODES)
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
        from lockstep_cli.flow_selection import choose_flows
        from lockstep_cli.rendering.progress_display import progress_display
        from lockstep_ops.command_client import ask
        from lockstep_ops.command_request import CommandReply, command_request, command_scope, exit_code
        from lockstep_ops.exit_codes import Exit

        scope = command_scope(what)
        meant = choose_flows(file, flows, all_flows)
        replies = [CommandReply(command_request(settings, verb.verb, scope)) for settings in meant]
        if dry_run:
            _show_questions(replies, output)
            return Exit.FINE
        with progress_display(replies):
            await asyncio.gather(*(ask(settings, one, timeout) for settings, one in zip(meant, replies, strict=True)))
        if output != "text":
            echo_body({"flows": [reply.as_json() for reply in replies]}, output)
        else:
            for reply in replies:
                for line in reply.as_lines():
                    click.echo(line)
        return exit_code(replies)

    if verb.changes_desired_state:
        return click.option("--dry-run", is_flag=True, help="Say what would be asked of whom, and ask nothing.")(
            command
        )
    return command


COMMANDS = tuple(_command(verb) for verb in VERBS.values() if verb.help)
