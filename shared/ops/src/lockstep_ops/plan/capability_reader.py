"""Reads which requests the clusters of a flow know, as a plan needs it."""

from dataclasses import replace

from lockstep_config import FlowSettings
from lockstep_config.flow.client_settings import client_id
from lockstep_kafka.session.broker_session import QuestionRefused, SessionRefused
from lockstep_ops.plan.rules.flow_facts import ClusterState
from lockstep_ops.plan.shared_cluster import SharedCluster
from lockstep_rules.clusters.cluster_capabilities import Role, missing_capabilities, needed_apis
from lockstep_state.kafka.kafka_apis import unfit_requests


async def add_capabilities(
    settings: FlowSettings, cluster: SharedCluster, state: ClusterState, role: Role
) -> tuple[ClusterState, str]:
    """Return the facts of a cluster with the requests that it knows, and a remark if these cannot be read."""
    clients = settings.clients
    properties = clients.source_admin if role is Role.SOURCE else clients.target_admin
    try:
        reading = await cluster.versions(client_id(settings, "plan", properties))
    except (SessionRefused, QuestionRefused, OSError) as why:
        return state, f"which requests {state.alias} knows is not known: {why}"
    transactions, keeps_names = settings.data_plane.exactly_once, settings.keeps_names
    needed = needed_apis(role, transactions=transactions, keeps_names=keeps_names)
    missing = tuple(missing_capabilities(reading.versions, [role], cluster.refused_requests))
    return replace(state, product=reading.kind, lacks=missing, unfit=unfit_requests(reading.versions, needed)), ""
