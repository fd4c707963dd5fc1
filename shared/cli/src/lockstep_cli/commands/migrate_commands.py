"""`lockstep takeover` and `lockstep handback`: from MirrorMaker 2 to Lockstep, and back."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lockstep_cli.command_group import CliCommand
from lockstep_cli.command_runner import ask_yes_or_no, asynchronous
from lockstep_cli.options import (
    answer_timeout_option,
    dry_run_option,
    file_argument,
    flow_option,
    gather_options,
    output_option,
    yes_option,
)
from lockstep_cli.rendering.result import print_document, print_parts
from lockstep_ops.exit_codes import CannotUse, Exit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from lockstep_config import FlowSettings
    from lockstep_ops.takeover.handback import HandBack
    from lockstep_ops.takeover.offset_location import OffsetLocation
    from lockstep_ops.takeover.takeover import TakeoverPlan

EXIT_CODES = """\b
Exit codes:
  0    done, or with --dry-run: could be done
  1    refused; the lines say why, and nothing was written
  2    FILE or the arguments cannot be used
  3    a cluster cannot be reached, or a service does not answer"""


@dataclass(frozen=True, slots=True)
class LocationOptions:
    """The place of MM2's offsets, as the command line names it."""

    origin: str | None
    offsets_topic: str | None
    connector: str | None
    group: str | None
    connector_stopped: bool

    @property
    def is_empty(self) -> bool:
        return not any((self.origin, self.offsets_topic, self.connector, self.group))

    def location(self, settings: "FlowSettings") -> "OffsetLocation":
        from lockstep_ops.takeover.offset_location import offset_location
        from lockstep_state.commands.command_vocabulary import Connector
        from lockstep_state.names import progress_topic

        control = settings.control
        # The names of a resource of Strimzi's are no dedicated MM2's.
        dedicated = control.progress_connector == Connector.SOURCE.value
        location = offset_location(
            self.origin or "dedicated",
            settings.flow,
            settings.group_id,
            control.offset_storage_topic if dedicated else progress_topic(settings.flow),
            topic=self.offsets_topic,
            connector=self.connector,
            group=self.group,
        )
        return self.watched(location)

    def watched(self, location: "OffsetLocation") -> "OffsetLocation":
        """Return the same place, whose workers are watched unless only the connector has stopped.

        Raises:
            CannotUse: `--connector-stopped` is not for this kind of MM2.
        """
        if self.connector_stopped and location.origin != "connect":
            raise CannotUse("--connector-stopped is for a Connect cluster, whose workers run other connectors too")
        return replace(location, watched=not self.connector_stopped)


