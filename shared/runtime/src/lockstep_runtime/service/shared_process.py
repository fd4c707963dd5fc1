"""Several services in one process, as `lockstep run` starts the control services.

They load the same libraries, which are most of what each process holds. Each has its own pages, membership, lead and
restart, as in a process of its own (`docs/decisions/0064-control-services-share-a-process.md`).
"""

from pkgutil import resolve_name
from typing import Any

import click

from lockstep_runtime.service.cli import EPILOG, WIDE, process_options, run_process
from lockstep_runtime.service.definition import CONTROL_SERVICES

ABOUT = """Run several services in this process. `lockstep run` starts it; a service of one's own is started by its own
command."""


@click.command(name=f"lockstep-{CONTROL_SERVICES}", help=ABOUT, epilog=EPILOG, context_settings=WIDE)
@click.option(
    "--service",
    "modules",
    metavar="MODULE",
    multiple=True,
    required=True,
    help="The package of a service, such as lockstep_heartbeat; repeat for more.",
)
@process_options
def main(modules: tuple[str, ...], **arguments: Any) -> None:
    """Run the named services in this process."""
    run_process(CONTROL_SERVICES, [resolve_name(f"{module}.__main__:SERVICE") for module in modules], **arguments)


if __name__ == "__main__":
    main()
