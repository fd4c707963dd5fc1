"""A halted partition that is decided from the console, also if the console is killed between two of its commands."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lockstep_console.actions.decision_runner import TAKEN_UP_AFTER_S
from lockstep_console.followed.watched_events import MOST_EVENTS
from lockstep_state.events import Event
from lockstep_state.names import Flow
from tests.support.acting_console import ActingConsole
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, delete_records, produce, read_topic, unique_name
from tests.support.console_scene import write_events
from tests.support.eventually import wait_until
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.services import one_flow_file

SOON = 60.0


def numbered(count: int, first: int = 0) -> list[Record]:
    return [Record(key=b"k", value=b"r %d" % (first + number)) for number in range(count)]


class Scene:
    """A flow with one topic, its data plane, and a console."""

    def __init__(self, folder: Path, flow: Flow, a: Broker, b: Broker) -> None:
        mark = unique_name("halt")
        self.topic = create_topic(a.bootstrap, f"{mark}-orders")
        self.file = one_flow_file(folder, flow, mark, a.bootstrap, b.bootstrap, "tasks.max = 1")
        self.flow = MirroredFlow(flow, a.bootstrap, b.bootstrap)
        self.subject = f"partition:{self.topic}-0"
        self.mirror: Mirror
        """The flow's services, once the fixture has started them."""

    def halt(self) -> None:
        """Copy 50 records, and let the source lose the next 40 before they are copied."""
        produce(self.flow.source, self.topic, numbered(50))
        self.flow.wait_copied(self.topic)
        self.flow.wait_written_down(self.topic)
        self.flow.ask("pause", f"topic:{self.topic}")
        self.wait_phase("paused")
        produce(self.flow.source, self.topic, numbered(100, first=50))
        delete_records(self.flow.source, self.topic, 90)
        self.flow.ask("resume", f"topic:{self.topic}")
        self.wait_phase("halted")

    def wait_phase(self, phase: str) -> None:
        wait_until(lambda: self.flow.progress(self.topic)[0].phase == phase, within=SOON, every=0.1, what=phase)

    def has_values(self, records: list[Record]) -> bool:
        copy = read_topic(self.flow.target, self.flow.remote(self.topic))
        return [record.value for record in copy] == [record.value for record in records]

    def wait_values(self, records: list[Record]) -> None:
        wait_until(lambda: self.has_values(records), within=SOON, every=0.25, what="the copy has them, each once")


@pytest.fixture
def scene(tmp_path: Path, flow: Flow, broker_a: Broker, broker_b: Broker) -> Iterator[Scene]:
    scene = Scene(tmp_path, flow, broker_a, broker_b)
    with ExitStack() as stack:
        scene.mirror = stack.enter_context(Mirror(scene.file, [scene.flow]))
        scene.halt()
        yield scene


def test_halted_partition_is_decided_from_the_console(scene: Scene) -> None:
    with ActingConsole(scene.file) as console:
        console.wait_ready()
        skip = {"verb": "skip", "subject": scene.subject}
        dry = console.post(scene.flow, "/commands", {**skip, "dry_run": True}, code=200)
        assert (dry["arguments"], dry["label"]) == ({"offset": 90}, "Skip offsets 50 to 89")
        assert "Source offsets 50 to 89 are not copied." in dry["loses"]
        assert "Meanwhile nothing of" in dry["does"]
        other = console.post(scene.flow, "/commands", {**skip, "arguments": {"offset": 91}}, code=409)
        assert "look again, and decide anew" in other["error"]["sentence"], "the choice that was shown is another one"

        asked = console.post(scene.flow, "/commands", {**skip, "arguments": {"offset": 90}}, user="alice")
        outcome = console.outcome(scene.flow, asked)
        assert (outcome["phase"], outcome["by"]) == ("done", "alice"), outcome
        kinds = [(answer["kind"], answer["detail"]["by"]) for answer in outcome["answers"]]
        assert kinds == [("Stopped", "alice"), ("OffsetsAltered", "alice"), ("Resumed", "alice")]
        scene.wait_values([*numbered(50), *numbered(60, first=90)])
        again = console.post(scene.flow, "/commands", skip, code=409)
        assert "is not halted" in again["error"]["sentence"]


