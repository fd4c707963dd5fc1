"""Reads the limits of both clusters of a flow: brokers' configs, quotas, and the configs of topics and copies."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from lockstep_config.clients.principal import find_principal
from lockstep_config.credentials.permissions import THE_CLUSTER
from lockstep_config.flow.client_settings import client_id
from lockstep_config.flow.mirroring_rules import mirrored_topics
from lockstep_config.flow.model import FlowSettings
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.admin.topic_creation import create_fitting_topics
from lockstep_kafka.common.errors import ClusterError, NotPermitted, RequestUnsupported
from lockstep_kafka.session.broker_session import BrokerSession, QuestionRefused
from lockstep_kafka.topics.control_topic_faults import read_faults
from lockstep_kafka.topics.control_topics import KEPT_CONFIGS, new_topic, refused_configs_text
from lockstep_ops.doctor.access_reader import AccessReader
from lockstep_ops.doctor.checks.limits import FlowLimits, SideLimits, TopicFault, TopicPair
from lockstep_ops.doctor.checks.quotas import ClientQuota
from lockstep_ops.doctor.flow_clusters import FlowClusters
from lockstep_ops.plan.topic_reader import needed_topics
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
    size = writing.get("max.request.size", "").strip()
    there = await target.topic_names()
    names = sorted(mirrored_topics(settings, await source.topic_names(), there))
    return FlowLimits(
        flow=str(settings.flow),
        source=replace(
            await _side(source, clusters.source_way),
            factors=created_factors(settings, source.alias),
            user=_user(reading),
            client_id=client_id(settings, f"replication-consumer-{FIRST_SLOT}", reading),
        ),
        target=replace(
            await _side(target, clusters.target_way),
            factors=created_factors(settings, target.alias),
            user=_user(writing),
            client_id=client_id(settings, f"replication-producer-{FIRST_SLOT}", writing),
        ),
        pairs=await _pairs(settings, source, target, names[:MOST_TOPICS], there),
        topics=len(names),
        request_bytes=int(size) if size.isdigit() else None,
        control_faults=await _control_faults(clusters),
        **await _new_control_topics(clusters),
    )


async def _new_control_topics(clusters: FlowClusters) -> dict[str, Any]:
    """Return the fields of `FlowLimits` about control topics that are missing. Nothing is created."""
    refused, changed, count = list[str](), list[str](), 0
    for admin in (clusters.source, clusters.target):
        there, brokers = await admin.topic_names(), await admin.broker_count()
        missing = [
            new_topic(topic, brokers)
            for alias, topic in needed_topics(clusters.settings)
            if alias == admin.alias and topic.name not in there
        ]
        creation = await create_fitting_topics(admin, missing, kept=KEPT_CONFIGS, validate_only=True)
        count += len(missing)
        troubles = creation.failed.values()  # a right that is missing is that of LD701
        refused += [str(trouble) for trouble in troubles if not isinstance(trouble, NotPermitted)]
        changed += [refused_configs_text(name, admin.alias, keys) for name, keys in creation.refused.items()]
        changed += [
            f"{name}: cluster {admin.alias} takes {factor_words(factor)}" for name, factor in creation.factors.items()
        ]
    return {"refused_topics": tuple(refused), "changed_topics": tuple(changed), "new_topics": count}


async def _control_faults(clusters: FlowClusters) -> tuple[TopicFault, ...]:
    faults: list[TopicFault] = []
    for admin in (clusters.source, clusters.target):
        topics = [topic for alias, topic in needed_topics(clusters.settings) if alias == admin.alias]
        control_faults, unknown = await read_faults(admin, topics)
        faults += [
            TopicFault(fault.sentence, fault.command(admin.bootstrap), fault.ends_work) for fault in control_faults
        ]
        for topic, trouble in unknown.items():
            if isinstance(trouble, RequestUnsupported):
                continue
            remedy = admin.access.remedy("topic", topic, "DescribeConfigs")
            faults.append(TopicFault(f"the settings of {topic} are not known: {trouble}", remedy.command))
    return tuple(faults)


async def _side(admin: Admin, reading: AccessReader) -> SideLimits:
    fix = admin.access.remedy("cluster", THE_CLUSTER, "DescribeConfigs").command
    side = SideLimits(admin.alias, await admin.broker_count(), {}, None, None)
    try:
        side = replace(side, configs=await admin.broker_configs())
    except NotPermitted:
        trouble = f"{admin.alias} does not permit us to read its brokers' configs"
        side = replace(side, configs_trouble=trouble, configs_fix=f"To let them be read: {fix}")
    except ClusterError as exc:
        side = replace(side, configs_trouble=str(exc))
    try:
        side = replace(side, quotas=await _quotas(reading.session))
    except QuestionRefused as exc:
        trouble = f"{admin.alias} does not permit us to read its quotas" if exc.is_denied else str(exc)
        side = replace(side, quotas_trouble=trouble, quotas_fix=f"To let them be read: {fix}" if exc.is_denied else "")
    return side


async def _quotas(session: BrokerSession | None) -> tuple[ClientQuota, ...]:
    if session is None:
        raise QuestionRefused("there is no connection to ask on")
    return tuple(ClientQuota(one.user, one.client_id, one.values) for one in await session.quotas())


def _user(properties: Mapping[str, str]) -> str:
    return (find_principal(properties) or ANONYMOUS).removeprefix("User:")


def created_factors(settings: FlowSettings, alias: str) -> dict[str, int]:
    """Return the replication factors of topics that the flow creates on a cluster, by the keys of the configuration.

    Factors that are left to the brokers are not in it.
    """
    found: dict[str, int] = {}
    if alias == settings.flow.target:
        found["replication.factor"] = settings.topic_sync.replication_factor
        found["offset.storage.replication.factor"] = settings.control.storage_replication_factor
        if settings.control.replication_factor != settings.control.storage_replication_factor:
            found["lockstep.control.replication.factor"] = settings.control.replication_factor
        if settings.checkpoint.enabled:
            found["checkpoints.topic.replication.factor"] = settings.checkpoint.topic_replication_factor
        if settings.heartbeat.enabled:
            found["heartbeats.topic.replication.factor"] = settings.heartbeat.topic_replication_factor
    if alias == settings.offset_syncs_cluster and settings.data_plane.emit_offset_syncs:
        found["offset-syncs.topic.replication.factor"] = settings.data_plane.offset_syncs_replication_factor
    return {key: factor for key, factor in found.items() if factor > 0}


async def _pairs(
    settings: FlowSettings, source: Admin, target: Admin, names: Iterable[str], there: Collection[str]
) -> tuple[TopicPair, ...]:
    """Return the topics whose configs may be read, with their copies.

    Args:
        settings: The flow.
        source: The source.
        target: The target.
        names: Topics of the source.
        there: All topics of the target.
    """
    theirs = await _topic_configs(source, names)
    remote = {name: settings.remote_topic(name) for name in theirs}
    ours = await _topic_configs(target, (copy for copy in remote.values() if copy in there))
    found = []
    for name, configs in theirs.items():
        size, copied = configs.get(MAX_MESSAGE), ours.get(remote[name], {})
        if size is None or not size.value.isdigit():
            continue
        found.append(
            TopicPair(
                topic=name,
                copy=remote[name],
                source_bytes=int(size.value),
                copy_bytes=int(copied[MAX_MESSAGE].value) if MAX_MESSAGE in copied else None,
                is_own=_is_copied(settings, size),
                source_timestamps=_value(configs, TIMESTAMP_TYPE),
                copy_timestamps=_value(copied, TIMESTAMP_TYPE),
            )
        )
    return tuple(found)


def _is_copied(settings: FlowSettings, config: TopicConfig) -> bool:
    """Return whether a new copy gets this config of its topic."""
    wanted = settings.config_properties.should_replicate_config_property(config.name)
    return wanted and config.copyable and not config.is_default


def _value(configs: Mapping[str, TopicConfig], name: str) -> str:
    return configs[name].value if name in configs else ""


async def _topic_configs(admin: Admin, names: Iterable[str]) -> dict[str, dict[str, TopicConfig]]:
    found: dict[str, dict[str, TopicConfig]] = {}
    async for piece in admin.config_pieces(names):
        for name, configs in piece.done.items():
            found[name] = {one.name: one for one in configs if one.name in (MAX_MESSAGE, TIMESTAMP_TYPE)}
    return found
