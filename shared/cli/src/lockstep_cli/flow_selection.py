"""The flows of a file that a command is about. Pure, but for reading the file."""

import os
from collections.abc import Sequence
from pathlib import Path

from lockstep_config import Configuration, FlowSettings, UnknownFlow, load
from lockstep_ops.exit_codes import CannotUse
from lockstep_state.names import Flow


def choose_flows(file: Path, names: Sequence[str], *, all_enabled: bool = False) -> tuple[FlowSettings, ...]:
    """Return the flows of `file` that a command line names (`select_flows`).

    Raises:
        CannotUse: As `select_flows`.
        ConfigurationError: The file has mistakes.
    """
    return select_flows(load(file, os.environ), names, all_enabled=all_enabled)


def choose_one_flow(file: Path, name: str | None) -> FlowSettings:
    """Return the flow of this name, or the only one that is enabled. Raises as `choose_flows`."""
    return choose_flows(file, [name] if name else [])[0]


def select_flows(
    configuration: Configuration, names: Sequence[str], *, all_enabled: bool = False
) -> tuple[FlowSettings, ...]:
    """Return the named flows (`A->B`), each once. Without names they are those that are enabled.

    Args:
        configuration: The configuration.
        names: The names of flows, perhaps none.
        all_enabled: Whether several flows may be enabled where none is named.

    Raises:
        CannotUse: It is not clear which flows are meant. The message has their names.
    """
    if names and all_enabled:
        raise CannotUse("--flow and --all-flows exclude each other")
    if names:
        try:
            return tuple(configuration.flow(Flow.parse(name)) for name in dict.fromkeys(names))
        except (UnknownFlow, ValueError) as exc:
            raise CannotUse(str(exc)) from exc
    enabled = tuple(settings for settings in configuration.flows if settings.enabled)
    if not enabled:
        raise CannotUse(f"{configuration.path}: no flow is enabled; set SOURCE->TARGET.enabled = true")
    if len(enabled) > 1 and not all_enabled:
        quoted = ", ".join(f"'{settings.flow}'" for settings in enabled)
        raise CannotUse(
            f"{configuration.path} has {len(enabled)} flows, {quoted}: say which one with --flow (with the quotes)"
        )
    return enabled
