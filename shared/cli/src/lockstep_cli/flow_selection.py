"""The flows of a file that a command is about. Pure, but for reading the file."""

import os
from collections.abc import Sequence
from pathlib import Path

from lockstep_config import Configuration, FlowSettings, UnknownFlow, load
from lockstep_ops.exit_codes import CannotUse
from lockstep_state.names import Flow


def choose_flows(file: Path, named: Sequence[str], every: bool = False) -> tuple[FlowSettings, ...]:
    """Return the flows of `file` that are meant (`chosen`).

    Raises:
        CannotUse: As `chosen`.
        ConfigurationError: The file has mistakes.
    """
    return chosen(load(file, os.environ), named, every)


def choose_one_flow(file: Path, named: str | None) -> FlowSettings:
    """Return the one flow that is meant. Raises as `choose_flows`."""
    return choose_flows(file, [named] if named else [])[0]


def chosen(configuration: Configuration, named: Sequence[str], every: bool = False) -> tuple[FlowSettings, ...]:
    """Return the named flows (`A->B`), each once; with `every` all that are enabled; else the only one that is enabled.

    Raises:
        CannotUse: It is not clear which flows are meant. The message has their names.
    """
    if named and every:
        raise CannotUse("--flow and --all-flows exclude each other")
    if named:
        try:
            return tuple(configuration.flow(Flow.parse(name)) for name in dict.fromkeys(named))
        except (UnknownFlow, ValueError) as exc:
            raise CannotUse(str(exc)) from exc
    enabled = tuple(settings for settings in configuration.flows if settings.enabled)
    if not enabled:
        raise CannotUse(f"{configuration.path}: no flow is enabled; set SOURCE->TARGET.enabled = true")
    if len(enabled) > 1 and not every:
        names = ", ".join(f"'{settings.flow}'" for settings in enabled)
        raise CannotUse(
            f"{configuration.path} has {len(enabled)} flows, {names}: say which one with --flow (with the quotes)"
        )
    return enabled
