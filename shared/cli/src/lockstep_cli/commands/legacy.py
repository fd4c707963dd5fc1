"""`lockstep legacy`: run in the place of `kafka-mirror-maker.sh`, with its files and options."""

from typing import Any

import click

from lockstep_cli.command_group import CliCommand
from lockstep_cli.command_runner import asynchronous
from lockstep_cli.options import run_options
from lockstep_runtime.http.access import AccessPolicy

HELP = """\
Run in the place of a MirrorMaker 1, with its own files and options.

\b
Instead of
  kafka-mirror-maker.sh --consumer.config consumer.properties \\
      --producer.config producer.properties --num.streams 2 --include 'orders.*,payments'
write
  lockstep legacy --consumer.config consumer.properties \\
      --producer.config producer.properties --num.streams 2 --include 'orders.*,payments'

Topics keep their names. The copy begins at the committed offsets of the consumer file's group.id, and commits to
that group as MirrorMaker 1 did. So tools that show lag continue to work, and MirrorMaker 1 can continue where this
ended. While a MirrorMaker 1 is still in the group nothing is copied. Stop it, and the copy begins by itself.

Records keep their partitions. MirrorMaker 2's and Lockstep's own keys are allowed in both files. What MirrorMaker 1
does not do, heartbeats, checkpoints, ACLs, configs, is off unless they turn it on.

More in docs/guides/migrate-from-mm1.md: moving over in five steps, and back.
"""

EXIT_CODES = """\b
Exit codes:
  0    a clean end
  1    a service had to be killed
  2    the files or options cannot be used, or a service or Java is missing
  3    the target refused a record, and --abort.on.send.failure is true: start it again when that is mended
  130  ended at once by a second Ctrl-C"""


def _options(command: Any) -> Any:
    from lockstep_runtime.service.mm1_options import legacy_options

    return legacy_options()(run_options(command))


@click.command(
    cls=CliCommand,
    name="legacy",
    short_help="Run in place of a MirrorMaker 1, with its files.",
    help=HELP,
    epilog=EXIT_CODES,
)
@_options
@asynchronous
async def command(access: AccessPolicy, port: int | None, log_level: str | None, log_format: str, **legacy: Any) -> int:
    from lockstep_cli.processes import run as running
    from lockstep_runtime.service.mm1_options import mm1_files

    files = mm1_files(legacy)
    if files is None:
        raise click.UsageError("Missing options '--consumer.config' and '--producer.config'.")
    return await running.run(files, access=access, port=port, log_level=log_level, log_format=log_format)
