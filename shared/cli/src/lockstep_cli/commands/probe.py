"""`lockstep probe`: checks of `lockstep doctor` that say whether a flow works, with exit codes of their own."""

import os
import time
from pathlib import Path

import click

from lockstep_cli.command_group import CliCommand
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.commands.doctor import examine
from lockstep_cli.options import file_argument, output_option, shown_flows_option
from lockstep_ops.doctor.checks.check import Category
from lockstep_ops.doctor.checks.options import DoctorOptions
from lockstep_ops.doctor.checks.report import ProbeReport

HELP = """\
Ask both clusters of each flow of FILE, with the credentials in it, whether the flow can do its work. If the flow has
heartbeats, then wait until one arrives on the target.

\b
  lockstep probe mm2.properties
  lockstep probe mm2.properties --flow 'A->B' --canary-topic canary

These are checks of `lockstep doctor`, in its lines and its JSON: names, connection, tls, login, cluster, rights and
flow. Brokers are asked what we may do (topics that are not there yet cannot be asked about). Nothing is written, but
for --canary-topic: a record to that topic on the source, which is then waited for on the target.
"""

EXIT_CODES = """\b
Exit codes:
  0  all is well
  1  a permission is missing, two aliases are one cluster, or nothing arrived in time; each in a line of its own
  2  FILE or the arguments cannot be used
  3  a cluster cannot be reached, or does not answer in time"""

CATEGORIES = (
    Category.NAMES,
    Category.CONNECTION,
    Category.TLS,
    Category.LOGIN,
    Category.CLUSTER,
    Category.RIGHTS,
    Category.FLOW,
)


@click.command(
    cls=CliCommand,
    name="probe",
    short_help="Reach both clusters, ask for rights, see a heartbeat.",
    help=HELP,
    epilog=EXIT_CODES,
)
@file_argument
@shown_flows_option
@click.option("--canary-topic", help="Also write a record to this topic of the source, and wait for its copy.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    help="Seconds for all of it: to reach the clusters, to ask them, and to wait for what is to arrive.",
)
@output_option
@asynchronous
async def command(file: Path, flows: tuple[str, ...], canary_topic: str | None, timeout: float, output: str) -> int:
    from lockstep_cli.flow_selection import select_flows
    from lockstep_config import load
    from lockstep_ops.doctor import examination  # noqa: F401 - the time begins when the imports are over

    configuration = load(file, os.environ)
    flow_settings = select_flows(configuration, flows, all_enabled=not flows)
    options = DoctorOptions(
        timeout, CATEGORIES, canary_topic, ends_at=time.monotonic() + timeout, awaits_heartbeat=True
    )
    return await examine(configuration, flow_settings, options, output, ProbeReport)
