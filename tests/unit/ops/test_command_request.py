"""Commands: the services that are asked, and the sum of their answers."""

import json
import os
import pwd
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lockstep_cli.__main__ import main
from lockstep_cli.flow_selection import choose_flows
from lockstep_config import FlowSettings
from lockstep_ops.command_request import REFUSED, CommandReply, command_request, exit_code, operator_name
from lockstep_ops.exit_codes import CannotUse, Exit
from lockstep_state.commands.command_vocabulary import FLOW, Scope
from lockstep_state.events import Event

Settings = Callable[..., FlowSettings]
File = Callable[..., Path]


def answer(service: str, kind: str = "Paused", *, answers: str = "1", **detail: Any) -> Event:
    return Event(kind=kind, service=service, flow="A->B", answers=answers, detail=detail)


@pytest.fixture
def reply(settings: Settings) -> CommandReply:
    question = command_request(settings(), "pause", FLOW)
    return CommandReply(replace(question, command=replace(question.command, id="1")))


def test_command_about_a_flow_is_sent_to_the_owners_of_its_connectors(reply: CommandReply) -> None:
    assert reply.request.services == {"topic-sync", "checkpoint", "heartbeat"}
    assert reply.request.command.subject == "flow"
    assert reply.missing == ("checkpoint", "heartbeat", "topic-sync")


def test_each_request_has_an_id_of_its_own(settings: Settings) -> None:
    first, second = (command_request(settings(), "pause", FLOW).command for _ in range(2))
    assert first.id != second.id
    assert first.at_ms > 0


def test_services_without_work_in_the_flow_are_not_waited_for(settings: Settings) -> None:
    asked = command_request(settings("emit.checkpoints.enabled = false"), "pause", FLOW)
    assert asked.services == {"topic-sync", "heartbeat"}
    assert asked.absent == {"checkpoint"}


@pytest.mark.parametrize(
    ("verb", "scope", "words"),
    [
        (
            "pause",
            "connector:MirrorCheckpointConnector",
            "checkpoint would carry out pause connector:MirrorCheckpointConnector",
        ),
        ("stop", "topic:orders", "stop is not for a topic"),
    ],
)
def test_command_that_no_service_carries_out_is_refused(settings: Settings, verb: str, scope: str, words: str) -> None:
    with pytest.raises(CannotUse, match=words):
        command_request(settings("emit.checkpoints.enabled = false"), verb, Scope.parse(scope))


def test_answers_of_all_are_fine(reply: CommandReply) -> None:
    for service in sorted(reply.request.services):
        reply.add_event(answer(service, scope="connector:X", wanted="paused"))
    assert reply.missing == ()
    assert exit_code([reply]) is Exit.FINE
    assert reply.as_lines()[0] == "A->B  checkpoint: paused, connector:X is to be paused"


def test_reply_counts_the_first_answer_to_its_id_of_each_asked_service(reply: CommandReply) -> None:
    reply.add_event(answer("heartbeat", answers="2"))
    reply.add_event(answer("acl-sync"))
    assert reply.heard == {}
    reply.add_event(answer("heartbeat"))
    reply.add_event(answer("heartbeat", REFUSED, reason="late"))
    assert reply.heard["heartbeat"].kind == "Paused"


def test_reply_with_a_refusal_has_its_reason_and_exit_code_first(reply: CommandReply) -> None:
    reply.add_event(answer("topic-sync", REFUSED, reason="no topic 'x' is mirrored"))
    assert exit_code([reply]) is Exit.TROUBLE
    assert "A->B  topic-sync: refused: no topic 'x' is mirrored" in reply.as_lines()


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({}, "Look at its log"),
        ({"heartbeat": 0}, "No replica of it runs for this flow: start it."),
        ({"heartbeat": 1}, "1 replica runs and did not answer"),
        ({"heartbeat": 3}, "3 replicas run and did not answer"),
    ],
)
def test_reply_names_a_silent_service_and_its_cause(reply: CommandReply, members: dict[str, int], words: str) -> None:
    reply.members.update(members)
    assert exit_code([reply]) is Exit.NO_ANSWER
    (line,) = (line for line in reply.as_lines() if line.startswith("A->B  heartbeat: no answer to pause."))
    assert words in line
    assert "kept for 7 days" in line


def test_trouble_with_the_cluster_is_the_only_line(reply: CommandReply) -> None:
    reply.trouble = "cluster B at x cannot be reached: y"
    assert reply.as_lines() == ["A->B  cluster B at x cannot be reached: y"]
    assert exit_code([reply]) is Exit.NO_ANSWER
    reply.denied = True
    assert exit_code([reply]) is Exit.TROUBLE


