"""`lockstep offsets list|alter|reset`: where MM2's connectors go on, in the shape of Connect's REST API."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lockstep_cli.command_group import CommandGroup
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.commands.control_commands import EXIT_CODES
from lockstep_cli.completion import complete_topics
from lockstep_cli.options import (
    answer_timeout_option,
    dry_run_option,
    file_argument,
    file_before,
    flow_option,
    gather_options,
    output_option,
)
from lockstep_cli.rendering.result import print_document, print_result
from lockstep_ops.exit_codes import CannotUse, Exit
from lockstep_state.commands.command_vocabulary import OFFSETS_ALTER, OFFSETS_LIST, OFFSETS_RESET, VERBS

if TYPE_CHECKING:
    from lockstep_config import FlowSettings
    from lockstep_ops.command_request import CommandReply
    from lockstep_state.commands.command_vocabulary import Connector, Scope

SOURCE = "MirrorSourceConnector"


@dataclass(frozen=True, slots=True)
class OffsetsOptions:
    """The options of a command about offsets: which connector of which flow, and how the answer is shown."""

    file: Path
    flow: str | None
    connector: str
    timeout: float
    output: str

    def settings(self) -> "FlowSettings":
        from lockstep_cli.flow_selection import choose_one_flow

        return choose_one_flow(self.file, self.flow)

    def scope(self) -> "Scope":
        from lockstep_ops.command_request import command_scope

        return command_scope(f"connector:{self.connector}")

    async def ask(self, settings: "FlowSettings", verb: str, request: dict[str, Any] | None = None) -> "CommandReply":
        from lockstep_cli.rendering.progress_display import show_outstanding
        from lockstep_ops.command_client import ask
        from lockstep_ops.command_request import CommandReply, command_request

        reply = CommandReply(command_request(settings, verb, self.scope(), request))
        with show_outstanding([reply]):
            await ask(settings, reply, self.timeout)
        return reply

    def show(self, reply: "CommandReply") -> int:
        """Print the reply, and return the exit code."""
        from lockstep_ops.command_request import exit_code

        print_result(self.output, reply.as_lines(), reply.as_json)
        return exit_code([reply])


topic_option = click.option(
    "--topic", shell_complete=complete_topics, help="A topic by its name on the source, with --partition."
)
partition_option = click.option("--partition", type=click.IntRange(min=0), help="One of its partitions.")
offsets_options = gather_options(
    "options",
    OffsetsOptions,
    flow_option,
    click.option(
        "--connector", default=SOURCE, show_default=True, help="Or MirrorCheckpointConnector, MirrorHeartbeatConnector."
    ),
    answer_timeout_option,
    output_option,
)


@click.group(name="offsets", cls=CommandGroup, short_help="List, alter or reset the offsets of a flow.")
def command() -> None:
    """Where a flow's connectors continue: the offset of the last record that was copied, for each source partition. The
    format is that of Connect's REST API (GET, PATCH and DELETE /connectors/NAME/offsets).

    They are changed only while the connector is stopped:

    \b
      lockstep stop mm2.properties connector:MirrorSourceConnector
      lockstep offsets list mm2.properties
      lockstep offsets alter mm2.properties --topic orders --partition 0 --offset 4711
      lockstep resume mm2.properties connector:MirrorSourceConnector
    """


@command.command(name="list", short_help=VERBS[OFFSETS_LIST].summary, epilog=EXIT_CODES)
@file_argument
@offsets_options
@asynchronous
async def list_(options: OffsetsOptions) -> int:
    """Show the offset of the last record copied of every source partition.

    With --output json it is what `alter` reads:

    \b
      lockstep offsets list mm2.properties --output json > offsets.json
    """
    settings = options.settings()
    reply = await options.ask(settings, OFFSETS_LIST)
    answers = [event for event in reply.heard.values() if event not in reply.refusals]
    if not answers:
        return options.show(reply)
    detail = answers[0].detail
    entries: list[dict[str, Any]] = detail.get("offsets", [])
    left_out: int = detail.get("left_out", 0)
    if options.output != "text":
        print_document({"offsets": entries, **({"left_out": left_out} if left_out else {})}, options.output)
    else:
        for entry in entries:
            fields = " ".join(f"{key}={value}" for key, value in entry["partition"].items())
            click.echo(f"{fields}  offset {entry['offset']['offset']}")
        if not entries:
            click.echo(f"{settings.flow}: {options.connector} has no offsets")
    if left_out:
        click.echo(f"and {left_out:,} more, which an answer has no room for: this is not all", err=True)
        return Exit.TROUBLE
    return Exit.FINE


@command.command(short_help=VERBS[OFFSETS_ALTER].summary, epilog=EXIT_CODES)
@file_before(lambda _, values: not isinstance(values.get("topic"), str))
@click.argument("request", required=False, type=click.File("r"))
@topic_option
@partition_option
@click.option(
    "--offset", type=click.IntRange(min=0), help="Of the last record that counts as copied: the next one follows."
)
@offsets_options
@dry_run_option
def alter(
    options: OffsetsOptions, request: Any, topic: str | None, partition: int | None, offset: int | None, dry_run: bool
) -> None:
    """Change offsets: those of REQUEST (a file, or - for standard input), or that of one partition. All of a request
    or, if one entry is wrong, nothing.

    \b
    Examples:
      lockstep offsets alter mm2.properties --topic orders --partition 0 --offset 4711
      lockstep offsets alter mm2.properties offsets.json
      echo '{"offsets": [{"partition": {"cluster": "A", "topic": "orders", "partition": 0},
                          "offset": {"offset": 4711}}]}' | lockstep offsets alter mm2.properties -

    Records after the offset are copied, also when they were copied before: an offset further back doubles them, one
    further on leaves some out. That is what you ask for here.
    """
    by_options = (topic, partition, offset)
    if (request is None) == (None in by_options) or (request is not None and by_options != (None, None, None)):
        raise click.UsageError("give REQUEST, or --topic, --partition and --offset together")
    body = None if request is None else request.read()
    _change(options, body, by_options, dry_run)


@command.command(short_help=VERBS[OFFSETS_RESET].summary, epilog=EXIT_CODES)
@file_argument
@topic_option
@partition_option
@offsets_options
@dry_run_option
def reset(options: OffsetsOptions, topic: str | None, partition: int | None, dry_run: bool) -> None:
    """Forget offsets, all of the connector's or that of one partition. It then begins where its first copy would
    (lockstep.start.timestamp, auto.offset.reset), and doubles what is there already.

    \b
    Examples:
      lockstep offsets reset mm2.properties --topic orders --partition 0
      lockstep offsets reset mm2.properties --connector MirrorHeartbeatConnector
    """
    if (topic is None) != (partition is None):
        raise click.UsageError("give --topic and --partition together, or neither to reset all")
    _change(options, None, (topic, partition, None), dry_run)


def build_request(
    connector: "Connector", source: str, body: str | None, topic: str | None, partition: int | None, offset: int | None
) -> dict[str, Any] | None:
    """Return the request that is meant, checked by MM2's rules, or None for all offsets.

    Args:
        connector: The connector.
        source: The alias of the source.
        body: The request as JSON, if one was given.
        topic: The topic of one partition, if one was given.
        partition: The number of that partition.
        offset: The offset of that partition. None resets it.

    Raises:
        CannotUse: The request is wrong.
    """
    from lockstep_state.codecs.connect_offsets import RefusedOffsets, parse_changes, source_request

    if body is not None:
        try:
            request = json.loads(body)
        except ValueError as exc:
            raise CannotUse(f"the request is not JSON: {exc}") from exc
    elif topic is not None:
        if connector.value != SOURCE:
            raise CannotUse(f"--topic and --partition are for the {SOURCE}: give a {connector.value} a REQUEST")
        request = source_request(source, topic, partition, offset)
    else:
        return None
    try:
        parse_changes(connector, request)
    except RefusedOffsets as exc:
        raise CannotUse(str(exc)) from exc
    checked: dict[str, Any] = request
    return checked


@asynchronous
async def _change(
    options: OffsetsOptions,
    body: str | None,
    by_options: tuple[str | None, int | None, int | None],
    dry_run: bool,
) -> int:
    settings, connector = options.settings(), options.scope().connector
    request = build_request(connector, settings.aliases.source, body, *by_options)
    verb = OFFSETS_RESET if request is None else OFFSETS_ALTER
    if dry_run:
        question = {"dry_run": True, "verb": verb, "connector": connector.value, "request": request}
        print_document(question, "json" if options.output == "text" else options.output)
        return Exit.FINE
    return options.show(await options.ask(settings, verb, request))
