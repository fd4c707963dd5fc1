"""Which settings of a control topic that exists are wrong, and the command line that sets each right."""

from types import SimpleNamespace
from typing import cast

import pytest

from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.topics.control_topic_faults import ControlTopicFault, find_faults, repair_faults
from lockstep_kafka.topics.control_topics import flow_topics
from lockstep_state.names import Flow

STATE, EVENTS, COMMANDS = flow_topics(Flow("A", "B"), None, 3)
RIGHT = {
    STATE.name: {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime", "min.insync.replicas": "2"},
    EVENTS.name: {"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime", "retention.ms": "604800000"},
}


@pytest.mark.parametrize("topic", [STATE, EVENTS], ids=["state", "events"])
def test_topic_as_it_is_created_has_no_fault(topic) -> None:  # type: ignore[no-untyped-def]  # of the module above
    assert list(find_faults(topic, topic.partitions, 3, RIGHT[topic.name])) == []
    assert list(find_faults(topic, topic.partitions, 0, {})) == [], "what is not known is not judged"
    assert list(find_faults(topic, topic.partitions, 3, RIGHT[topic.name] | {"retention.ms": "-1"})) == []


@pytest.mark.parametrize("policy", ["delete", "compact,delete", "delete, compact"])
def test_state_topic_that_deletes_has_a_fault_and_its_command(policy: str) -> None:
    (fault,) = find_faults(STATE, 1, 3, RIGHT[STATE.name] | {"cleanup.policy": policy})
    assert fault == ControlTopicFault(STATE.name, "cleanup.policy", policy, "compact")
    assert fault.command("b:9092") == (
        "kafka-configs --bootstrap-server b:9092 --alter --entity-type topics --entity-name "
        "mm2-lockstep-state.A.internal --add-config cleanup.policy=compact"
    )


@pytest.mark.parametrize(
    ("setting", "actual", "needed"),
    [
        ("cleanup.policy", "compact", "delete"),
        ("message.timestamp.type", "CreateTime", "LogAppendTime"),
        ("retention.ms", "3600000", "604800000"),
        ("min.insync.replicas", "4", "3"),
    ],
)
def test_events_topic_with_another_setting_has_a_fault(setting: str, actual: str, needed: str) -> None:
    (fault,) = find_faults(EVENTS, 1, 3, RIGHT[EVENTS.name] | {setting: actual})
    assert (fault.setting, fault.actual, fault.needed) == (setting, actual, needed)
    assert setting in fault.sentence


def test_commands_topic_with_too_few_partitions_is_grown() -> None:
    (fault,) = find_faults(COMMANDS, 2, 3, {})
    assert fault.command("b:9092") == (
        "kafka-topics --bootstrap-server b:9092 --alter --topic mm2-lockstep-commands.A.internal --partitions 6"
    )
    assert list(find_faults(COMMANDS, 12, 3, {})) == []
    assert list(find_faults(EVENTS, 3, 3, {})) == []


async def test_state_topic_with_more_partitions_has_a_fault_that_stays() -> None:
    (fault,) = find_faults(STATE, 3, 3, RIGHT[STATE.name])
    assert (fault.setting, fault.actual, fault.needed) == ("partitions", "3", "1")
    assert "stop the flow, delete the topic" in fault.sentence
    assert fault.command("b:9092") == (
        "kafka-topics --bootstrap-server b:9092 --delete --topic mm2-lockstep-state.A.internal"
    )
    stays = await repair_faults(cast(Admin, SimpleNamespace(alias="B")), [fault])
    assert list(stays) == [fault], "nothing is asked of the cluster"
