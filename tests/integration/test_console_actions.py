"""What operators ask for in the console: real services carry it out, and their events say who asked."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lockstep_state.events import Event, decode_event
from lockstep_state.names import Flow, events_topic
from tests.support.acting_console import ACTS, ActingConsole
from tests.support.broker import Broker
from tests.support.clusters import create_topic, read_topic, unique_name
from tests.support.services import ServiceProcess, one_flow_file


class Scene:
    """A flow with one topic, topic-sync and a console."""

    def __init__(self, folder: Path, flow: Flow, a: Broker, b: Broker) -> None:
        self.flow, self.b = flow, b
        mark = unique_name("act")
        self.topic = f"{mark}-orders"
        create_topic(a.bootstrap, self.topic, partitions=2)
        self.file = one_flow_file(folder, flow, mark, a.bootstrap, b.bootstrap)
        self.console = ActingConsole(self.file)

    def events(self, kind: str) -> list[Event]:
        decoded = [decode_event(r.value or b"") for r in read_topic(self.b.bootstrap, events_topic(self.flow))]
        return [event for event in decoded if event.kind == kind]


@pytest.fixture
def scene(tmp_path: Path, flow: Flow, broker_a: Broker, broker_b: Broker) -> Iterator[Scene]:
    scene = Scene(tmp_path, flow, broker_a, broker_b)
    with ExitStack() as stack:
        service = stack.enter_context(ServiceProcess("lockstep_topic_sync", scene.file, str(flow)))
        service.hear("topic created")
        stack.enter_context(scene.console).wait_ready()
        yield scene


def test_pause_of_the_api_is_answered_and_says_who_asked(scene: Scene) -> None:
    console, flow = scene.console, scene.flow
    command = {"verb": "pause", "subject": f"topic:{scene.topic}"}
    dry = console.post(flow, "/commands", {**command, "dry_run": True}, code=200)
    assert (dry["dry_run"], dry["asked"]) == (True, ["topic-sync"])
    assert scene.topic in dry["confirm"]
    assert "falls behind" in dry["loses"]
    assert not scene.events("Paused"), "a look changes nothing"

    outcome = console.outcome(flow, console.post(flow, "/commands", command, user="alice"))
    assert (outcome["phase"], outcome["by"], outcome["missing"]) == ("done", "alice", []), outcome
    assert [answer["kind"] for answer in outcome["answers"]] == ["Paused"]
    (event,) = scene.events("Paused")
    assert (event.detail["by"], event.answers) == ("alice", outcome["id"])

    console.kill()
    console.start()
    console.wait_ready()
    found = console.outcome(flow, outcome)
    assert (found["phase"], found["by"], found["verb"]) == ("done", "alice", "pause"), "it is in the events topic"
    assert found["subject"] == f"topic:{scene.topic}"
    assert found["answers"][0]["kind"] == "Paused"

    resumed = console.outcome(flow, console.post(flow, "/commands", {**command, "verb": "resume"}))
    assert (resumed["phase"], resumed["by"]) == ("done", "console token")


def test_command_that_is_refused_or_not_answered_is_shown_as_such(scene: Scene) -> None:
    console, flow = scene.console, scene.flow
    unknown = console.outcome(flow, console.post(flow, "/commands", {"verb": "pause", "subject": "topic:nowhere"}))
    assert unknown["phase"] == "refused"
    assert "no topic 'nowhere' of the source is mirrored" in unknown["sentence"]

    checkpoint = {"verb": "refresh", "subject": "connector:MirrorCheckpointConnector"}
    silent = console.outcome(flow, console.post(flow, "/commands", checkpoint))
    assert (silent["phase"], silent["missing"], silent["answers"]) == ("unanswered", ["checkpoint"], [])
    assert "No replica of it runs for this flow: start it" in silent["sentence"]
    listed = console.get(flow, "/commands")["commands"]
    assert [outcome["id"] for outcome in listed] == [silent["id"], unknown["id"]], "the newest first"


def test_who_may_not_act_changes_nothing(scene: Scene) -> None:
    console, flow = scene.console, scene.flow
    path = f"/flows/{str(flow).replace('>', '%3E')}/commands"
    command = {"verb": "pause", "subject": "flow"}
    status, body = console.ask("POST", path, command, token="another")
    assert (status, body["error"]["code"]) == (401, "not-admitted")
    status, body = console.ask("POST", path, command, headers={"Content-Type": "application/json"})
    assert (status, body["error"]["code"]) == (403, "foreign-request")
    status, body = console.ask("POST", path, command, headers={**ACTS, "Sec-Fetch-Site": "cross-site"}, user="alice")
    assert (status, body["error"]["code"]) == (403, "foreign-request")
    assert not scene.events("Paused")


@pytest.mark.parametrize(
    ("body", "code", "status", "text"),
    [
        ({"verb": "dance"}, "unknown-verb", 400, "no command 'dance'. It knows pause"),
        ({"verb": "pause", "subject": "colour:blue"}, "cannot-use", 400, "write flow, connector:NAME"),
        ({"verb": "stop", "subject": "topic:t"}, "cannot-use", 400, "stop is not for a topic"),
        ({"verb": "pause", "subject": 3}, "bad-body", 400, "subject in the body is no str"),
        ({"verb": "pause", "arguments": {"x": 1}}, "bad-body", 400, "pause takes no arguments"),
        ({"verb": "skip", "subject": "partition:nowhere-0"}, "cannot-decide", 409, "no partition that"),
        ({"verb": "skip", "subject": "flow"}, "cannot-decide", 409, "write partition:TOPIC-NUMBER"),
    ],
)
def test_wrong_commands_get_a_sentence(
    scene: Scene, body: dict[str, object], code: str, status: int, text: str
) -> None:
    error = scene.console.post(scene.flow, "/commands", body, code=status)["error"]
    assert error["code"] == code
    assert text in error["sentence"]
    scene.console.get(scene.flow, "/commands/unknown", code=404)