def _location_options(way: str, about: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the options of the place of MM2's offsets. `way` is the option that names the kind of MM2."""
    return gather_options(
        "location_options",
        LocationOptions,
        click.option(way, "origin", type=click.Choice(["dedicated", "strimzi", "connect"]), help=about),
        click.option("--offsets-topic", help="Connect's offset.storage.topic, on the target."),
        click.option("--connector", help="The name of its source connector."),
        click.option("--group", help="Its Connect workers' group.id."),
        click.option(
            "--connector-stopped",
            is_flag=True,
            help="Connect's workers run on, with other connectors, and you have stopped this one "
            "(PUT /connectors/NAME/stop).",
        ),
    )


@dataclass(frozen=True, slots=True)
class Consent:
    """The consent to a plan, and how the plan is shown."""

    dry_run: bool
    yes: bool
    output: str

    def check(self) -> None:
        """Check that a terminal can give the answer if one is needed.

        It is called at the beginning, so that the error does not come below a long plan.

        Raises:
            CannotUse: Nobody can be asked.
        """
        if not (self.dry_run or self.yes) and (self.output != "text" or not sys.stdin.isatty()):
            raise CannotUse("nobody can be asked here, and nothing was done: say --yes, or --dry-run to look only")

    def confirm(self, question: str) -> None:
        """Ask a question unless the command line consents already.

        Raises:
            CannotUse: The answer is no.
        """
        if not self.yes and not ask_yes_or_no(question):
            raise CannotUse("nothing was done")

    def is_given(self, plan: "TakeoverPlan | HandBack", parts: "Iterable[RenderableType]", question: str) -> bool:
        """Show a plan to people, and return whether it is to be carried out. Raises as `confirm`."""
        if self.output == "text":
            print_parts(parts)
        if plan.refusals or self.dry_run:
            return False
        self.confirm(question)
        return True

    def end(self, plan: "TakeoverPlan | HandBack", done_text: str = "") -> int:
        """Print the end of the command, and return its exit code. `done_text` is the message when the plan is done."""
        from lockstep_cli.rendering.findings import print_refusals
        from lockstep_state.reasons.reason_catalogue import format_sentence

        print_document({**plan.as_json(), "done": bool(done_text)}, self.output)
        print_refusals(map(format_sentence, plan.refusals))
        if self.output == "text" and done_text:
            click.echo(done_text)
        return Exit.TROUBLE if plan.refusals else Exit.FINE


consent_options = gather_options(
    "consent",
    Consent,
    dry_run_option,
    yes_option,
)


@click.command(cls=CliCommand, short_help="Continue where a stopped MirrorMaker 2 left off.", epilog=EXIT_CODES)
@file_argument
@flow_option
@_location_options("--from", "The kind of MirrorMaker 2.")
@consent_options
@answer_timeout_option
@output_option
@asynchronous
async def takeover(
    file: Path, flow: str | None, location_options: LocationOptions, consent: Consent, timeout: float
) -> int:
    """Continue where a stopped MirrorMaker 2 left off. No record is lost. None is copied again if
    MirrorMaker 2 was stopped, not killed.

    Shows first what it would do: where each topic continues, how many records are still to be copied, and which
    partitions begin anew. Refuses while that MirrorMaker 2 runs. Afterwards start Lockstep.

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
    from lockstep_cli.flow_selection import choose_one_flow
    from lockstep_cli.rendering.migration import takeover_parts
    from lockstep_ops.takeover.takeover import plan_takeover
    from lockstep_ops.takeover.takeover_io import carry_out_takeover, read_takeover_state

    consent.check()
    settings = choose_one_flow(file, flow)
    plan = plan_takeover(await read_takeover_state(settings, location_options.location(settings)))
    if not consent.is_given(plan, takeover_parts(plan), f"Take {settings.flow} over so?"):
        return consent.end(plan)
    await carry_out_takeover(settings, plan, timeout)
    start = f"lockstep resume {file} --flow '{settings.flow}'" if plan.resume else f"lockstep run {file}"
    return consent.end(plan, f"{settings.flow} is taken over. Start it now: {start}")


@click.command(
    cls=CliCommand, short_help="Return a flow to MirrorMaker 2, which continues where Lockstep is.", epilog=EXIT_CODES
)
@file_argument
@flow_option
@_location_options("--to", "The kind of MirrorMaker 2. Default: where the flow was taken over from, else dedicated.")
@click.option("--stop", is_flag=True, help="Stop the flow first, and wait until it has drained.")
@consent_options
@answer_timeout_option
@output_option
@asynchronous
async def handback(
    file: Path, flow: str | None, location_options: LocationOptions, stop: bool, consent: Consent, timeout: float
) -> int:
    """Leave a flow to MirrorMaker 2 where Lockstep is: writes the last progress where it looks for it, and reads it
    back. Only when the flow is stopped and has drained. Asked twice it changes nothing the second time.

    \b
    Examples:
      lockstep handback mm2.properties --flow 'A->B' --stop
      lockstep handback mm2.properties --flow 'A->B' --to strimzi --dry-run
    """
    from lockstep_cli.flow_selection import choose_one_flow
    from lockstep_cli.rendering.migration import hand_back_parts
    from lockstep_cli.rendering.progress_display import show_outstanding
    from lockstep_ops.clusters import REFUSED_S
    from lockstep_ops.command_request import CommandReply, command_request, exit_code
    from lockstep_ops.takeover.handback import plan_hand_back
    from lockstep_ops.takeover.takeover_io import (
        carry_out_hand_back,
        find_handover_location,
        flow_rows,
        read_hand_back_state,
        stop_and_drain,
    )
    from lockstep_state.commands.command_vocabulary import FLOW, STOP

    consent.check()
    settings = choose_one_flow(file, flow)
    taken_over_from = find_handover_location(await flow_rows(settings)) if location_options.is_empty else None
    location = location_options.watched(taken_over_from) if taken_over_from else location_options.location(settings)
    if stop and not consent.dry_run:
        consent.confirm(f"Stop {settings.flow} and hand it back to {location}?")
        consent = replace(consent, yes=True)
        reply = CommandReply(command_request(settings, STOP, FLOW))
        with show_outstanding([reply]):
            await stop_and_drain(settings, location, reply, timeout)
        if (stop_code := exit_code([reply])) is not Exit.FINE:
            print_parts(reply.as_lines(), stderr=True)
            return stop_code
    state = await read_hand_back_state(settings, location, refused_s=REFUSED_S)
    plan = plan_hand_back(state, stops_first=stop and consent.dry_run)
    if not consent.is_given(plan, hand_back_parts(plan), f"Hand {settings.flow} back so?"):
        return consent.end(plan)
    await carry_out_hand_back(settings, plan, timeout)
    return consent.end(plan, f"{settings.flow} is handed back: {location} says where to go on. Start MirrorMaker 2 now")


COMMANDS = (takeover, handback)
