"""Services that cannot begin say why: `lockstep status` shows it, with and without a state topic."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from lockstep_state.names import Flow, commands_topic, state_topic
from tests.support.clusters import Record, admin, create_topic, produce
from tests.support.commands import lockstep
from tests.support.control import events
from tests.support.eventually import wait_until
from tests.support.planned_flow import PlannedFlow
from tests.support.services import ServiceProcess

WITHIN = 60.0


def block_creation(planned: PlannedFlow, topic: str) -> str:
    """Let the target refuse to create a topic: another one has the same name but for dots and underscores."""
    return create_topic(planned.target, topic.replace(".", "_"))


def flow_status(planned: PlannedFlow, code: int = 1) -> dict[str, Any]:
    (flow,) = json.loads(lockstep("status", planned.file, "--output", "json", code=code))["flows"]
    assert isinstance(flow, dict)
    return flow


def service(planned: PlannedFlow) -> ServiceProcess:
    return ServiceProcess("lockstep_topic_sync", planned.file, str(planned.flow))


def reported(planned: PlannedFlow, *, fails: bool) -> None:
    def is_reported() -> bool:
        said = events(planned.target, planned.flow, "TroublesReported")
        return bool(said) and bool(said[-1].detail["troubles"]) is fails

    wait_until(is_reported, within=WITHIN, what=f"a report that {'names' if fails else 'has no'} troubles")


def test_status_without_a_creatable_state_topic_names_the_cause(planned: PlannedFlow) -> None:
    block_creation(planned, state_topic(planned.flow))
    unknown = flow_status(planned)["unknown"]
    assert "it cannot be created, so the services of the flow do not begin" in unknown
    assert "collides" in unknown
    assert "never run" not in unknown
    assert state_topic(planned.flow) not in admin(planned.target).list_topics(timeout=10).topics


@pytest.mark.long
@pytest.mark.parametrize("refused", [state_topic, commands_topic])
def test_status_shows_why_services_cannot_begin(planned: PlannedFlow, refused: Callable[[Flow], str]) -> None:
    twin = block_creation(planned, refused(planned.flow))
    with service(planned) as running:
        running.hear("target failing")
        reported(planned, fails=True)
        flow = flow_status(planned)
        said = flow.get("unknown") or " ".join(trouble["what"] + ": " + trouble["why"] for trouble in flow["troubles"])
        assert "topic-sync: target: " in said
        assert f"refused to create topic {refused(planned.flow)}" in said
        client = admin(planned.target)
        client.delete_topics([twin])[twin].result(10)
        running.hear("leading")
        reported(planned, fails=False)
        assert "refused to create" not in json.dumps(flow_status(planned))


@pytest.mark.long
def test_status_counts_commands_that_were_passed_over(planned: PlannedFlow) -> None:
    with service(planned) as running:
        running.hear("leading")
        topic = commands_topic(planned.flow)
        produce(planned.target, topic, [Record(key=b"x", value=b'{"verb":"pause","subject":{"a":1}}')])
        running.hear("unreadable record passed over")
        reported(planned, fails=False)
        (line,) = flow_status(planned)["unreadable"]
        assert (line["service"], line["topic"], line["count"]) == ("topic-sync", topic, 1)
        assert f"1 record of {topic}" in lockstep("status", planned.file, code=1)
