"""The Faust app of a flow: one member of a group that follows one topic."""

from collections.abc import Callable
from typing import Any

from lockstep_config.flow.client_settings import wire_connection
from lockstep_runtime.flow.context import FlowContext
from lockstep_runtime.membership.faust_overrides import SUPERVISOR, WAITS_S, App, SilentMonitor
from lockstep_runtime.state.leadership import HEARTBEAT_EVERY, SESSION_TIMEOUT
from lockstep_state.names import service_group

METADATA_EVERY_MS = 10_000
"""Milliseconds between two refreshes of the metadata.

If the commands topic has no leader in the metadata, the member that assigns the group assigns no partition. No
instance leads until the metadata is refreshed: for up to five minutes by default.
"""

COMMITS_EVERY_S = 15.0
"""Seconds between two commits of Faust. Nothing depends on them: a leader begins with the commands without an answer.
"""

REQUEST_S = 20.0
"""How long a broker may take for an answer."""


def build_app(ctx: FlowContext, listen: Callable[[Any], None], instance: str | None) -> Any:
    """Build a Faust app that is one group member and follows one topic.

    Args:
        ctx: The flow and its settings.
        listen: As `App.listen`.
        instance: The group instance id, by which the member finds its former partitions; None joins as a new member.
    """
    settings = ctx.settings
    app = App(
        service_group(ctx.service, ctx.flow, settings.group_id),
        broker=[f"kafka://{host}" for host in settings.target.bootstrap.split(",")],
        broker_client_id=f"{settings.flow}|{ctx.service}",
        broker_session_timeout=SESSION_TIMEOUT,
        broker_rebalance_timeout=15.0,
        broker_heartbeat_interval=HEARTBEAT_EVERY,
        broker_request_timeout=REQUEST_S,
        broker_max_poll_interval=300.0,
        broker_commit_interval=COMMITS_EVERY_S,
        consumer_group_instance_id=instance,
        consumer_auto_offset_reset="earliest",
        consumer_metadata_max_age_ms=METADATA_EVERY_MS,
        store="memory://",
        Monitor=SilentMonitor,
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        stream_wait_empty=False,
        agent_supervisor=SUPERVISOR,
        autodiscover=False,
    )
    app.listen = listen
    client_id = app.conf.broker_client_id
    app.connection_settings = wire_connection(settings.target.properties, client_id, REQUEST_S) | {"waits_s": WAITS_S}
    return app
