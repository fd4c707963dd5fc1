"""`lockstep watch`: every record of a flow's control topics, decoded as it happens."""

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockstep_cli.command_group import CliCommand
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.options import CLUSTERS_S, file_argument, output_option, shown_flows_option, timeout_option
from lockstep_cli.rendering.result import discard_output, print_result
from lockstep_ops.exit_codes import Exit

if TYPE_CHECKING:
    from lockstep_config import FlowSettings
    from lockstep_kafka.topics.topic_reader import Record
    from lockstep_ops.control_topics import ControlTopic
    from lockstep_ops.record_decoder import DecodedRecord, RowChanges

TOPICS = ("events", "state", "commands", "checkpoints", "offset-syncs", "heartbeats", "offsets", "quarantine")
"""`record_decoder.ROLES`, which is not imported for --help."""

RECHECK_INTERVAL_S = 2.0
"""The seconds after which a topic that does not exist is looked for again."""

HELP = """\
Show what happens in flows: each record of every topic that Lockstep and MirrorMaker 2 keep, decoded, until Ctrl-C.

\b
Examples:
  lockstep watch mm2.properties
  lockstep watch mm2.properties --topic events --kind PartitionHalted --from beginning
  lockstep watch mm2.properties --topic state --kind partition --output json

\b
TOPIC is one of
  events        what happened
  state         rows: what is so now, shown as what changes
  commands      what operators asked
  checkpoints   translated offsets of groups              (MirrorMaker 2's)
  offset-syncs  which offset of the target is which       (MirrorMaker 2's)
  heartbeats    that the flow lives                       (MirrorMaker 2's)
  offsets       how far Connect's connectors have copied  (MirrorMaker 2's)
  quarantine    records that the target refused

With --output json each record is one line, with --output yaml one document.

A record that is not what its topic should hold is shown as `undecoded`. Records of one partition are in order, those
of several topics as they arrive.
"""


EXIT_CODES = """\b
Exit codes:
  0  ended by Ctrl-C or SIGTERM; with --no-follow: all is shown
  1  a cluster does not permit it
  2  FILE or the arguments cannot be used
  3  the target cannot be reached when it begins; with --no-follow: a cluster does not answer, and the rest is shown"""


@click.command(
    cls=CliCommand,
    name="watch",
    short_help="Show every control topic, decoded as it happens.",
    help=HELP,
    epilog=EXIT_CODES,
)
@file_argument
@shown_flows_option
@click.option("--topic", "topics", multiple=True, type=click.Choice(TOPICS), help="Only this; repeat for more.")
@click.option("--kind", "kinds", multiple=True, help="Only this kind of event, row or record; repeat for more.")
@click.option(
    "--from", "start", type=click.Choice(["beginning", "end"]), default="end", show_default=True, help="Where to begin."
)
@click.option("--no-follow", is_flag=True, help="End when all that is there has been shown.")
@timeout_option(CLUSTERS_S)
@output_option
@asynchronous
async def command(
    file: Path,
    flows: tuple[str, ...],
    topics: tuple[str, ...],
    kinds: tuple[str, ...],
    start: str,
    no_follow: bool,
    timeout: float,
    output: str,
) -> int:
    from lockstep_cli.flow_selection import choose_flows
    from lockstep_kafka.common.asyncio_util import run_unless_set
    from lockstep_ops.clusters import REFUSED_S, target_client

    flow_settings = choose_flows(file, flows, all_enabled=not flows)
    screen = _Screen(output, frozenset(kind.lower() for kind in kinds), len(flow_settings) > 1)
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signal_number, screen.closed.set)
    # Here a target that does not answer ends it; later it is waited for.
    targets = (target_client(settings, refused_s=REFUSED_S) for settings in flow_settings)
    await asyncio.gather(*(target.probe(timedelta(seconds=timeout)) for target in targets))
    views = [
        view for settings in flow_settings for view in _views(settings, topics or TOPICS, screen, start == "beginning")
    ]
    missing, away = await _missing_topics(views)
    if no_follow:  # else a source that is away is waited for
        for trouble in away.values():
            click.echo(f"{trouble}: its topics are not shown", err=True)
        views = [view for view in views if view.topic.alias not in away]
    click.echo(_what_is_watched(views, missing, no_follow), err=True)

    async def follow() -> None:
        await asyncio.gather(*(_show(view, no_follow) for view in views))

    await run_unless_set(screen.closed, follow())
    if any(view.denied for view in views):
        return Exit.TROUBLE
    return Exit.NO_ANSWER if no_follow and away else Exit.FINE


@dataclass(slots=True)
class _View:
    """One topic of one flow on the screen."""

    settings: "FlowSettings"
    topic: "ControlTopic"
    screen: "_Screen"
    from_beginning: bool
    rows: "RowChanges"
    showing: bool = False
    """True once records are shown.

    Rows that the topic had before are only read: what comes later is compared with them.
    """
    denied: bool = False
    """True if the topic may not be read."""

    def apply(self, records: "Sequence[Record]") -> None:
        from lockstep_ops.record_decoder import decode

        for record in records:
            if self.topic.role == "state":
                decoded = self.rows.decode(record.key, record.value)
            else:
                decoded = decode(self.topic.role, record.key, record.value)
            if decoded is not None and self.showing and self._is_ours(decoded):
                self.screen.show(str(self.settings.flow), self.topic.role, record, decoded)

    def _is_ours(self, decoded: "DecodedRecord") -> bool:
        """Return whether a record is of this flow. All flows into a cluster, and all of MM2's, beat in one topic."""
        beats = self.topic.role == "heartbeats" and decoded.kind == "heartbeat"
        return not beats or decoded.about == str(self.settings.aliases)


