"""Reads the limits of both clusters of a flow: brokers' configs, quotas, and the configs of topics and copies."""

from collections.abc import Iterable, Mapping
from typing import Any

from lockstep_config.clients.principal import find_principal
from lockstep_config.credentials.permissions import THE_CLUSTER
from lockstep_config.flow.client_settings import client_id
from lockstep_config.flow.mirroring_rules import mirrored_topics
from lockstep_config.flow.model import FlowSettings
from lockstep_kafka.common.errors import NotPermitted, RequestUnsupported
from lockstep_kafka.session.broker_session import BrokerSession
from lockstep_kafka.topics.control_topics import KEPT_CONFIGS, new_topic, refused_configs_text
from lockstep_ops.cluster_snapshot import ClusterSnapshot, Unknown
from lockstep_ops.doctor.checks.limits import FlowLimits, SideLimits, TopicFault, TopicPair
from lockstep_ops.doctor.flow_clusters import FlowClusters
from lockstep_ops.needed_topics import needed_on
from lockstep_rules.topic_plan import factor_words
from lockstep_state.topic_config import TopicConfig

MOST_TOPICS = 500
"""Topics whose configs are compared, the first ones by name: each has 35 configs."""

MAX_MESSAGE, TIMESTAMP_TYPE = "max.message.bytes", "message.timestamp.type"
ANONYMOUS = "ANONYMOUS"

FIRST_SLOT = 0
"""The slot whose quota is compared. Each slot has a client id of its own."""


async def read_limits(clusters: FlowClusters) -> FlowLimits:
    """Read the limits of one flow, both clusters of which accept the login.

    Raises:
        ClusterError: A cluster does not answer.
    """
    settings, source, target = clusters.settings, clusters.source, clusters.target
    reading, writing = settings.clients.source_consumer, settings.clients.data_producer
    consumer_client_id = client_id(settings, f"replication-consumer-{FIRST_SLOT}", reading)
    producer_client_id = client_id(settings, f"replication-producer-{FIRST_SLOT}", writing)
    size = writing.get("max.request.size", "").strip()
    mirrored = mirrored_topics(settings, await source.topic_names(), await target.topic_names())
    return FlowLimits(
        flow=str(settings.flow),
        source=await _side(settings, source, clusters.source_session, consumer_client_id, reading),
        target=await _side(settings, target, clusters.target_session, producer_client_id, writing),
        pairs=await _pairs(settings, source, target, sorted(mirrored)[:MOST_TOPICS]),
        topics=len(mirrored),
        request_bytes=int(size) if size.isdigit() else None,
        control_faults=await _control_faults(clusters),
        **await _new_control_topics(clusters),
    )


async def _new_control_topics(clusters: FlowClusters) -> dict[str, Any]:
    """Return the fields of `FlowLimits` about control topics that are missing. Nothing is created."""
    refused, changed, count = list[str](), list[str](), 0
    for cluster in (clusters.source, clusters.target):
        names, brokers = await cluster.topic_names(), await cluster.broker_count()
        needed = needed_on(clusters.settings, cluster.alias)
        missing = [new_topic(topic, brokers) for topic in needed if topic.name not in names]
        creation = await cluster.try_creation(missing, KEPT_CONFIGS)
        count += len(missing)
        troubles = creation.failed.values()  # a right that is missing is that of LD701
        refused += [str(trouble) for trouble in troubles if not isinstance(trouble, NotPermitted)]
        changed += [refused_configs_text(name, cluster.alias, keys) for name, keys in creation.refused.items()]
        changed += [
            f"{name}: cluster {cluster.alias} takes {factor_words(factor)}" for name, factor in creation.factors.items()
        ]
    return {"refused_topics": tuple(refused), "changed_topics": tuple(changed), "new_topics": count}


async def _control_faults(clusters: FlowClusters) -> tuple[TopicFault, ...]:
    topic_faults: list[TopicFault] = []
    for cluster in (clusters.source, clusters.target):
        faults, unknown = await cluster.control_topic_faults(needed_on(clusters.settings, cluster.alias))
        topic_faults += [
            TopicFault(fault.sentence, fault.command(cluster.admin.bootstrap), fault.ends_work) for fault in faults
        ]
        for topic, trouble in unknown.items():
            if isinstance(trouble, RequestUnsupported):
                continue
            remedy = cluster.admin.access.remedy("topic", topic, "DescribeConfigs")
            topic_faults.append(TopicFault(f"the settings of {topic} are not known: {trouble}", remedy.command))
    return tuple(topic_faults)


