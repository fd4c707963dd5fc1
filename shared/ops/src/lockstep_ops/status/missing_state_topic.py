"""The reasons why a flow has no state topic, as far as its services and the target tell."""

from dataclasses import dataclass

from lockstep_config import FlowSettings
from lockstep_kafka.admin.topic_creation import create_fitting_topics
from lockstep_kafka.common.errors import ClusterError
from lockstep_kafka.topics.control_topics import KEPT_CONFIGS, flow_topics, new_topic
from lockstep_ops.clusters import REFUSED_S, target_client
from lockstep_ops.status.trouble_reports import read_reports, reported_troubles


@dataclass(frozen=True, slots=True)
class MissingStateTopic:
    """The reasons why a flow has no state topic."""

    causes: tuple[str, ...]
    """Sentences about what keeps its services from creating the topic, by their reports or by the target."""
    unknown: str = ""
    """The trouble of what could not be read, a report or the target: `causes` may lack some. "": all was read."""

    @property
    def never_run(self) -> bool:
        """True if the flow has never run: everything was read, and there is no other cause."""
        return not self.causes and not self.unknown

    def __str__(self) -> str:
        unknown = f"whether the flow has ever run is not known: {self.unknown}" if self.unknown else ""
        return "; ".join(filter(None, (*self.causes, unknown))) or "the flow has never run"


async def explain_missing_state_topic(settings: FlowSettings, silent_s: float) -> MissingStateTopic:
    """Return why the services of a flow do not begin, as far as that can be asked.

    A target that does not answer raises nothing.

    Args:
        settings: The flow.
        silent_s: The seconds for which nothing may come of the topic in which services report.
    """
    reports, unread = await read_reports(settings, silent_s)
    causes = [f"{trouble.what}: {trouble.why}" for trouble in (*reported_troubles(reports), *unread)]
    try:
        refusal = await _why_not_created(settings)
    except ClusterError as trouble:
        return MissingStateTopic(tuple(causes), str(trouble))
    return MissingStateTopic((*causes, refusal) if refusal else tuple(causes))


async def _why_not_created(settings: FlowSettings) -> str:
    """Return why the target would not create the topics that the flow's services begin with, or "" if it would.

    Nothing is created.

    Raises:
        ClusterError: The target does not answer, or refuses.
    """
    target = target_client(settings, refused_s=REFUSED_S)
    brokers = await target.broker_count()
    topics = flow_topics(settings.flow, settings.group_id, settings.control.replication_factor)
    new = [new_topic(topic, brokers) for topic in topics]
    creation = await create_fitting_topics(target, new, kept=KEPT_CONFIGS, validate_only=True)
    refusals = [str(error) for error in creation.failed.values()]
    return f"it cannot be created, so the services of the flow do not begin: {refusals[0]}" if refusals else ""
