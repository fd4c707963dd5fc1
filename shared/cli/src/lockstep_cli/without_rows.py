"""Say why a flow has no state topic, as far as its services and the target say it."""

from lockstep_cli.clusters import target_client
from lockstep_cli.trouble_reports import read_reports, reported_troubles
from lockstep_config import FlowSettings
from lockstep_protocol.topic_plan import possible_factor
from lockstep_runtime.kafka.admin import Admin
from lockstep_runtime.kafka.admin_types import NewTopic
from lockstep_runtime.kafka.control_topics import flow_topics
from lockstep_runtime.util.errors import ClusterError


async def causes_without_rows(settings: FlowSettings, silent_s: float) -> list[str]:
    """Return sentences that say why the services of a flow do not begin; none if the flow has never run.

    Args:
        settings: Of the flow.
        silent_s: For how long nothing may come of the topic in which services report.
    """
    reports, unread = await read_reports(settings, silent_s)
    troubles = [*reported_troubles(reports), *unread]
    causes = [f"{trouble.what}: {trouble.why}" for trouble in troubles]
    refusal = await _why_not_created(settings)
    return [*causes, refusal] if refusal else causes


async def _why_not_created(settings: FlowSettings) -> str:
    """Return why the target would not create the topics that the services of a flow begin with; "" if it would.
    Nothing is created. Raises no ClusterError: that the target does not answer is said elsewhere."""
    target = target_client(settings)
    try:
        brokers = await target.broker_count()
        topics = flow_topics(settings.flow, settings.group_id, settings.control.replication_factor)
        new = [
            NewTopic(
                topic.name, topic.partitions, possible_factor(topic.replication_factor, brokers), topic.creation_configs
            )
            for topic in topics
        ]
        outcome = await target.create_topics(new, validate_only=True)
    except ClusterError:
        return ""
    refusals = [str(error) for error in outcome.troubles().values() if not Admin.existed(error)]
    return f"it cannot be created, so the services of the flow do not begin: {refusals[0]}" if refusals else ""
