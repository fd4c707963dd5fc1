"""`lockstep takeover` and `lockstep handback`: from MirrorMaker 2 to Lockstep, and back."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockstep_cli.exit_codes import CannotUse, Exit, exit_with
from lockstep_cli.options import file_argument, flow_option, output_option, timeout_option

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from lockstep_cli.handback import HandBack
    from lockstep_cli.offset_location import OffsetLocation
    from lockstep_cli.takeover import TakeoverPlan
    from lockstep_config import FlowSettings

__all__ = ["COMMANDS"]

EXIT_CODES = """\b
Exit codes:
  0    done, or with --dry-run: could be done
  1    refused; the lines say why, and nothing was written
  2    FILE or the arguments cannot be used
  3    a cluster cannot be reached, or a service does not answer"""

origin_option = click.option(
    "--from", "origin", type=click.Choice(["dedicated", "strimzi", "connect"]), help="The kind of MirrorMaker 2."
)
back_option = click.option(
    "--to",
    "origin",
    type=click.Choice(["dedicated", "strimzi", "connect"]),
    help="The kind of MirrorMaker 2. Default: where the flow was taken over from, else dedicated.",
)
topic_option = click.option("--offsets-topic", help="Connect's offset.storage.topic, on the target.")
connector_option = click.option("--connector", help="The name of its source connector.")
group_option = click.option("--group", help="Its Connect workers' group.id.")
shared_option = click.option(
    "--connector-stopped",
    is_flag=True,
    help="Connect's workers run on, with other connectors, and you have stopped this one (PUT /connectors/NAME/stop).",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
yes_option = click.option("--yes", is_flag=True, help="Do it without asking.")


@click.command(short_help="Go on where a stopped MirrorMaker 2 left off.", epilog=EXIT_CODES)
@file_argument
@flow_option
@origin_option
@topic_option
@connector_option
@group_option
@shared_option
@dry_run_option
@yes_option
@timeout_option(60.0, "for what is written and asked")
@output_option
def takeover(
    file: Path,
    flow: str | None,
    origin: str | None,
    offsets_topic: str | None,
    connector: str | None,
    group: str | None,
    connector_stopped: bool,
    dry_run: bool,
    yes: bool,
    timeout: float,
    output: str,
) -> None:
    """Go on where a stopped MirrorMaker 2 left off. No record is lost; none is copied again where it was stopped, not
    killed.

    Shows first what it would do: where each topic goes on, how many records are still to be copied, what has no offset
    and begins anew. Refuses while that MirrorMaker 2 runs. Afterwards start Lockstep.

    \b
    Examples:
      lockstep takeover mm2.properties --dry-run
      lockstep takeover mm2.properties --flow 'A->B'
      lockstep takeover mm2.properties --flow 'A->B' --from strimzi
      lockstep takeover mm2.properties --flow 'A->B' --from connect --offsets-topic connect-offsets
          --connector a-to-b-source --group connect-cluster

    \b
    Where MirrorMaker 2 keeps its offsets, by kind:
                 topic                          connector                     group
      dedicated  mm2-offsets.A.internal         MirrorSourceConnector         A-mm2
      strimzi    mirrormaker2-cluster-offsets   A->B.MirrorSourceConnector    mirrormaker2-cluster
      connect    as you say
    """
    names = (offsets_topic, connector, group)
    exit_with(_take_over(file, flow, origin or "dedicated", names, connector_stopped, dry_run, yes, timeout, output))


@click.command(short_help="Leave a flow to MirrorMaker 2 where Lockstep is.", epilog=EXIT_CODES)
@file_argument
@flow_option
@back_option
@topic_option
@connector_option
@group_option
@shared_option
@click.option("--stop", is_flag=True, help="Stop the flow first, and wait until it has drained.")
@dry_run_option
@yes_option
@timeout_option(60.0, "for what is written and asked, and for the flow to drain")
@output_option
def handback(
    file: Path,
    flow: str | None,
    origin: str | None,
    offsets_topic: str | None,
    connector: str | None,
    group: str | None,
    connector_stopped: bool,
    stop: bool,
    dry_run: bool,
    yes: bool,
    timeout: float,
    output: str,
) -> None:
    """Leave a flow to MirrorMaker 2 where Lockstep is: writes the last progress where it looks for it, and reads it
    back. Only when the flow is stopped and has drained. Asked twice it changes nothing the second time.

    \b
    Examples:
      lockstep handback mm2.properties --flow 'A->B' --stop
      lockstep handback mm2.properties --flow 'A->B' --to strimzi --dry-run
    """
    names = (offsets_topic, connector, group)
    exit_with(_hand_back(file, flow, origin, names, connector_stopped, stop, dry_run, yes, timeout, output))


COMMANDS = (takeover, handback)

Names = tuple[str | None, str | None, str | None]


async def _take_over(
    file: Path,
    flow: str | None,
    origin: str,
    names: Names,
    connector_stopped: bool,
    dry_run: bool,
    yes: bool,
    timeout: float,
    output: str,
) -> int:
    from lockstep_cli.flow_selection import only_flow_of
    from lockstep_cli.plan_tables import plan_shown
    from lockstep_cli.takeover import plan_takeover
    from lockstep_cli.takeover_io import carry_out, find

    _can_be_asked(dry_run or yes, output)
    settings = only_flow_of(file, flow)
    place = _place(settings, origin, names, connector_stopped)
    plan = plan_takeover(await find(settings, place))
    if not _goes_on(plan, plan_shown(plan), f"Take {settings.flow} over so?", dry_run, yes, output):
        return _end(plan, output, done=False)
    await carry_out(settings, plan, timeout)
    start = f"lockstep resume {file} --flow '{settings.flow}'" if plan.resume else f"lockstep run {file}"
    return _end(plan, output, done=True, done_text=f"{settings.flow} is taken over. Start it now: {start}")


async def _hand_back(
    file: Path,
    flow: str | None,
    origin: str | None,
    names: Names,
    connector_stopped: bool,
    stop: bool,
    dry_run: bool,
    yes: bool,
    timeout: float,
    output: str,
) -> int:
    from lockstep_cli.command_request import exit_code
    from lockstep_cli.flow_selection import only_flow_of
    from lockstep_cli.handback import plan_hand_back
    from lockstep_cli.plan_tables import hand_back_shown
    from lockstep_cli.progress_display import ProgressDisplay
    from lockstep_cli.takeover_io import flow_rows, hand_back, hold, place_of_handover, stop_and_drain, stop_question

    _can_be_asked(dry_run or yes, output)
    settings = only_flow_of(file, flow)
    before = place_of_handover(await flow_rows(settings)) if origin is None and not any(names) else None
    place = (
        _unwatched(before, connector_stopped)
        if before
        else _place(settings, origin or "dedicated", names, connector_stopped)
    )
    if stop and not dry_run:
        _confirm(yes, f"Stop {settings.flow} and hand it back to {place}?")
        yes = True
        reply = stop_question(settings)
        with ProgressDisplay([reply]):
            await stop_and_drain(settings, place, reply, timeout)
        if (stopped := exit_code([reply])) is not Exit.FINE:
            for line in reply.as_lines():
                click.echo(line, err=True)
            return stopped
    plan = plan_hand_back(await hold(settings, place), stops_first=stop and dry_run)
    if not _goes_on(plan, hand_back_shown(plan), f"Hand {settings.flow} back so?", dry_run, yes, output):
        return _end(plan, output, done=False)
    await hand_back(settings, plan, timeout)
    done_text = f"{settings.flow} is handed back: {place} says where to go on. Start MirrorMaker 2 now"
    return _end(plan, output, done=True, done_text=done_text)


def _place(settings: FlowSettings, origin: str, names: Names, connector_stopped: bool) -> OffsetLocation:
    from lockstep_cli.offset_location import offset_location
    from lockstep_protocol.commands.command_vocabulary import Connector
    from lockstep_protocol.names import progress_topic

    topic, connector, group = names
    control = settings.control
    # The names of a resource of Strimzi's are no dedicated MM2's.
    dedicated = control.progress_connector == Connector.SOURCE.value
    kept = control.offset_storage_topic if dedicated else progress_topic(settings.flow)
    place = offset_location(
        origin, settings.flow, settings.group_id, kept, topic=topic, connector=connector, group=group
    )
    return _unwatched(place, connector_stopped)


def _unwatched(place: OffsetLocation, connector_stopped: bool) -> OffsetLocation:
    if connector_stopped and place.origin != "connect":
        raise CannotUse("--connector-stopped is for a Connect cluster, whose workers run other connectors too")
    return replace(place, watched=not connector_stopped)


def _can_be_asked(need_not: bool, output: str) -> None:
    """Raises CannotUse where nobody can be asked: at once, not below a long plan. `need_not`: nobody has to be."""
    if not need_not and (output == "json" or not sys.stdin.isatty()):
        raise CannotUse("nobody can be asked here, and nothing was done: say --yes, or --dry-run to look only")


def _confirm(yes: bool, question: str) -> None:
    """Raises CannotUse on a no."""
    if not yes and not click.confirm(question, err=True):
        raise CannotUse("nothing was done")


def _goes_on(
    plan: TakeoverPlan | HandBack, shown: Iterable[RenderableType], question: str, dry_run: bool, yes: bool, output: str
) -> bool:
    """Show a plan to people, and whether it is to be carried out. Raises as `_confirm`."""
    if output == "text":
        _show(shown)
    if plan.refusals or dry_run:
        return False
    _confirm(yes, question)
    return True


def _end(plan: TakeoverPlan | HandBack, output: str, *, done: bool, done_text: str = "") -> int:
    """`done_text`: what people are told when it is done."""
    if output == "json":
        click.echo(json.dumps({**plan.as_json(), "done": done}, indent=2, ensure_ascii=False))
    for refusal in plan.refusals:
        click.echo(f"refused: {refusal}", err=True)
    if output == "text" and done_text:
        click.echo(done_text)
    return Exit.TROUBLE if plan.refusals else Exit.FINE


def _show(parts: Iterable[RenderableType]) -> None:
    from lockstep_cli.status import console

    screen = console()
    for part in parts:
        screen.print(part)
