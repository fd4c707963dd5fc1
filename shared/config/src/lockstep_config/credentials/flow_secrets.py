"""The secrets of a flow, which must not appear in what others write."""

from collections.abc import Iterator
from dataclasses import fields

from lockstep_config.flow.model import FlowSettings
from lockstep_config.text.jaas import JAAS, NotJaas, parse_jaas
from lockstep_config.text.secrets import is_secret


def flow_secrets(settings: FlowSettings) -> frozenset[str]:
    """Return every secret of a flow: in its client properties, in the options of its logins, and of its transforms."""
    return frozenset(_values(settings))


def _values(settings: FlowSettings) -> Iterator[str]:
    for transform in settings.data_plane.transforms:
        yield from transform.secrets.values()
    for client in fields(settings.clients):
        for key, value in getattr(settings.clients, client.name).items():
            if key == JAAS:
                yield from _options(value)
            elif is_secret(key) and value.strip():
                yield value.strip()


def _options(jaas: str) -> Iterator[str]:
    try:
        options = parse_jaas(jaas).options
    except NotJaas:
        return  # such a flow has no login that could be used
    yield from (value for name, value in options.items() if is_secret(name) and value)
