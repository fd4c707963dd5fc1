"""The credentials of a flow, and which of them have changed in its configuration (decision 0030). Pure.

Credentials are `ssl.*` and `sasl.*` of a connection, and the files that they name. A running service takes them up,
for each side of a flow by itself. A change of any other key counts from the next start.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from lockstep_config.flow.model import Cluster, FlowSettings
from lockstep_config.keys.connector_keys import own_key
from lockstep_config.resolve.cells import parse_key
from lockstep_config.resolve.precedence import SIDES, Side
from lockstep_config.text.properties import Entry
from lockstep_config.text.sources import named_files

Identity = tuple[tuple[tuple[str, str], ...], ...]
"""The login of a flow at one of its clusters. An equal login needs no new connection.

It holds secrets, and is only to be compared.
"""

_CREDENTIAL = re.compile(r"(?:^|\.)(?:ssl|sasl)\.")


def is_credential(name: str) -> bool:
    """Return whether a key, without its flow or alias, is a credential, which is taken up while the service runs."""
    own = own_key(name)
    name = name if own is None else own[1]
    return bool(_CREDENTIAL.search(name)) and not name.startswith("lockstep.")


def differing_keys(before: Iterable[Entry], now: Iterable[Entry], aliases: Iterable[str]) -> tuple[str, ...]:
    """Return the keys that need a restart, as their author knows them, in alphabetical order.

    They have another value, or were added or removed. Credentials are left out.
    """
    clusters = tuple(aliases)
    old, new = ({entry.key: entry for entry in entries} for entries in (before, now))
    return tuple(
        sorted(
            (new.get(key) or old[key]).shown
            for key in old.keys() | new.keys()
            if not (key in old and key in new and old[key].value.strip() == new[key].value.strip())
            and not is_credential(parse_key(key, clusters).key)
            # Only the values count, not the provider that they come from.
            and not key.startswith("config.providers")
        )
    )


def named_by(settings: FlowSettings, side: Side) -> frozenset[Path]:
    """Return the files with which the connections to one side are made."""
    clients = settings.clients.of_side(side).values()
    return frozenset().union(*(named_files(_credentials(properties)) for properties in clients))


def identities(settings: FlowSettings, content: Mapping[Path, str]) -> dict[Side, Identity]:
    """Return the login of a flow at each side.

    Args:
        settings: The flow.
        content: The digest of each file. Files that are not in it do not count.
    """
    return {side: _identity(settings, side, content) for side in SIDES}


def _identity(settings: FlowSettings, side: Side, content: Mapping[Path, str]) -> Identity:
    clients = sorted(settings.clients.of_side(side).items())
    logins = (tuple(sorted(_credentials(properties).items())) for _, properties in clients)
    digests = sorted((str(file), content[file]) for file in named_by(settings, side) if file in content)
    return (*logins, tuple(digests))


def replace_credentials(settings: FlowSettings, newer: FlowSettings, sides: Iterable[Side]) -> FlowSettings:
    """Return the same settings with the credentials of `newer` for these sides, and nothing else of it."""
    for side in sides:
        clients, newer_clients = settings.clients.of_side(side), newer.clients.of_side(side)
        renewed = replace(settings.clients, **{name: _renewed(clients[name], newer_clients[name]) for name in clients})
        if side == "source":
            settings = replace(settings, clients=renewed, source=_renewed_cluster(settings.source, newer.source))
        else:
            settings = replace(settings, clients=renewed, target=_renewed_cluster(settings.target, newer.target))
    return settings


def _credentials(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if is_credential(key)}


def _renewed(present: Mapping[str, str], newer: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in present.items() if not is_credential(key)} | _credentials(newer)


def _renewed_cluster(present: Cluster, newer: Cluster) -> Cluster:
    return replace(present, properties=_renewed(present.properties, newer.properties))
