"""The clusters of a flow, as commands reach them."""

from __future__ import annotations

from lockstep_config import FlowSettings, clients
from lockstep_config.permissions import access_of
from lockstep_runtime.kafka.admin import Admin

__all__ = ["source_of", "target_of"]


def source_of(settings: FlowSettings) -> Admin:
    """Nothing is asked of the cluster yet; nor by `target_of`."""
    return Admin(settings.flow.source, clients.source_admin(settings), access=access_of(settings, settings.flow.source))


def target_of(settings: FlowSettings) -> Admin:
    return Admin(settings.flow.target, clients.target_admin(settings), access=access_of(settings, settings.flow.target))