async def _side(
    settings: FlowSettings,
    cluster: ClusterSnapshot,
    session: BrokerSession | None,
    quota_client_id: str,
    properties: Mapping[str, str],
) -> SideLimits:
    configs, quotas = await cluster.broker_configs(), await cluster.quotas(session)
    configs_trouble, configs_fix = _trouble_and_fix(cluster, configs, "its brokers' configs")
    quotas_trouble, quotas_fix = _trouble_and_fix(cluster, quotas, "its quotas")
    return SideLimits(
        cluster.alias,
        brokers=await cluster.broker_count(),
        factors=created_factors(settings, cluster.alias),
        configs=None if isinstance(configs, Unknown) else configs,
        quotas=None if isinstance(quotas, Unknown) else quotas,
        user=(find_principal(properties) or ANONYMOUS).removeprefix("User:"),
        client_id=quota_client_id,
        configs_trouble=configs_trouble,
        configs_fix=configs_fix,
        quotas_trouble=quotas_trouble,
        quotas_fix=quotas_fix,
    )


def _trouble_and_fix(cluster: ClusterSnapshot, fact: object, words: str) -> tuple[str, str]:
    """Return why a fact of a cluster is unknown, and the command that lets it be read; both are "" if it is known."""
    if not isinstance(fact, Unknown):
        return "", ""
    if not fact.is_denied:
        return str(fact), ""
    fix = cluster.admin.access.remedy("cluster", THE_CLUSTER, "DescribeConfigs").command
    return f"{cluster.alias} does not permit us to read {words}", f"To let them be read: {fix}"


def created_factors(settings: FlowSettings, alias: str) -> dict[str, int]:
    """Return the replication factors of topics that the flow creates on a cluster, by the keys of the configuration.

    Factors that are left to the brokers are not in it.
    """
    factors: dict[str, int] = {}
    if alias == settings.flow.target:
        factors["replication.factor"] = settings.topic_sync.replication_factor
        factors["offset.storage.replication.factor"] = settings.control.storage_replication_factor
        if settings.control.replication_factor != settings.control.storage_replication_factor:
            factors["lockstep.control.replication.factor"] = settings.control.replication_factor
        if settings.checkpoint.enabled:
            factors["checkpoints.topic.replication.factor"] = settings.checkpoint.topic_replication_factor
        if settings.heartbeat.enabled:
            factors["heartbeats.topic.replication.factor"] = settings.heartbeat.topic_replication_factor
    if alias == settings.offset_syncs_cluster and settings.data_plane.emit_offset_syncs:
        factors["offset-syncs.topic.replication.factor"] = settings.data_plane.offset_syncs_replication_factor
    return {key: factor for key, factor in factors.items() if factor > 0}


async def _pairs(
    settings: FlowSettings, source: ClusterSnapshot, target: ClusterSnapshot, names: Iterable[str]
) -> tuple[TopicPair, ...]:
    """Return those of the named topics of the source whose configs may be read, with their copies."""
    source_configs, target_names = (await source.topic_configs(names)).done, await target.topic_names()
    copies = {name: settings.remote_topic(name) for name in source_configs}
    target_configs = (await target.topic_configs(copy for copy in copies.values() if copy in target_names)).done
    pairs = []
    for name, copy in copies.items():
        configs = {config.name: config for config in source_configs[name]}
        copy_configs = {config.name: config for config in target_configs.get(copy, ())}
        size = configs.get(MAX_MESSAGE)
        if size is None or not size.value.isdigit():
            continue
        pairs.append(
            TopicPair(
                topic=name,
                copy=copy,
                source_bytes=int(size.value),
                copy_bytes=int(copy_configs[MAX_MESSAGE].value) if MAX_MESSAGE in copy_configs else None,
                is_own=_is_copied(settings, size),
                source_timestamps=_value(configs, TIMESTAMP_TYPE),
                copy_timestamps=_value(copy_configs, TIMESTAMP_TYPE),
            )
        )
    return tuple(pairs)


def _is_copied(settings: FlowSettings, config: TopicConfig) -> bool:
    """Return whether a new copy gets this config of its topic."""
    wanted = settings.config_properties.should_replicate_config_property(config.name)
    return wanted and config.copyable and not config.is_default


def _value(configs: Mapping[str, TopicConfig], name: str) -> str:
    return configs[name].value if name in configs else ""
