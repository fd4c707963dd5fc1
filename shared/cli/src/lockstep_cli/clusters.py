"""The clusters of a flow, as commands reach them."""

from lockstep_config import FlowSettings
from lockstep_config.credentials.permissions import needed_access
from lockstep_config.flow import client_settings
from lockstep_runtime.kafka.admin import Admin


def source_client(settings: FlowSettings) -> Admin:
    """Nothing is asked of the cluster yet; nor by `target_client`."""
    return Admin(
        settings.flow.source,
        client_settings.source_admin(settings),
        access=needed_access(settings, settings.flow.source),
    )


def target_client(settings: FlowSettings) -> Admin:
    return Admin(
        settings.flow.target,
        client_settings.target_admin(settings),
        access=needed_access(settings, settings.flow.target),
    )
