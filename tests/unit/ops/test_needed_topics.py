"""Topics of its own that a flow needs: those that its services create, by the lists that these have."""

import pytest

from lockstep_kafka.topics.control_topics import service_topics
from lockstep_ops.needed_topics import coming_topics, needed_topics
from lockstep_ops.services import SERVICES
from tests.support.plan_facts import settings_for

OURS = [("B", f"mm2-lockstep-{kind}.A.internal") for kind in ("state", "events", "commands")]
PROGRESS = ("B", "mm2-offsets.A.internal")
SYNCS = ("A", "mm2-offset-syncs.B.internal")
CHECKPOINTS = ("B", "A.checkpoints.internal")
HEARTBEATS = ("B", "heartbeats")


@pytest.mark.parametrize(
    ("lines", "needed"),
    [
        ([], [*OURS, PROGRESS, SYNCS, CHECKPOINTS, HEARTBEATS]),
        (["A->B.emit.checkpoints.enabled = false"], [*OURS, PROGRESS, SYNCS, HEARTBEATS]),
        (["A->B.emit.heartbeats.enabled = false"], [*OURS, PROGRESS, SYNCS, CHECKPOINTS]),
        (
            ["A->B.emit.offset-syncs.enabled = false", "A->B.emit.checkpoints.enabled = false"],
            [*OURS, PROGRESS, HEARTBEATS],
        ),
        (
            ["A->B.offset-syncs.topic.location = target"],
            [*OURS, PROGRESS, ("B", "mm2-offset-syncs.A.internal"), CHECKPOINTS, HEARTBEATS],
        ),
        (["A->B.enabled = false"], [*OURS, HEARTBEATS]),
    ],
)
def test_needed_topics_are_those_of_the_services_that_run(lines: list[str], needed: list[tuple[str, str]]) -> None:
    assert [(alias, topic.name) for alias, topic in needed_topics(settings_for(*lines))] == needed


def test_topic_that_two_services_create_is_needed_once() -> None:
    settings = settings_for()
    owners = [name for name in SERVICES if SYNCS in [(a, topic.name) for a, topic in service_topics(settings, name)]]
    assert owners == ["data-plane", "checkpoint"]
    assert [(alias, topic.name) for alias, topic in needed_topics(settings)].count(SYNCS) == 1


def test_coming_topics_are_those_of_all_flows_by_cluster() -> None:
    both = settings_for("A->B.emit.heartbeats.enabled = false"), settings_for()
    topics = coming_topics(both)
    assert topics.keys() == {"A", "B"}
    assert list(topics["A"]) == ["mm2-offset-syncs.B.internal"]
    assert topics["B"].keys() >= {"heartbeats", "A.checkpoints.internal"}
