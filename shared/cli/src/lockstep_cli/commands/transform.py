"""`lockstep transform check|try`: transforms before they run. Nothing is written anywhere."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockstep_cli.command_group import CommandGroup
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.completion import complete_topics
from lockstep_cli.options import (
    CLUSTERS_S,
    file_argument,
    flow_option,
    output_option,
    shown_flows_option,
    timeout_option,
)
from lockstep_cli.rendering.result import print_document, print_parts
from lockstep_ops.exit_codes import CannotUse, Exit

if TYPE_CHECKING:
    from lockstep_config import FlowSettings
    from lockstep_config.flow.transform_settings import TransformSettings
    from lockstep_ops.work_progress import WorkProgress
    from lockstep_state.codecs.transform_trial import TrialPartition, TrialRequest, TrialResult

MOST_RECORDS = 10_000

EXIT_CODES = """\b
Exit codes:
  0  every transform can be used
  1  a statement has mistakes or lacks a secret, or a function cannot be used
  2  FILE cannot be used, or the data plane or Java is missing
  3  Spark did not start"""

TRY_EXIT_CODES = """\b
Exit codes:
  0  each record could be transformed
  1  a record failed, or the statement or function has mistakes
  2  FILE or the arguments cannot be used, or the data plane or Java is missing
  3  the source did not answer, or Spark did not start
  4  there was no record"""


@click.group(name="transform", cls=CommandGroup, short_help="Check transforms, or try them on records.")
def command() -> None:
    """Check the transforms of a file, or try them on records, before they run. Nothing is written anywhere.

    \b
      lockstep transform check mm2.properties                        compile each, name every mistake
      lockstep transform try mm2.properties --topic customers        the first records before and after
      lockstep transform try mm2.properties --topic customers --records samples.jsonl
    """


@command.command(short_help="Compile or load each transform, and name every mistake.", epilog=EXIT_CODES)
@file_argument
@shown_flows_option
@click.option("--no-cost", is_flag=True, help="Do not measure what a call costs. It takes about 3 s a transform.")
@output_option
@asynchronous
async def check(file: Path, flows: tuple[str, ...], no_cost: bool, output: str) -> int:
    """Compile each statement of FILE in a JVM of its own, as the data plane does when it starts, and load each function
    in a process of its own. Each mistake has its place in the statement, and what may have been meant. For a transform
    that can be used: which columns a statement makes anew, what else changes with them, whether it filters records, its
    version, and what a call costs.

    No cluster is asked. A function is imported as this command finds it: run it where the data plane runs.

    \b
      lockstep transform check mm2.properties
      lockstep transform check mm2.properties --output json | jq '.transforms[].mistakes'
    """
    from lockstep_cli.flow_selection import choose_flows
    from lockstep_cli.rendering.transform import check_parts
    from lockstep_ops.transform.transform_check import (
        TransformCheck,
        exit_code,
        flows_without_topic,
        mistake_lines,
        transforms_of,
        trial_request,
    )

    chosen = choose_flows(file, flows, all_enabled=not flows)
    transforms = transforms_of(chosen)
    results = await _run_trial(file, [trial_request(transform, measured=not no_cost) for transform in transforms])
    if isinstance(results, Exit):
        return results
    checks = [
        TransformCheck(transform, flow_names, result, flows_without_topic(transform, chosen))
        for (transform, flow_names), result in zip(transforms.items(), results, strict=True)
    ]
    if output == "text":
        print_parts(
            (line for check in checks for mistake in check.mistakes for line in mistake_lines(check, mistake)),
            stderr=True,
        )
        print_parts(check_parts(file, checks))
    print_document({"file": str(file), "transforms": [check.as_json() for check in checks]}, output)
    return exit_code(checks)


@command.command(name="try", short_help="Show records before and after a transform.", epilog=TRY_EXIT_CODES)
@file_argument
@click.option(
    "--topic", required=True, shell_complete=complete_topics, help="The topic of the source. It selects the transform."
)
@flow_option
@click.option(
    "--limit",
    type=click.IntRange(1, MOST_RECORDS),
    default=20,
    show_default=True,
    help="The most records that are read.",
)
@click.option(
    "--from",
    "begin",
    type=click.Choice(["beginning", "end"]),
    default="beginning",
    show_default=True,
    help="The first records of the topic, or its last ones.",
)
@click.option(
    "--records",
    "record_file",
    type=click.Path(path_type=Path),
    metavar="RECORDS",
    help='Records of this file in place of the topic\'s, a line each: {"key": "k", "value": "text"}. '
    "No cluster is asked.",
)
@click.option("--values", is_flag=True, help="Keys, values and headers too. Without it only their sizes and digests.")
@timeout_option(CLUSTERS_S)
@output_option
@asynchronous
async def try_records(
    file: Path,
    topic: str,
    flow: str | None,
    limit: int,
    begin: str,
    record_file: Path | None,
    values: bool,
    timeout: float,
    output: str,
) -> int:
    """Read records of a topic and show each before and after its transform, side by side: what changes, what is
    dropped, and what fails with its reason.

    The records are evaluated in a JVM or a Python process of this command, as slots have it done. No group commits, no
    topic is created, and nothing is written to either cluster.

    \b
      lockstep transform try mm2.properties --topic customers --limit 20
      lockstep transform try mm2.properties --topic customers --from end --values
      lockstep transform try mm2.properties --topic customers --records samples.jsonl
    """
    from lockstep_cli.flow_selection import choose_one_flow
    from lockstep_cli.rendering.transform import try_parts
    from lockstep_ops.transform.transform_check import TransformCheck, mistake_lines, trial_request
    from lockstep_ops.transform.transform_try import counts, exit_code, tried_records
    from lockstep_ops.work_progress import WorkProgress

    settings = choose_one_flow(file, flow)
    transform = _transform_of(settings, topic)
    progress = WorkProgress(f"reading {topic}")
    partitions = await _read(settings, topic, limit, begin, record_file, timeout, progress)
    results = await _run_trial(file, [trial_request(transform, partitions)], progress)
    if isinstance(results, Exit):
        return results
    check = TransformCheck(transform, (str(settings.flow),), results[0])
    if check.mistakes:
        print_parts((line for mistake in check.mistakes for line in mistake_lines(check, mistake)), stderr=True)
        return Exit.TROUBLE
    records = tried_records(partitions, results[0].outcomes)
    if output == "text":
        print_parts(try_parts(topic, check, records, values=values))
    body = {
        "flow": str(settings.flow),
        "topic": topic,
        "transform": transform.name,
        "version": results[0].version,
        "counts": dict(counts(records)),
        "records": [record.as_json(values=values) for record in records],
    }
    print_document(body, output)
    return exit_code(records)


def _transform_of(settings: "FlowSettings", topic: str) -> "TransformSettings":
    """Return the transform of a topic. Raises CannotUse if there is none, or more than one."""
    if dispute := settings.transform_dispute(topic):
        raise CannotUse(dispute)
    transform = settings.data_plane.transform_of(topic)
    if transform is None:
        names = ", ".join(transform.name for transform in settings.data_plane.transforms) or "none"
        ruled = settings.record_rules(topic) is not None
        rules = ", and the rules of lockstep.filter or lockstep.headers that hold for it are not tried here"
        raise CannotUse(
            f"{settings.flow}: no transform selects {topic}{rules if ruled else ''}; transforms: {names}. Name the "
            "topic, as the source has it, in lockstep.transform.NAME.topics"
        )
    return transform


async def _read(
    settings: "FlowSettings",
    topic: str,
    limit: int,
    begin: str,
    record_file: Path | None,
    timeout: float,
    progress: "WorkProgress",
) -> "tuple[TrialPartition, ...]":
    from lockstep_cli.rendering.progress_display import ProgressDisplay
    from lockstep_ops.clusters import REFUSED_S, source_client
    from lockstep_ops.transform.record_file import read_record_file
    from lockstep_ops.transform.source_records import read_source_records

    if record_file is not None:
        return read_record_file(record_file, topic, limit)
    progress.total = limit

    def on_read(count: int) -> None:
        progress.done = count

    with ProgressDisplay(lambda: progress):
        await source_client(settings).require_open(for_s=REFUSED_S)  # the consumer would try again
        return await asyncio.to_thread(
            read_source_records,
            settings,
            topic,
            limit,
            from_end=begin == "end",
            silent_s=timeout,
            on_read=on_read,
        )


async def _run_trial(
    file: Path, requests: "Sequence[TrialRequest]", progress: "WorkProgress | None" = None
) -> "tuple[TrialResult, ...] | Exit":
    """Return the results, or the exit code of a trial that could not be run, after its reason was printed."""
    from lockstep_cli.rendering.progress_display import ProgressDisplay
    from lockstep_ops.transform.trial_process import TrialFailed, run_trial
    from lockstep_ops.work_progress import WorkProgress

    shown = progress or WorkProgress()
    try:
        with ProgressDisplay(lambda: shown):
            return await run_trial(file, requests, shown)
    except TrialFailed as exc:
        click.echo(str(exc), err=True)
        return Exit.NO_ANSWER
