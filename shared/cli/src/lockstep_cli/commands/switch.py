"""The commands `lockstep switchover`, `failover` and `failback`: move applications to the other cluster, and back."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from lockstep_cli.command_group import CliCommand
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.completion import complete_topics
from lockstep_cli.options import (
    STEP_S,
    dry_run_option,
    file_argument,
    flow_option,
    gather_options,
    output_option,
    timeout_option,
    yes_option,
)
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.switch.switch_options import Allowance, SwitchOptions
from lockstep_ops.switch.switch_steps import Verb

EXIT_CODES = """\b
Exit codes:
  0    done; with --dry-run: could be done
  1    refused, aborted, or a step did not end: the lines say why, and what to do
  2    FILE or the arguments cannot be used; nothing was changed
  3    a cluster cannot be reached, or the flow has never run
  130  Ctrl-C: the steps so far are written down, --continue goes on"""


@dataclass(frozen=True, slots=True)
class SwitchArguments:
    """The options that all three commands take."""

    topics: tuple[str, ...]
    cutoff: str | None
    scheduled: str | None
    drill: bool
    rewind_groups: bool
    allow_soon: bool
    allow_not_ready: bool
    allow_left_groups: bool
    force: bool
    dry_run: bool
    yes: bool
    continue_: bool
    abort: bool
    status: bool
    switch_id: str
    timeout: float
    evidence: Path | None
    output: str

    def check(self) -> None:
        """Check that the options fit together, and that a terminal can give the answers that are needed.

        Raises:
            CannotUse: They do not, or it cannot.
        """
        if self.force:
            allowances = "; ".join(f"{allowance.option}: {allowance.meaning}" for allowance in Allowance)
            raise CannotUse(f"--force is several options, so that you give up only what you mean to. {allowances}")
        if sum((self.continue_, self.abort, self.status, self.dry_run)) > 1:
            raise CannotUse("--continue, --abort, --status and --dry-run exclude each other")
        if self.switch_id and not (self.continue_ or self.abort or self.status):
            raise CannotUse("--id names a switch that has begun: say it with --continue, --abort or --status")
        if self.evidence is not None and self.evidence.name in ("", ".."):
            raise CannotUse(f"--evidence {self.evidence} is a folder: name a file in it, without .json")
        asks = not (self.yes or self.dry_run or self.status or self.continue_ or self.abort or self.drill)
        if asks and (self.output != "text" or not sys.stdin.isatty()):
            raise CannotUse("nobody can be asked here, and nothing was done: say --yes, or --dry-run to look only")

    @property
    def scheduled_ms(self) -> int:
        """Return when to begin, in Unix milliseconds; 0 means now.

        Raises:
            CannotUse: The option is no time.
        """
        return _moment(self.scheduled, "--scheduled")

    def options(
        self,
        verb: Verb,
        *,
        allowed_loss: int = -1,
        allow_unknown_loss: bool = False,
        allow_stale_groups: bool = False,
        allow_source_gone: bool = False,
        diverged: str = "",
    ) -> SwitchOptions:
        """Return the options of a switch.

        Raises:
            CannotUse: An option is no time.
        """
        given_options = {
            Allowance.SOON: self.allow_soon,
            Allowance.NOT_READY: self.allow_not_ready,
            Allowance.LEFT_GROUPS: self.allow_left_groups,
            Allowance.SOURCE_GONE: allow_source_gone,
            Allowance.UNKNOWN_LOSS: allow_unknown_loss,
            Allowance.STALE_GROUPS: allow_stale_groups,
        }
        return SwitchOptions(
            verb=verb,
            id=self.switch_id,
            topics=self.topics,
            cutoff_ms=_moment(self.cutoff, "--cutoff"),
            drill=self.drill,
            rewind_groups=self.rewind_groups,
            diverged=diverged,
            allowed_loss=allowed_loss,
            allows=frozenset(allowance for allowance, is_said in given_options.items() if is_said),
            within_s=self.timeout,
        )


def _moment(text: str | None, option: str) -> int:
    from lockstep_config.text.values import BadValue, moment
    from lockstep_runtime.util.clock import now_ms

    if text is None:
        return 0
    if text == "now":
        return now_ms()
    try:
        return moment(text) or 0
    except BadValue as exc:
        raise CannotUse(f"{option} {text} {exc}") from exc


def _allowing(allowance: Allowance) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(allowance.option, is_flag=True, help=allowance.meaning)


def _switch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    decorate = gather_options(
        "arguments",
        SwitchArguments,
        click.option(
            "--topic",
            "topics",
            multiple=True,
            shell_complete=complete_topics,
            help="Only this source topic; repeat for more. Default: all.",
        ),
        click.option(
            "--cutoff",
            metavar="TIME",
            help="Copy what was written before this time, and do not wait for later records: 2026-01-31T12:00:00Z, "
            "Unix milliseconds, or now.",
        ),
        click.option("--scheduled", metavar="TIME", help="Check now, wait until this time, check again and begin."),
        click.option(
            "--drill",
            is_flag=True,
            help="Practise: every step but the hooks, and the flow goes on afterwards. Leaves the evidence.",
        ),
        click.option(
            "--rewind-groups",
            is_flag=True,
            help="A group that went back on the source goes back on the target too, if it has no members there.",
        ),
        _allowing(Allowance.SOON),
        _allowing(Allowance.NOT_READY),
        _allowing(Allowance.LEFT_GROUPS),
        click.option("--force", is_flag=True, hidden=True),
        dry_run_option,
        yes_option,
        click.option(
            "--continue", "continue_", is_flag=True, help="Go on with the switch of this command that is under way."
        ),
        click.option(
            "--abort",
            is_flag=True,
            help="Take back the switch of this command that is under way, where that is possible.",
        ),
        click.option("--status", is_flag=True, help="Show the switch that is under way, or the last one."),
        click.option(
            "--id",
            "switch_id",
            default="",
            metavar="ID",
            help="With --continue, --abort and --status: only the switch with this id, which each one prints first.",
        ),
        timeout_option(STEP_S),
        click.option(
            "--evidence",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Where the evidence goes, as FILE.json and FILE.md. Default: a name with the flow and the time, here.",
        ),
        output_option,
    )
    decorated: Callable[..., Any] = decorate(command)
    return decorated


@click.command(
    cls=CliCommand, short_help="Move applications to the target while both clusters are healthy.", epilog=EXIT_CODES
)
@file_argument
@flow_option
@_allowing(Allowance.SOURCE_GONE)
@_switch_options
@asynchronous
async def switchover(file: Path, flow: str | None, allow_source_gone: bool, arguments: SwitchArguments) -> int:
    """Move applications from the source of a flow to its target, without losing a record and without reading one again.

    It checks that the flow is ready, and stops the writers (hook fence). It waits until everything is copied, and moves
    the consumer groups. It stops the flow, and starts the opposite flow if the file has one. At the end it sends the
    clients over (hook redirect). Each step is written down. If the command ends half-way, --continue goes on, and
    --abort goes back.

    \b
    Examples:
      lockstep switchover mm2.properties --flow 'A->B' --dry-run
      lockstep switchover mm2.properties --flow 'A->B'
      lockstep switchover mm2.properties --flow 'A->B' --drill
      lockstep switchover mm2.properties --flow 'A->B' --scheduled 2026-12-01T04:00:00Z --yes
    """
    options = arguments.options(Verb.SWITCHOVER, allow_source_gone=allow_source_gone)
    return await _command(file, flow, arguments, options)


@click.command(cls=CliCommand, short_help="Move applications to the target if the source is gone.", epilog=EXIT_CODES)
@file_argument
@flow_option
@click.option(
    "--allow-data-loss",
    type=click.IntRange(min=0),
    default=None,
    metavar="N",
    help="As many records may be lost that the source was known to have. Without it none may.",
)
@_allowing(Allowance.UNKNOWN_LOSS)
@_allowing(Allowance.STALE_GROUPS)
@_switch_options
@asynchronous
async def failover(
    file: Path,
    flow: str | None,
    allow_data_loss: int | None,
    allow_unknown_loss: bool,
    allow_stale_groups: bool,
    arguments: SwitchArguments,
) -> int:
    """Move applications to the target of a flow, without its source. Says first how many records, by partition and
    since when, were known on the source and are not copied. If there are any, it wants --allow-data-loss.

    What the source accepted after it was last heard is not known to anybody.

    \b
    Examples:
      lockstep failover mm2.properties --flow 'A->B' --dry-run
      lockstep failover mm2.properties --flow 'A->B' --allow-data-loss 120
      lockstep failover mm2.properties --flow 'A->B' --abort
    """
    if arguments.cutoff:
        raise CannotUse("--cutoff needs the source, which a failover does without")
    allowed = -1 if allow_data_loss is None else allow_data_loss
    options = arguments.options(
        Verb.FAILOVER,
        allowed_loss=allowed,
        allow_unknown_loss=allow_unknown_loss,
        allow_stale_groups=allow_stale_groups,
    )
    return await _command(file, flow, arguments, options)


@click.command(cls=CliCommand, short_help="Bring applications back to the source.", epilog=EXIT_CODES)
@file_argument
@flow_option
@click.option(
    "--diverged",
    type=click.Choice(["copy", "leave"]),
    help="What to do with records that the source has and the target lacks: copy them to the target, or leave them "
    "on the source only.",
)
@_allowing(Allowance.SOURCE_GONE)
@_switch_options
@asynchronous
async def failback(
    file: Path, flow: str | None, diverged: str | None, allow_source_gone: bool, arguments: SwitchArguments
) -> int:
    """Bring applications back to the source of a flow, after a switchover or a failover. FILE needs the opposite flow.

    It copies to the source what was written on the target since, from exact offsets. Then it does what switchover does,
    in the other direction.

    \b
    Examples:
      lockstep failback mm2.properties --flow 'A->B' --dry-run
      lockstep failback mm2.properties --flow 'A->B' --diverged copy
    """
    if diverged == "leave" and arguments.topics:
        raise CannotUse("--diverged leave alters offsets, and the flow has to be stopped for that: leave out --topic")
    options = arguments.options(Verb.FAILBACK, allow_source_gone=allow_source_gone, diverged=diverged or "")
    return await _command(file, flow, arguments, options)


COMMANDS = (switchover, failover, failback)


async def _command(file: Path, flow: str | None, arguments: SwitchArguments, options: SwitchOptions) -> int:
    from lockstep_cli.commands.switch_session import SwitchSession
    from lockstep_cli.flow_selection import select_flows
    from lockstep_config import load
    from lockstep_ops.command_request import operator_name
    from lockstep_ops.switch.switch_run import switch_flows

    arguments.check()
    configuration = load(file, os.environ)
    (settings,) = select_flows(configuration, [flow] if flow else [])
    moving, opposite = switch_flows(settings, configuration.flows, options.verb, configuration.path)
    return await SwitchSession(file, moving, opposite, arguments, replace(options, by=operator_name())).run()
