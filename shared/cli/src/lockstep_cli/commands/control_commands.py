"""`lockstep pause|resume|stop|restart|refresh`: what is asked of a flow's services."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lockstep_cli.command_group import CliCommand
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.completion import scope_completer
from lockstep_cli.options import (
    answer_timeout_option,
    dry_run_option,
    file_before,
    flow_options,
    output_option,
)
from lockstep_cli.rendering.result import print_parts, print_result
from lockstep_ops.formatting import shorten
from lockstep_state.commands.command_vocabulary import (
    PAUSE,
    RESTART,
    RESUME,
    SCOPE_FORMS,
    STOP,
    STOP_BEFORE,
    VERBS,
    ControlCommand,
    Scope,
    ScopeKind,
)

if TYPE_CHECKING:
    from lockstep_config import FlowSettings
    from lockstep_ops.command_request import CommandReply
    from lockstep_ops.status.desired_state_wait import DesiredStateWait
    from lockstep_ops.stop_before import EndPlan

EXIT_CODES = """\b
Exit codes:
  0    every service that was asked did it
  1    one of them refused (the line says why)
  2    FILE or the arguments cannot be used; nothing was asked
  3    a service did not answer in time (the line says what to look at), or the cluster cannot be reached"""

WAIT_EXIT_CODES = f"""{EXIT_CODES}
  5    with --wait: the desired state was not reached in time (the line says what is outstanding)"""

REACHED = {PAUSE: "paused", RESUME: "running", STOP: "stopped", STOP_BEFORE: "stopped", RESTART: "restarted"}
"""The state of a part after a verb, for `--wait`."""


TOPIC_IS_PAUSED = "a topic is stopped with --before TIME alone. lockstep pause keeps its copy where it is"
BEFORE_HELP = """Go on up to the last record that was first seen on the source before TIME, and end the copy there.
TIME is 10m ago, 2026-01-31T12:00:00Z or Unix milliseconds. WHAT may also be topic:T then. Needs lockstep.delay."""


async def _plan_ends(flows: "Sequence[FlowSettings]", scope: Scope, before: str) -> "list[EndPlan]":
    """Return where the copies of each flow end. Raises CannotUse, and ClusterError of a target."""
    from lockstep_ops.status.flow_report import read_rows
    from lockstep_ops.stop_before import parse_before, plan_ends
    from lockstep_runtime.util.clock import now_ms

    before_ms = parse_before(before, now_ms())
    read = await asyncio.gather(*(read_rows(settings) for settings in flows))
    return [plan_ends(settings, rows, scope, before_ms) for settings, (rows, _) in zip(flows, read, strict=True)]


def _show_questions(replies: "Sequence[CommandReply]", output: str) -> None:
    """Print what each flow would be asked."""
    lines, bodies = [], []
    for question in (reply.request for reply in replies):
        flow, services, command = str(question.flow), sorted(question.services), question.command
        lines.append(f"{flow}  would ask {', '.join(services)}: {command.verb} {command.subject}")
        bodies.append({"flow": flow, "asked": services, **json.loads(command.encode()[1])})
    print_result(output, lines, lambda: {"dry_run": True, "flows": bodies})


def _help(verb: ControlCommand) -> str:
    forms = (SCOPE_FORMS[kind] for kind in verb.scopes)
    scopes = "".join(f"\n  {form:<21}  {meaning}" for form, meaning in forms)
    return f"{verb.help}\n\n\b\nExample:\n  {verb.example}\n\n\b\nWHAT is one of{scopes}"


def _is_scope(text: str, _: Mapping[str, Any]) -> bool:
    """Return whether the only text of a command line is WHAT, and not FILE."""
    try:
        Scope.parse(text)
    except ValueError:
        return False
    return True


def _command(verb: ControlCommand) -> click.Command:
    """Return a verb as a click command."""

    @click.command(
        cls=CliCommand,
        name=verb.verb,
        short_help=verb.summary,
        help=_help(verb),
        epilog=WAIT_EXIT_CODES if verb.changes_desired_state else EXIT_CODES,
    )
    @file_before(_is_scope)
    @click.argument("what", default="flow", shell_complete=scope_completer(verb))
    @flow_options
    @dry_run_option
    @answer_timeout_option
    @output_option
    @asynchronous
    async def command(
        file: Path,
        what: str,
        flows: tuple[str, ...],
        all_flows: bool,
        dry_run: bool,
        timeout: float,
        output: str,
        wait: bool = False,
        before: str | None = None,
    ) -> int:
        """Ask each of the flows, all at the same time, and print the answers."""
        from lockstep_cli.flow_selection import choose_flows
        from lockstep_cli.rendering.progress_display import show_outstanding
        from lockstep_ops.command_client import ask
        from lockstep_ops.command_request import CommandReply, command_request, command_scope, exit_code
        from lockstep_ops.exit_codes import CannotUse, Exit
        from lockstep_ops.status.desired_state_wait import begin_wait
        from lockstep_ops.stop_before import end_scope

        scope = command_scope(what)
        flow_settings = choose_flows(file, flows, all_enabled=all_flows)
        name, plans = verb.verb, list["EndPlan"]()
        if before is None:
            if verb.verb == STOP and scope.kind is ScopeKind.TOPIC:
                raise CannotUse(TOPIC_IS_PAUSED)
            replies = [CommandReply(command_request(settings, name, scope)) for settings in flow_settings]
        else:
            name, scope = STOP_BEFORE, end_scope(scope)
            plans = await _plan_ends(flow_settings, scope, before)
            replies = [
                CommandReply(command_request(settings, name, scope, plan.require_ends().as_arguments()))
                for settings, plan in zip(flow_settings, plans, strict=True)
            ]
            if output == "text":
                print_parts(line for plan in plans for line in plan.as_lines())
        if dry_run:
            _show_questions(replies, output)
            return Exit.FINE
        waited_for = flow_settings if wait else ()
        waits = await asyncio.gather(*(begin_wait(settings, name, scope) for settings in waited_for))
        with show_outstanding(replies):
            await asyncio.gather(*(ask(*pair, timeout) for pair in zip(flow_settings, replies, strict=True)))
        if output == "text":
            print_parts(line for reply in replies for line in reply.as_lines())
        code = exit_code(replies)
        if code is not Exit.FINE:
            waits = []
        await _wait(flow_settings, waits, timeout)
        bodies = [reply.as_json() for reply in replies]
        for body, state_wait in zip(bodies, waits, strict=False):
            body["outstanding"] = list(state_wait.outstanding)
        for body, plan in zip(bodies, plans, strict=False):
            body.update(plan.as_json())
        lines = [
            f"{settings.flow}  {_wait_result(state_wait)}"
            for settings, state_wait in zip(flow_settings, waits, strict=False)
        ]
        print_result(output, lines, lambda: {"flows": bodies})
        return Exit.NOT_REACHED if any(state_wait.outstanding for state_wait in waits) else code

    if verb.verb == STOP:
        command = click.option("--before", metavar="TIME", help=BEFORE_HELP)(command)
    if verb.changes_desired_state:
        return click.option(
            "--wait", is_flag=True, help="Wait until lockstep status shows it, for --timeout seconds at most."
        )(command)
    return command


async def _wait(flows: "Sequence[FlowSettings]", waits: "Sequence[DesiredStateWait]", timeout: float) -> None:
    """Wait for all flows at the same time, and show how many parts are outstanding."""
    from lockstep_cli.rendering.progress_display import ProgressDisplay
    from lockstep_ops.status.desired_state_wait import wait_desired
    from lockstep_ops.work_progress import WorkProgress

    def progress() -> WorkProgress:
        total = sum(wait.total for wait in waits)
        outstanding = [part for wait in waits for part in wait.outstanding]
        text = f"waiting for {shorten(outstanding)}" if outstanding else "reading the state"
        return WorkProgress(text, total - len(outstanding), total)

    with ProgressDisplay(progress):
        await asyncio.gather(
            *(wait_desired(settings, wait, timeout) for settings, wait in zip(flows, waits, strict=False))
        )


def _wait_result(wait: "DesiredStateWait") -> str:
    state = REACHED[wait.verb]
    if wait.outstanding:
        return f"not {state} yet: {shorten(wait.outstanding)}. lockstep status shows when it is"
    return f"{wait.scope} is {state}"


COMMANDS = tuple(_command(verb) for verb in VERBS.values() if verb.help)
