"""`lockstep run FILE`: everything for a file in one terminal, the counterpart of `connect-mirror-maker.sh`."""

import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep_cli.options import CONSOLE_PORT
from lockstep_cli.processes.output import RUN, RunOutput
from lockstep_cli.processes.supervisor import LogEvent, ServicePages, Supervisor
from lockstep_config import Configuration, load
from lockstep_config.loader.mm1_files import LegacyFiles, load_legacy
from lockstep_ops.exit_codes import CannotUse
from lockstep_ops.installation import require_services
from lockstep_ops.services import (
    DATA_PLANE,
    ProcessPlan,
    ServicePlan,
    plan_processes,
    plan_services,
    process_arguments,
)
from lockstep_runtime.http.access import EVERY_ADDRESS, AccessPolicy, PagesUnusable, PortInUse
from lockstep_runtime.service.mm1_options import legacy_arguments
from lockstep_runtime.util.java import missing_java

if TYPE_CHECKING:
    from lockstep_cli.processes.run_pages import RunPages

PORT = 9404
"""The port of the pages of a run, unless another one is asked for."""

CONSOLE = "console"

MOST_RUNS = 100
"""Runs beside each other on one host that get a number."""


@contextmanager
def held_instance_name(folder: Path | None = None) -> Iterator[str]:
    """Hold an instance name that no other run on this host has, while the context lasts.

    A file lock holds it. The operating system releases the lock when this process ends, however it ends.
    """
    folder = folder or Path(tempfile.gettempdir())
    host = socket.gethostname().partition(".")[0] or "localhost"
    for number in range(1, MOST_RUNS + 1):
        descriptor = _lock(folder / f"lockstep-run-{number}.lock")
        if descriptor is not None:
            break
    else:  # no number to be had: a name that is not taken again is slower to start with, and still correct
        yield f"{host}-p{os.getpid()}"
        return
    try:
        yield f"{host}-{number}"
    finally:
        os.close(descriptor)


def _lock(file: Path) -> int | None:
    """Return a descriptor that holds the file's lock, or None if another run or another user has it."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # not ours, or the folder cannot be written
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def check(file: Path | LegacyFiles, environment: Mapping[str, str]) -> tuple[Configuration, tuple[ServicePlan, ...]]:
    """Read the file, or MirrorMaker 1's two, and check that what it needs is there, before anything is started.

    Raises:
        ConfigurationError: The file has mistakes. The error has all of them.
        CannotUse: A service is not installed, Java is missing, or there is nothing to run.
    """
    configuration = load_legacy(file, environment) if isinstance(file, LegacyFiles) else load(file, environment)
    services = plan_services(configuration)
    if not services:
        raise CannotUse(f"{configuration.path}: no flow is enabled and heartbeats are off, so there is nothing to run")
    require_services(configuration.path, (plan.name for plan in services))
    if any(plan.name == DATA_PLANE for plan in services) and (sentence := missing_java(environment)):
        raise CannotUse(sentence)
    return configuration, services


async def run(
    file: Path | LegacyFiles,
    *,
    access: AccessPolicy,
    port: int | None,
    log_level: str | None,
    log_format: str,
    apart: bool = False,
    with_console: bool = False,
) -> int:
    """Run everything for `file` until asked to end, and return the exit code.

    Args:
        file: The file, or MirrorMaker 1's two.
        access: The access policy of the pages.
        port: The port of the pages of all services. None: `PORT`, or a free one if that is taken.
        log_level: The least level of the log. None: that of the configuration.
        log_format: The form of the log.
        apart: Whether each service is in a process of its own.
        with_console: Whether the console is one more process.

    Raises:
        CannotUse: It cannot run. No process was started.
        ConfigurationError: The file has mistakes. No process was started.
    """
    configuration, services = check(file, os.environ)
    try:
        access.check()
    except PagesUnusable as exc:
        raise CannotUse(str(exc)) from exc
    config = legacy_arguments(file) if isinstance(file, LegacyFiles) else ["--config", str(file.resolve())]
    processes = plan_processes(services, apart=apart)
    if with_console:
        require_services(configuration.path, [CONSOLE])
        shown = tuple(settings.flow for settings in configuration.flows if settings.enabled)
        console = ServicePlan(CONSOLE, shown or services[0].flows)
        services, processes = (*services, console), (*processes, ProcessPlan(CONSOLE, (console,)))
    levels = {plan.name: log_level or configuration.log.level(plan.name) for plan in services}
    with held_instance_name() as instance:
        commands = {
            process.name: process_arguments(
                process,
                config=config,
                instance=instance,
                access=access,
                debug=any(levels[plan.name] == "debug" for plan in process.services),
            )
            for process in processes
        }
        if with_console:
            commands[CONSOLE] = (*commands[CONSOLE], "--port", str(_free_console_port(access.host)))
        width = max(len(str(settings.flow)) for settings in configuration.flows)
        run_log = RunOutput(
            level=log_level or configuration.log.level(RUN),
            levels=levels,
            json_lines=log_format == "json",
            flow_width=width,
        )
        for settings in configuration.flows:
            names = ", ".join(plan.name for plan in services if settings.flow in plan.flows)
            route = f"{settings.source.bootstrap} to {settings.target.bootstrap}"
            run_log.log("info", f"{route}: {names}", str(settings.flow))
        for problem in (*configuration.notes, *configuration.unused):
            run_log.log("warning", str(problem))
        from lockstep_cli.processes.run_pages import RunPages  # aiohttp is most of what a run imports

        pages = RunPages([plan.name for plan in services], warn=lambda text: run_log.log("warning", text))
        run_log.log("info", f"pages of all services: {await _open_pages(pages, access, port, run_log.log)}")

        def read_line(process: str, line: str) -> ServicePages | None:
            if (service_pages := run_log.add_line(process, line)) is not None:
                pages.place(service_pages.service, service_pages.address)
            return service_pages

        within = {process.name: [plan.name for plan in process.services] for process in processes}
        supervisor = Supervisor(commands, within, log_event=run_log.log, read_line=read_line, forget=pages.forget)
        run_log.when_closed(supervisor.stop)
        try:
            return await supervisor.run()
        finally:
            await pages.close()


def _free_console_port(host: str) -> int:
    """Return `CONSOLE_PORT` if no process has it on this host, else 0 for any free one."""
    try:
        with socket.create_server(("" if host == EVERY_ADDRESS else host, CONSOLE_PORT)):
            return CONSOLE_PORT
    except OSError:
        return 0


async def _open_pages(pages: "RunPages", access: AccessPolicy, port: int | None, log_event: LogEvent) -> str:
    """Open the pages and return their address.

    Raises:
        CannotUse: They cannot be opened, or the port that was asked for is taken.
    """
    try:
        try:
            return await pages.open(replace(access, port=PORT if port is None else port))
        except PortInUse:
            if port is not None:
                raise
            log_event("warning", f"port {PORT} is in use, so the pages get a free one: --port chooses another")
            return await pages.open(access)
    except PagesUnusable as exc:
        raise CannotUse(str(exc)) from exc
