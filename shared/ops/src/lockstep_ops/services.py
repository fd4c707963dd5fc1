"""The services that a configuration needs, their flows, and how each is started (`architecture.md` §4). Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import methodcaller

from lockstep_config import Configuration, FlowSettings
from lockstep_runtime.http.access import AccessPolicy
from lockstep_runtime.service.config_options import REMARKS_PRINTED
from lockstep_runtime.service.definition import CONTROL_SERVICES
from lockstep_state.names import Flow

DATA_PLANE = "data-plane"

SERVICES: dict[str, Callable[[FlowSettings], bool]] = {
    name: methodcaller("needs", name)
    for name in (DATA_PLANE, "topic-sync", "acl-sync", "checkpoint", "heartbeat")  # Spark takes longest to start
}
"""Each service and the flows it is needed for, in the order in which they are started and shown."""

SHARED_PROCESS = "lockstep_runtime.service.shared_process"
"""The module that `python -m` runs for several services."""


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """A service and all the flows it serves, never none."""

    name: str
    flows: tuple[Flow, ...]


@dataclass(frozen=True, slots=True)
class ProcessPlan:
    """One process to run.

    Its name is that of its service if it has only one. It has at least one service.
    """

    name: str
    services: tuple[ServicePlan, ...]


def module_name(service: str) -> str:
    """Return the module that `python -m` runs for a service."""
    return "lockstep_" + service.replace("-", "_")


def served_flows(configuration: Configuration) -> tuple[FlowSettings, ...]:
    """Return the flows that need a service: those that are enabled, and those with heartbeats alone."""
    return tuple(settings for settings in configuration.flows if any(needed(settings) for needed in SERVICES.values()))


def plan_services(configuration: Configuration) -> tuple[ServicePlan, ...]:
    """Return each service that some flow needs."""
    plans = []
    for name, needed in SERVICES.items():
        flows = tuple(settings.flow for settings in configuration.flows if needed(settings))
        if flows:
            plans.append(ServicePlan(name, flows))
    return tuple(plans)


def plan_processes(services: Sequence[ServicePlan], *, apart: bool) -> tuple[ProcessPlan, ...]:
    """Return the processes: all services but the data plane share one, because Spark has its process to itself.

    With `apart` each service has its own.
    """
    control = tuple(plan for plan in services if plan.name != DATA_PLANE)
    if apart or len(control) < 2:
        return tuple(ProcessPlan(plan.name, (plan,)) for plan in services)
    planes = (ProcessPlan(plan.name, (plan,)) for plan in services if plan not in control)
    return (*planes, ProcessPlan(CONTROL_SERVICES, control))


def process_arguments(
    process: ProcessPlan, *, config: Sequence[str], instance: str, access: AccessPolicy, debug: bool
) -> Sequence[str]:
    """Return the command line of a process behind `python -m`.

    A token that is not in a file comes to the process through the environment, which no other user of the machine can
    read. The log level is never quieter than info: the run listens for the address, and leaves out itself what is
    below its level. Remarks on the configuration are the run's own. With port 0 each service takes a free one and
    logs it.

    Args:
        process: The process.
        config: The options that name its configuration.
        instance: The instance's name.
        access: The access policy of its HTTP port.
        debug: Whether it logs at level debug.
    """
    modules = [module_name(plan.name) for plan in process.services]
    program = modules if len(modules) == 1 else [SHARED_PROCESS, *(f"--service={module}" for module in modules)]
    flows = dict.fromkeys(flow for plan in process.services for flow in plan.flows)
    return (
        *(*program, *config, *(part for flow in flows for part in ("--flow", str(flow)))),
        *("--instance", instance, "--host", access.host, "--port", "0"),
        *file_arguments(access),
        *("--log-level", "debug" if debug else "info", "--log-format", "json", REMARKS_PRINTED),
    )


def file_arguments(access: AccessPolicy) -> tuple[str, ...]:
    """Return the arguments that name the files of pages: certificate, key and token, as far as there are such."""
    files = {"--tls-cert": access.certificate, "--tls-key": access.key, "--token-file": access.token_file}
    return tuple(part for flag, path in files.items() if path is not None for part in (flag, str(path.resolve())))
