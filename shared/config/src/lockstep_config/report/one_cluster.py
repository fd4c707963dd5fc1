"""A check for two aliases of a file that are one cluster, as far as their addresses show it.

If the addresses differ only the brokers know (`lockstep probe`). This module is pure.
"""

from collections.abc import Iterator, Sequence

from lockstep_config.flow.model import FlowSettings
from lockstep_config.resolve import precedence
from lockstep_config.resolve.diagnostics import Diagnostics
from lockstep_config.resolve.precedence import Layers
from lockstep_config.text.properties import Entry


def check_addresses(
    layers: Layers, aliases: Sequence[str], flows: Sequence[FlowSettings], findings: Diagnostics
) -> None:
    """Note aliases that have an address in common.

    A flow between them that would copy a topic onto itself is refused.
    """
    onto_itself = {
        frozenset((settings.flow.source, settings.flow.target)): settings.flow
        for settings in flows
        if settings.data_plane.enabled and settings.keeps_names and not settings.renames
    }
    for servers, address, earlier, later in _shared(layers, aliases):
        flow = onto_itself.get(frozenset((earlier, later)))
        finding = f"has {address}, which {earlier} has as well: {earlier} and {later} are one cluster"
        if flow is None:
            findings.note(servers, f"{finding}, and topics whose names begin with either alias are not mirrored")
            continue
        message = (
            f"{finding}, and {flow} keeps the names of topics, so a topic would be copied onto itself, without end. "
            f"Name the address of {later}, or give copies another name: remove the line of "
            f"{flow}.replication.policy.class"
        )
        findings.problem(servers, message)


def _shared(layers: Layers, aliases: Sequence[str]) -> Iterator[tuple[Entry, str, str, str]]:
    """Yield the line of the later alias, the address, and both aliases."""
    owners: dict[str, str] = {}
    for alias in aliases:
        servers = precedence.connection(layers, alias).get("bootstrap.servers")
        addresses = tuple(map(str.lower, servers.value or ())) if servers is not None else ()
        shared = next((address for address in addresses if owners.get(address, alias) != alias), None)
        if servers is not None and shared is not None:
            yield servers.entry, shared, owners[shared], alias
        for address in addresses:
            owners.setdefault(address, alias)
