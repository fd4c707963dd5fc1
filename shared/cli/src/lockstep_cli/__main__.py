"""The `lockstep` command. Each subcommand imports what it needs when it runs, so that `--help` answers at once."""

import os
from pathlib import Path

import click

from lockstep_cli import completion
from lockstep_cli.command_group import CliCommand, CommandGroup
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.commands import (
    config,
    console,
    control_commands,
    doctor,
    explain,
    legacy,
    migrate_commands,
    offsets,
    plan,
    probe,
    rack,
    status,
    switch,
    transform,
    verify,
    version,
    watch,
)
from lockstep_cli.options import file_argument, run_options
from lockstep_runtime.http.access import AccessPolicy

RUN_EXIT_CODES = """\b
Exit codes:
  0    a clean end
  1    a service had to be killed
  2    FILE cannot be used, a service or Java is missing, or PLAN does not hold any more
  3    the target refused a record of a legacy flow that is to end then
  130  ended at once by a second Ctrl-C"""


@click.command(cls=CliCommand, short_help="Run everything for FILE in this terminal.", epilog=RUN_EXIT_CODES)
@file_argument
@run_options
@click.option(
    "--plan",
    "planned",
    type=click.Path(path_type=Path),
    metavar="PLAN",
    help="A plan of FILE (lockstep plan --out PLAN). Start only if FILE and the clusters are what it relies on.",
)
@click.option(
    "--processes", "apart", is_flag=True, help="Run each service in a process of its own, with 150 MiB more memory."
)
@click.option("--console", "with_console", is_flag=True, help="Show the flows in a browser too (lockstep console).")
@asynchronous
async def run(
    file: Path,
    access: AccessPolicy,
    port: int | None,
    log_level: str | None,
    log_format: str,
    planned: Path | None,
    apart: bool,
    with_console: bool,
) -> int:
    """Run all services of all flows of FILE (mm2.properties, or Strimzi's YAML) in this terminal.

    The data plane has a process of its own, all other services share one. What crashes is started again. Ctrl-C or
    SIGTERM lets everything drain and end within ten seconds, a second Ctrl-C ends it at once. Nothing is lost either
    way: the next run continues where this one ended.

    One address has the pages and the metrics of all services: http://127.0.0.1:9404/ lists them. No file is written:
    all state lives in Kafka.

    \b
    Examples:
      lockstep run mm2.properties
      lockstep run mm2.properties --console
      lockstep run mm2.properties --plan plan.json
    """
    from lockstep_cli.processes import run as running

    if planned is not None:
        from lockstep_ops.plan.plan_guard import require_unchanged

        running.check(file, os.environ)
        await require_unchanged(planned, file)
    return await running.run(
        file,
        access=access,
        port=port,
        log_level=log_level,
        log_format=log_format,
        apart=apart,
        with_console=with_console,
    )


SECTIONS = {
    "Start, in this order": (config.command, doctor.command, plan.command, run),
    "Look": (status.command, watch.command, console.command, verify.command),
    "Control": (*control_commands.COMMANDS, offsets.command),
    "Migrate": (*migrate_commands.COMMANDS, legacy.command),
    "Switch": switch.COMMANDS,
    "Other": (transform.command, explain.command, probe.command, version.command, completion.command, rack.command),
}


@click.group(
    cls=CommandGroup,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="lockstep-kafka-cli", prog_name="lockstep", message="%(prog)s %(version)s")
def main() -> None:
    """Keep Kafka clusters in step: topics, records, ACLs and consumer-group positions of one cluster appear on another.

    Lockstep reads MirrorMaker 2's configuration and writes its formats. The smallest file, two clusters and one flow:

    \b
        clusters = A, B
        A.bootstrap.servers = a.example.org:9092
        B.bootstrap.servers = b.example.org:9092
        A->B.enabled = true
        A->B.topics = orders.*

    \b
    Then, as mm2.properties:
        lockstep config check mm2.properties    every mistake in the file
        lockstep doctor mm2.properties          clusters, rights, and the path of a record
        lockstep plan mm2.properties            what would be created and copied
        lockstep run mm2.properties             copy
        lockstep status mm2.properties          how far it is

    If LOCKSTEP_FILE=mm2.properties is in the environment, FILE may be left out.
    """


if __name__ == "__main__":
    main()
