"""Which services a configuration needs, for which flows, and how each is started (`architecture.md` §4). Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import methodcaller

from lockstep_config import Configuration, FlowSettings
from lockstep_protocol.names import Flow
from lockstep_runtime.http.access import AccessPolicy
from lockstep_runtime.service.config_options import REMARKS_PRINTED

DATA_PLANE = "data-plane"

SERVICES: dict[str, Callable[[FlowSettings], bool]] = {
    name: methodcaller("needs", name)
    for name in (DATA_PLANE, "topic-sync", "acl-sync", "checkpoint", "heartbeat")  # Spark takes longest to start
}
"""Each service and the flows it is needed for, in the order in which they are started and shown."""

TOGETHER = frozenset({"topic-sync"})
"""It starts with the data plane: without either no record moves. The others follow once Spark is there."""

SPARK_READY = "spark ready"
"""What the data plane says when Spark's JVM, the most costly part of a start, has started."""


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """One process to run: a service and all the flows it serves, never none."""

    name: str
    flows: tuple[Flow, ...]


def module_name(service: str) -> str:
    """What `python -m` runs for a service."""
    return "lockstep_" + service.replace("-", "_")


def served_flows(configuration: Configuration) -> tuple[FlowSettings, ...]:
    """The flows that some service is needed for: those that are enabled, and those with heartbeats alone."""
    return tuple(one for one in configuration.flows if any(needed(one) for needed in SERVICES.values()))


def plan_services(configuration: Configuration) -> tuple[ServicePlan, ...]:
    """A process for each service that some flow needs; a service that no flow needs is left out."""
    plans = []
    for name, needed in SERVICES.items():
        flows = tuple(settings.flow for settings in configuration.flows if needed(settings))
        if flows:
            plans.append(ServicePlan(name, flows))
    return tuple(plans)


def arguments(
    plan: ServicePlan, *, config: Sequence[str], instance: str, access: AccessPolicy, debug: bool
) -> Sequence[str]:
    """The command line of a service behind `python -m`. `config`: the options that name its configuration. Port
    0: it takes a free one and says which.

    A token that is not in a file comes to it through the environment, which no other user of the machine can read.
    Never quieter than info: the run listens for the address, and leaves out itself what is below its level. Remarks on
    the configuration are the run's own.
    """
    files = {"--tls-cert": access.certificate, "--tls-key": access.key, "--token-file": access.token_file}
    flows = [part for flow in plan.flows for part in ("--flow", str(flow))]
    return (
        *(module_name(plan.name), *config, *flows),
        *("--instance", instance, "--host", access.host, "--port", "0"),
        *(part for flag, path in files.items() if path is not None for part in (flag, str(path.resolve()))),
        *("--log-level", "debug" if debug else "info", "--log-format", "json", REMARKS_PRINTED),
    )


def is_under_way(service: str, message: str) -> bool:
    """Whether a service that says this leaves the processors to the next one. The first line comes behind all that a
    control service imports."""
    return service != DATA_PLANE or message == SPARK_READY
