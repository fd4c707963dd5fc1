"""The effective settings of each flow of a file, by key, without secrets."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lockstep_config import Configuration
from lockstep_config.loader.configuration import build_with_layers, read
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
    loaded, layers = build_with_layers(text, file, environment)
    effective = view(text, layers, file, loaded.flows)
    file_settings = {setting.key: setting.value for setting in effective.file}
    clusters = {
        alias: {f"{alias}: {setting.key}": setting.value for setting in settings}
        for alias, settings in effective.clusters.items()
    }
    return EffectiveSettings(
        loaded,
        {
            str(flow_view.flow): {
                **file_settings,
                **clusters[flow_view.flow.source],
                **clusters[flow_view.flow.target],
                **_flow(flow_view, clusters),
            }
            for flow_view in effective.flows
        },
    )


def _flow(flow_view: FlowView, clusters: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the flow's settings, and those of its clients that differ from their cluster's."""
    settings = {setting.key: setting.value for setting in flow_view.settings}
    for client, own in flow_view.clients.items():
        alias = flow_view.flow.source if client.startswith("source") else flow_view.flow.target
        connection = clusters[alias]
        for setting in own:
            if connection.get(f"{alias}: {setting.key}") != setting.value:
                settings[f"{client}: {setting.key}"] = setting.value
    return settings
