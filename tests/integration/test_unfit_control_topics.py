"""Control topics that somebody made beforehand with other settings: services set them right, plan and doctor say so."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lockstep_state.names import commands_topic, events_topic, state_topic
from tests.support.clusters import admin, config_of, create_topic, set_configs
from tests.support.control import events
from tests.support.doctor_runs import run_doctor
from tests.support.eventually import wait_until
from tests.support.planned_flow import PlannedFlow, hazards
from tests.support.services import ServiceProcess

WITHIN = 60.0


def make_unfit(planned: PlannedFlow) -> None:
    flow = planned.flow
    create_topic(planned.target, state_topic(flow), configs={"cleanup.policy": "delete", "retention.ms": "60000"})
    create_topic(planned.target, events_topic(flow), configs={"cleanup.policy": "compact"})
    create_topic(planned.target, commands_topic(flow), partitions=2)


@contextmanager
def topic_sync(planned: PlannedFlow) -> Iterator[ServiceProcess]:
    with ServiceProcess("lockstep_topic_sync", planned.file, str(planned.flow)) as service:
        yield service


def test_plan_and_doctor_name_unfit_control_topics(planned: PlannedFlow) -> None:
    planned.topic()
    assert "LS022" not in hazards(planned.only())
    make_unfit(planned)
    details = hazards(planned.only(code=1))["LS022"]
    assert any(
        f"{state_topic(planned.flow)} has cleanup.policy=delete, and needs compact" in detail
        and "--add-config cleanup.policy=compact" in detail
        for detail in details
    )
    assert any("partitions=2, and needs 6" in detail for detail in details)
    run = run_doctor(planned.file, "--category", "limits", code=1)
    sentence = f"{state_topic(planned.flow)} has cleanup.policy=delete"
    assert run.one("LD807", str(planned.flow), sentence)["result"] == "failed"


def test_service_sets_control_topics_right_when_it_starts(planned: PlannedFlow) -> None:
    make_unfit(planned)
    flow = planned.flow
    with topic_sync(planned) as service:
        service.hear("leading")
        assert config_of(planned.target, state_topic(flow), "cleanup.policy") == "compact"
        assert config_of(planned.target, events_topic(flow), "cleanup.policy") == "delete"
        assert len(admin(planned.target).list_topics(timeout=10).topics[commands_topic(flow)].partitions) == 6
        wait_until(
            lambda: any(
                (one.subject, one.detail["setting"]) == (state_topic(flow), "cleanup.policy")
                for one in events(planned.target, flow, "ControlTopicCorrected")
            ),
            within=WITHIN,
            what="the event",
        )


@pytest.mark.long
def test_service_sets_a_policy_right_that_changes_while_it_runs(planned: PlannedFlow) -> None:
    name = state_topic(planned.flow)
    with topic_sync(planned) as service:
        service.hear("leading")
        set_configs(planned.target, name, {"cleanup.policy": "delete"})
        wait_until(
            lambda: config_of(planned.target, name, "cleanup.policy") == "compact",
            within=120,
            what="the policy is set right",
        )
