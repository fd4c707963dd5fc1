"""The topics that a flow keeps, ours and MM2's, by the role that `record_decoder` decodes. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lockstep_config import FlowSettings
from lockstep_config.flow import client_settings
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.record_decoder import DecodedRecord
from lockstep_state import names


@dataclass(frozen=True, slots=True)
class ControlTopic:
    """A topic that a flow keeps.

    `role` is a key of `record_decoder.ROLES`, `alias` the cluster that has the topic, and `conf` what a consumer of it
    needs.
    """

    role: str
    name: str
    alias: str
    conf: dict[str, str]


def control_topics(settings: FlowSettings, client: str) -> Mapping[str, ControlTopic]:
    """Return the topics of a flow by role. `client` is the client id of who reads them."""
    flow, group_id = settings.flow, settings.group_id
    topics = {
        "events": names.events_topic(flow, group_id),
        "state": names.state_topic(flow, group_id),
        "commands": names.commands_topic(flow, group_id),
        "checkpoints": settings.checkpoints_topic,
        "offset-syncs": settings.offset_syncs_topic,
        "heartbeats": settings.policy.heartbeats_topic(),
        "offsets": settings.control.offset_storage_topic,
        "quarantine": names.quarantine_topic(flow, group_id),
    }
    of_target = client_settings.target_consumer(settings, client)
    of_syncs = client_settings.offset_syncs_consumer(settings, client)
    return {
        role: ControlTopic(role, name, settings.offset_syncs_cluster, of_syncs)
        if role == "offset-syncs"
        else ControlTopic(role, name, flow.target, of_target)
        for role, name in topics.items()
    }


def record_as_json(flow: str, role: str, record: Record, decoded: DecodedRecord) -> dict[str, Any]:
    """Return a record of a control topic for programs: its place, its time, and what it says."""
    return {
        "flow": flow,
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "at_ms": record.timestamp_ms,
        "role": role,
        **asdict(decoded),
    }
