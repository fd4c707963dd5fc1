"""The clusters of a flow, as commands reach them."""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import Access, needed_access
from lockstep_config.flow import client_settings
from lockstep_kafka.admin.admin import Admin
from lockstep_rules.clusters.cluster_capabilities import Role

REFUSED_S = 1.0
"""The seconds for which a cluster has to refuse connections, so that a command that is asked once says so.

The steps of a switch, the console and services wait longer: a broker that restarts refuses connections too.
"""


def source_client(settings: FlowSettings, *, ends_at: float = inf, refused_s: float = inf) -> Admin:
    """Return a client of the flow's source. The cluster is not asked anything yet; the same holds for `target_client`.

    `ends_at` and `refused_s` are those of `AdminRequests`.
    """
    conf, properties = client_settings.source_admin(settings), settings.clients.source_admin
    return _make_client(settings, settings.flow.source, conf, properties, ends_at, refused_s)


def target_client(settings: FlowSettings, *, ends_at: float = inf, refused_s: float = inf) -> Admin:
    """Return a client of the flow's target, as `source_client` does."""
    conf, properties = client_settings.target_admin(settings), settings.clients.target_admin
    return _make_client(settings, settings.flow.target, conf, properties, ends_at, refused_s)


def _make_client(
    settings: FlowSettings,
    alias: str,
    conf: Mapping[str, Any],
    properties: Mapping[str, str],
    ends_at: float,
    refused_s: float,
) -> Admin:
    access = needed_access(settings, alias)
    return Admin(alias, conf, access=access, properties=properties, ends_at=ends_at, refused_s=refused_s)


def cluster_roles(flows: Iterable[FlowSettings], alias: str) -> frozenset[Role]:
    """Return the roles of a cluster in these flows."""
    return frozenset(
        role
        for settings in flows
        for role, cluster in ((Role.SOURCE, settings.flow.source), (Role.TARGET, settings.flow.target))
        if cluster == alias
    )


def connection_client(
    settings: FlowSettings, alias: str, properties: Mapping[str, str], *, ends_at: float = inf
) -> Admin:
    """Return a client of a cluster of the flow, over a connection with these properties."""
    grants = needed_access(settings, alias).grants
    access = Access(properties, properties.get("bootstrap.servers", ""), grants)
    conf = client_settings.connection_admin(settings, properties)
    connection = client_settings.connection_properties(properties)
    return Admin(alias, conf, access=access, properties=connection, ends_at=ends_at)