def test_decision_whose_console_is_killed_is_shown_and_finished(scene: Scene) -> None:
    with ActingConsole(scene.file) as console:
        console.wait_ready()
        scene.mirror.kill_data_plane()  # nobody answers the command that alters the offset
        decision = {"verb": "restart-from", "subject": scene.subject, "arguments": {"offset": 100}}
        asked = console.post(scene.flow, "/commands", decision, user="alice")
        wait_until(lambda: scene.flow.events("Stopped"), within=SOON, every=0.02, what="the connector is stopped")
        console.kill()
        # So many events follow that those of the decision are not among the last ones any more.
        created = Event(kind="TopicCreated", service="test", flow=str(scene.flow.flow))
        write_events(scene.flow.target, scene.flow.flow, [created] * MOST_EVENTS)
        console.start()
        console.wait_ready()
        found = console.get(scene.flow, f"/commands/{asked['id']}")
        assert found["phase"] == "unfinished", found
        assert "is still stopped, so nothing is copied" in found["sentence"]
        offered = wait_until(lambda: unfinished(console), within=SOON, every=0.5, what="it is offered")
        assert [choice["verb"] for choice in offered["choices"]] == ["resume"]
        assert console.get(scene.flow, "/commands")["commands"][0]["id"] == asked["id"], "it is shown first"
        scene.mirror.data_plane.start()
        wanted = [*numbered(50), *numbered(50, first=100)]
        status, finish = console.ask("POST", console.path(scene.flow, "/commands"), decision, user="bob")
        if status == 409:  # at rest it is not halted
            resume = {"verb": "resume", "subject": "connector:MirrorSourceConnector"}
            finish = console.post(scene.flow, "/commands", resume, user="bob")
        assert_resumed(console, scene, finish)
        # If the command of the first decision was sent, it was carried out, and a later one is refused. If not, and
        # nothing else has altered the offset, the partition halts again.
        wait_until(lambda: scene.has_values(wanted) or is_halted(scene), within=SOON, every=0.25, what="it goes on")
        if not scene.has_values(wanted):
            assert_resumed(console, scene, console.post(scene.flow, "/commands", decision, user="bob"))
        scene.wait_values(wanted)


def assert_resumed(console: ActingConsole, scene: Scene, asked: Mapping[str, Any]) -> None:
    outcome = console.outcome(scene.flow, asked)
    assert outcome["answers"][-1]["kind"] == "Resumed", outcome


def is_halted(scene: Scene) -> bool:
    return scene.flow.progress(scene.topic)[0].phase == "halted"


@pytest.mark.long
def test_decision_whose_console_is_killed_is_finished_by_another_one(scene: Scene) -> None:
    with ActingConsole(scene.file) as console, ActingConsole(scene.file, instance="console-2") as other:
        console.wait_ready()
        decision = {"verb": "restart-from", "subject": scene.subject, "arguments": {"offset": 100}}
        asked = console.post(scene.flow, "/commands", decision, user="alice")
        wait_until(lambda: scene.flow.events("Stopped"), within=SOON, every=0.02, what="the connector is stopped")
        console.kill()
        other.wait_ready()
        outcome = other.outcome(scene.flow, asked, within=TAKEN_UP_AFTER_S + SOON)
        ended = wait_until(
            lambda: outcome_unless(other, scene, asked, "unfinished"),
            within=TAKEN_UP_AFTER_S + SOON,
            every=1.0,
            what="it is finished",
        )
        assert outcome["phase"] == "unfinished"
        assert ended["phase"] == "done", ended
        assert len(scene.flow.events("Resumed")) == 2, "once for the halt of the test, and once for this"
        assert unfinished(other) is None


def unfinished(console: ActingConsole) -> dict[str, Any] | None:
    """Return the unfinished decision that waits, if there is one."""
    _, body = console.ask("GET", "/decisions")
    return next((each for each in body["decisions"] if each["kind"] == "unfinished-decision"), None)


def outcome_unless(console: ActingConsole, scene: Scene, asked: Mapping[str, Any], phase: str) -> dict[str, Any] | None:
    body = console.get(scene.flow, f"/commands/{asked['id']}")
    return None if body["phase"] in (phase, "running") else body


def test_of_two_decisions_in_two_consoles_at_once_the_first_counts(scene: Scene) -> None:
    with ActingConsole(scene.file) as first, ActingConsole(scene.file, instance="console-2") as second:
        first.wait_ready()
        second.wait_ready()
        decisions: dict[str, dict[str, Any]] = {
            "alice": {"verb": "skip"},
            "bob": {"verb": "restart-from", "arguments": {"offset": 100}},
        }

        def decide(console: ActingConsole, user: str) -> dict[str, Any]:
            body = {**decisions[user], "subject": scene.subject}
            return console.outcome(scene.flow, console.post(scene.flow, "/commands", body, user=user))

        with ThreadPoolExecutor(2) as both:
            outcomes = dict(zip(decisions, both.map(decide, (first, second), decisions), strict=True))
        phases = {user: outcome["phase"] for user, outcome in outcomes.items()}
        assert sorted(phases.values()) == ["done", "refused"], outcomes
        (winner,) = [user for user, phase in phases.items() if phase == "done"]
        begin = {"alice": 90, "bob": 100}[winner]
        scene.wait_values([*numbered(50), *numbered(150 - begin, first=begin)])
        assert len(scene.flow.events("OffsetsAltered")) == 1
