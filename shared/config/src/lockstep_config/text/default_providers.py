"""Config providers that need no `config.providers` line: in a Strimzi resource, and in a file of settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep_config.text.config_providers import KAFKA, PROVIDERS_KEY, SECRETS_CLASS, STRIMZI
from lockstep_config.text.properties import Entry
from lockstep_config.text.values import list_of

__all__ = ["STRIMZI_SECRETS", "with_usual_providers"]

STRIMZI_SECRETS = "strimzisecrets"
"""The name under which Strimzi itself has the provider of secrets."""

_USUAL = {
    STRIMZI_SECRETS: SECRETS_CLASS,
    "secrets": SECRETS_CLASS,
    "configmaps": f"{STRIMZI}KubernetesConfigMapConfigProvider",
    "file": f"{KAFKA}FileConfigProvider",
    "dir": f"{KAFKA}DirectoryConfigProvider",
    "env": f"{KAFKA}EnvVarConfigProvider",
    "strimzifile": f"{KAFKA}FileConfigProvider",
    "strimzidir": f"{KAFKA}DirectoryConfigProvider",
    "strimzienv": f"{KAFKA}EnvVarConfigProvider",
}


def with_usual_providers(entries: Mapping[str, Entry], used_in: Mapping[str, Entry] | None = None) -> dict[str, Entry]:
    """The lines with those that declare the usual providers which the values of `used_in` (all lines) name, in front;
    what the lines declare themselves stays as it is."""
    listed = entries.get(PROVIDERS_KEY)
    own = list_of(listed.value) if listed else ()
    values = [entry.value for entry in (entries if used_in is None else used_in).values()]
    used = [name for name in _USUAL if name not in own and any(f"${{{name}:" in value for value in values)]
    if not used:
        return dict(entries)
    line, written, file = (listed.line, listed.written, listed.file) if listed else (0, "", None)
    return {
        PROVIDERS_KEY: Entry(PROVIDERS_KEY, ", ".join((*own, *used)), line, written=written, file=file),
        **{
            f"{PROVIDERS_KEY}.{name}.class": Entry(f"{PROVIDERS_KEY}.{name}.class", _USUAL[name], line) for name in used
        },
        **{key: entry for key, entry in entries.items() if key != PROVIDERS_KEY},
    }
