"""The effective settings of each flow of a file, by key, without secrets."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lockstep_config import Configuration
from lockstep_config.loader.configuration import build_configuration, build_layers, read
from lockstep_config.report.effective import FlowView, view


@dataclass(frozen=True, slots=True)
class EffectiveSettings:
    """A file, and the settings of its flows by the name of the flow."""

    configuration: Configuration
    flows: Mapping[str, Mapping[str, str]]


def read_effective(file: Path, environment: Mapping[str, str]) -> EffectiveSettings:
    """Read the effective settings of a file.

    Raises:
        ConfigurationError: The file has mistakes. The error has all of them.
    """
    text = read(file, environment, "")
    loaded = build_configuration(text, file, environment)
    found = view(text, build_layers(text, file, environment), file, loaded.flows)
    whole = {one.key: one.value for one in found.file}
    clusters = {
        alias: {f"{alias}: {one.key}": one.value for one in settings} for alias, settings in found.clusters.items()
    }
    return EffectiveSettings(
        loaded,
        {
            str(one.flow): {**whole, **clusters[one.flow.source], **clusters[one.flow.target], **_flow(one, clusters)}
            for one in found.flows
        },
    )


def _flow(found: FlowView, clusters: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the flow's settings, and those of its clients that differ from their cluster's."""
    settings = {one.key: one.value for one in found.settings}
    for client, own in found.clients.items():
        alias = found.flow.source if client.startswith("source") else found.flow.target
        connection = clusters[alias]
        for one in own:
            if connection.get(f"{alias}: {one.key}") != one.value:
                settings[f"{client}: {one.key}"] = one.value
    return settings