def _views(settings: "FlowSettings", roles: Sequence[str], screen: "_Screen", from_beginning: bool) -> list[_View]:
    from lockstep_ops.control_topics import control_topics
    from lockstep_ops.record_decoder import RowChanges

    topics = control_topics(settings, "watch")
    return [_View(settings, topics[role], screen, from_beginning, RowChanges()) for role in roles]


async def _missing_topics(views: Sequence[_View]) -> tuple[frozenset[tuple[str, str]], dict[str, str]]:
    """Return the clusters and topics of these that do not exist, and why clusters do not answer, by alias."""
    from lockstep_kafka.common.errors import ClusterError
    from lockstep_ops.clusters import REFUSED_S, source_client, target_client

    views_by_cluster: dict[tuple[str, str], list[_View]] = {}
    for view in views:
        views_by_cluster.setdefault((str(view.settings.flow), view.topic.alias), []).append(view)
    missing: set[tuple[str, str]] = set()
    away: dict[str, str] = {}

    async def look(alias: str, of_cluster: Sequence[_View]) -> None:
        settings = of_cluster[0].settings
        make_client = target_client if alias == settings.flow.target else source_client
        try:
            names = await make_client(settings, refused_s=REFUSED_S).topic_names()
        except ClusterError as exc:
            away[alias] = str(exc)
            return
        missing.update((alias, view.topic.name) for view in of_cluster if view.topic.name not in names)

    await asyncio.gather(*(look(alias, of_cluster) for (_, alias), of_cluster in views_by_cluster.items()))
    return frozenset(missing), away


def _what_is_watched(views: Sequence[_View], missing: frozenset[tuple[str, str]], no_follow: bool) -> str:
    """Return one line that says which topics are shown, and which do not exist."""
    present = sorted({view.topic.name for view in views if (view.topic.alias, view.topic.name) not in missing})
    parts = [f"watching {', '.join(present)}"] if present else []
    for alias in sorted({alias for alias, _ in missing}):
        names = ", ".join(sorted(topic for topic_alias, topic in missing if topic_alias == alias))
        waiting = f"waiting for {names}, which {alias} does not have yet"
        parts.append(f"{alias} has no topic {names}: nothing to show" if no_follow else waiting)
    return "; ".join(parts if no_follow else [*parts, "Ctrl-C ends it"])


async def _show(view: _View, no_follow: bool) -> None:
    """Follow one topic, also if it is created, or created again, later."""
    from lockstep_config.credentials.permissions import needed_access
    from lockstep_kafka.common.errors import LogTruncated, NotPermitted, TopicMissing
    from lockstep_kafka.topics.topic_follower import TopicFollower
    from lockstep_ops.status.state_topic_rows import SILENT_S

    access = needed_access(view.settings, view.topic.alias)
    from_beginning = view.from_beginning or view.topic.role == "state"
    view.showing = view.from_beginning
    while True:
        follower = TopicFollower(
            view.topic.conf,
            view.topic.name,
            on_records=view.apply,
            from_beginning=from_beginning,
            alias=view.topic.alias,
            access=access,
        )
        try:
            async with follower:
                await follower.caught_up(silent_s=SILENT_S if no_follow else None)
                view.showing = True
                if no_follow:
                    return
                await follower.failed()
                return
        except TopicMissing:
            if no_follow:
                return
        except NotPermitted as exc:  # the other topics may be read all the same
            click.echo(str(exc), err=True)
            view.denied = True
            return
        except LogTruncated as exc:
            click.echo(str(exc), err=True)
        view.showing = from_beginning = True  # what comes now is new
        await asyncio.sleep(RECHECK_INTERVAL_S)


@dataclass(slots=True)
class _Screen:
    """The standard output. `closed` is set when it has no reader any more."""

    output: str
    kinds: frozenset[str]
    """The kinds that are shown. Empty: all."""
    several_flows: bool
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    def show(self, flow: str, role: str, record: "Record", decoded: "DecodedRecord") -> None:
        from lockstep_ops.control_topics import record_as_json

        if (self.kinds and decoded.kind.lower() not in self.kinds) or self.closed.is_set():
            return
        try:
            text = [self._as_text(flow, role, record, decoded)] if self.output == "text" else []
            print_result(self.output, text, lambda: record_as_json(flow, role, record, decoded), in_stream=True)
        except BrokenPipeError:
            discard_output()
            self.closed.set()

    def _as_text(self, flow: str, role: str, record: "Record", decoded: "DecodedRecord") -> str:
        from lockstep_state.codecs.mm2_codec import LATEST_MS

        moment = datetime.fromtimestamp(min(max(0, record.timestamp_ms), LATEST_MS) / 1000).astimezone()
        colour = "red" if decoded.kind == "undecoded" else "cyan"
        columns = [
            click.style(moment.strftime("%H:%M:%S.%f")[:-3], dim=True),
            click.style(flow, fg="magenta") if self.several_flows else "",
            click.style(role.ljust(12), dim=True),
            click.style(decoded.kind, fg=colour),
            click.style(decoded.about, bold=True),
            decoded.text,
        ]
        return "  ".join(column for column in columns if column)
