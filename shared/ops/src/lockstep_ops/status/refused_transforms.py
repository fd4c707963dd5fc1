"""The transforms that cannot be evaluated: topics whose partitions halt before their first row. Pure."""

from collections.abc import Mapping

from lockstep_config import FlowSettings
from lockstep_config.flow.transform_settings import SeveralTransforms
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import MirroredTopic, Row, Transform


def refused_transforms(settings: FlowSettings, rows: Mapping[str, Row]) -> Mapping[str, Reason]:
    """Return the source topics whose transform cannot be evaluated, by the file or by what the driver compiled."""
    refused = {row.name: row.refused for row in rows.values() if isinstance(row, Transform)}
    topics = [row.source_topic for row in rows.values() if isinstance(row, MirroredTopic)]
    reasons = {topic: _refusal(settings, refused, topic) for topic in topics}
    return {topic: reason for topic, reason in reasons.items() if reason}


def _refusal(settings: FlowSettings, refused: Mapping[str, str], topic: str) -> Reason:
    """Return why the transform of a topic cannot be evaluated; NO_REASON: it has none, or nothing is known of it."""
    try:
        transform = settings.data_plane.transform_of(topic)
    except SeveralTransforms as exc:
        name, text = ", ".join(exc.names), str(exc)
    else:
        if transform is None:
            return NO_REASON
        name, text = transform.name, settings.transform_dispute(topic) or refused.get(transform.name, "")
    return (
        ReasonCode.TRANSFORM_UNAVAILABLE.to_reason(transform=name, text=text, case="transform") if text else NO_REASON
    )