def test_a_program_reads_all_of_it(reply: CommandReply) -> None:
    reply.add_event(answer("heartbeat", wanted="paused"))
    body = json.loads(json.dumps(reply.as_json()))
    assert body["answers"] == [{"service": "heartbeat", "kind": "Paused", "at_ms": 0, "detail": {"wanted": "paused"}}]
    assert body["missing"] == ["checkpoint", "topic-sync"]
    assert (body["flow"], body["verb"], body["subject"], body["id"]) == ("A->B", "pause", "flow", "1")


# -- which flows -------------------------------------------------------------------------------------------------------


def test_the_only_flow_need_not_be_named(file: File) -> None:
    assert [str(settings.flow) for settings in choose_flows(file(), [])] == ["A->B"]


def test_command_for_a_file_with_several_flows_needs_a_flow(file: File) -> None:
    both = file("B->A.enabled = true")
    with pytest.raises(CannotUse, match="has 2 flows, 'A->B', 'B->A': say which one with --flow"):
        choose_flows(both, [])
    assert [str(settings.flow) for settings in choose_flows(both, ["B->A", "B->A"])] == ["B->A"]
    assert [str(settings.flow) for settings in choose_flows(both, [], all_enabled=True)] == ["A->B", "B->A"]


@pytest.mark.parametrize(
    ("names", "all_enabled", "words"),
    [(["A"], False, "is not a flow"), (["A->C"], False, "A->B"), (["A->B"], True, "exclude each other")],
)
def test_flows_that_cannot_be_meant_are_refused(file: File, names: list[str], all_enabled: bool, words: str) -> None:
    with pytest.raises(CannotUse, match=words):
        choose_flows(file(), names, all_enabled=all_enabled)


def test_a_file_without_an_enabled_flow_has_nothing_to_ask(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text("clusters = A, B\nA.bootstrap.servers = x:1\nB.bootstrap.servers = y:2\n")
    with pytest.raises(CannotUse, match="no flow is enabled"):
        choose_flows(path, [])


# -- as it is met ------------------------------------------------------------------------------------------------------


def test_dry_run_sends_nothing_and_names_the_services(file: File) -> None:
    ran = CliRunner().invoke(main, ["stop", str(file()), "slot:3", "--dry-run"])
    assert (ran.exit_code, ran.output) == (0, "A->B  would ask topic-sync: stop slot:3\n")


def test_a_dry_run_for_programs_shows_the_command(file: File) -> None:
    ran = CliRunner().invoke(main, ["pause", str(file()), "topic:orders", "--dry-run", "--output", "json"])
    (flow,) = json.loads(ran.output)["flows"]
    assert (flow["verb"], flow["subject"], flow["asked"]) == ("pause", "topic:orders", ["topic-sync"])


@pytest.mark.parametrize(
    ("arguments", "line", "words"),
    [
        (["pause", "topics:x"], "", "is nothing that commands are about"),
        (["stop", "topic:x"], "", "a topic is stopped with --before TIME alone"),
        (["refresh", "slot:1"], "", "refresh is not for a slot"),
        (["pause", "flow", "--flow", "A->C"], "", "A->C"),
        (["pause"], "tasks.max = nonsense", "nonsense"),
    ],
)
def test_command_with_bad_arguments_or_a_wrong_file_is_bad_usage(
    file: File, arguments: list[str], line: str, words: str
) -> None:
    verb, *more = arguments
    ran = CliRunner().invoke(main, [verb, str(file(line)), *more])
    assert ran.exit_code == 2
    assert words in ran.output


@pytest.mark.parametrize("verb", ["pause", "resume", "stop", "restart", "refresh"])
def test_every_verb_has_an_example_and_exit_codes_in_its_help(verb: str) -> None:
    said = CliRunner().invoke(main, [verb, "--help"]).output
    assert f"lockstep {verb} mm2.properties" in said
    assert "Exit codes:" in said


# -- who asks ----------------------------------------------------------------------------------------------------------


def test_command_has_the_name_of_who_asks(settings: Settings) -> None:
    assert command_request(settings(), "pause", FLOW).command.by == operator_name()
    assert command_request(settings(), "pause", FLOW, by="alice").command.by == "alice"
    assert command_request(settings(), "pause", FLOW, by="").command.by == ""


def test_operator_is_the_user_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody else")
    assert operator_name() == pwd.getpwuid(os.getuid()).pw_name
    monkeypatch.setattr(os, "getuid", lambda: 987_654)
    assert operator_name() == "uid 987654"


def test_command_has_the_id_that_it_is_given(settings: Settings) -> None:
    assert command_request(settings(), "pause", FLOW, command_id="d.stop-running").command.id == "d.stop-running"


@pytest.mark.parametrize(
    ("topic", "words"), [("t" * 41_000, "at most 40000 characters"), ("\ud800", "surrogates not allowed")]
)
def test_command_that_no_service_would_read_is_not_sent(settings: Settings, topic: str, words: str) -> None:
    with pytest.raises(CannotUse, match=f"no service would read the command: .*{words}"):
        command_request(settings(), "pause", Scope.parse(f"topic:{topic}"))
