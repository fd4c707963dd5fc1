"""What is asked about offsets, checked before it is sent."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lockstep_cli.commands.offsets import OffsetsOptions, build_request
from lockstep_config import FlowSettings
from lockstep_ops.command_request import CommandReply, command_request
from lockstep_ops.exit_codes import CannotUse, Exit
from lockstep_state.commands.command_vocabulary import Connector
from lockstep_state.events import Event
from tests.support.command_line import lockstep

File = Callable[..., Path]

SOURCE, CHECKPOINT = Connector.SOURCE, Connector.CHECKPOINT
WHERE = {"cluster": "A", "topic": "orders", "partition": 0}


def test_offsets_request_for_one_partition_has_one_entry() -> None:
    assert build_request(SOURCE, "A", None, "orders", 0, 5) == {
        "offsets": [{"partition": WHERE, "offset": {"offset": 5}}]
    }
    assert build_request(SOURCE, "A", None, "orders", 0, None) == {"offsets": [{"partition": WHERE, "offset": None}]}


@pytest.mark.parametrize(("left_out", "code"), [(0, Exit.FINE), (3, Exit.TROUBLE)])
def test_offsets_list_that_is_not_complete_ends_with_trouble(
    file: File, monkeypatch: pytest.MonkeyPatch, left_out: int, code: Exit
) -> None:
    entries = [{"partition": WHERE, "offset": {"offset": 5}}]

    async def ask(options: OffsetsOptions, settings: FlowSettings, verb: str) -> CommandReply:
        reply = CommandReply(command_request(settings, verb, options.scope(), None))
        detail = {"offsets": entries, "left_out": left_out}
        reply.heard["data-plane"] = Event(kind="OffsetsListed", service="data-plane", flow="A->B", detail=detail)
        return reply

    monkeypatch.setattr(OffsetsOptions, "ask", ask)
    ran = lockstep("offsets", "list", file(), "--output", "json")
    assert json.loads(ran.stdout) == {"offsets": entries, **({"left_out": 3} if left_out else {})}
    assert ("and 3 more" in ran.stderr) == bool(left_out)
    assert ran.exit_code == code


def test_offsets_request_without_a_selection_means_all() -> None:
    assert build_request(SOURCE, "A", None, None, None, None) is None


def test_a_request_goes_as_it_was_given() -> None:
    body = {"offsets": [{"partition": WHERE, "offset": {"offset": 5}}]}
    assert build_request(SOURCE, "A", json.dumps(body), None, None, None) == body


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{", "not JSON"),
        ("[]", "a request is"),
        ('{"offsets": [{"partition": {"topic": "t"}, "offset": {"offset": 1}}]}', "entry 1"),
        (json.dumps({"offsets": [{"partition": WHERE, "offset": {"offset": -1}}]}), "may not be negative"),
    ],
)
def test_a_request_that_would_be_refused_is_not_sent(body: str, words: str) -> None:
    with pytest.raises(CannotUse, match=words):
        build_request(SOURCE, "A", body, None, None, None)


def test_only_the_source_connector_has_topics_and_partitions_by_name() -> None:
    with pytest.raises(CannotUse, match="give a MirrorCheckpointConnector a REQUEST"):
        build_request(CHECKPOINT, "A", None, "orders", 0, 0)


def test_a_dry_run_shows_the_request(file: File) -> None:
    path = str(file())
    entry = "--topic", "orders", "--partition", "0", "--offset", "5"
    ran = lockstep("offsets", "alter", path, *entry, "--dry-run")
    assert json.loads(ran.output)["request"]["offsets"][0]["partition"] == WHERE
    ran = lockstep("offsets", "reset", path, "--dry-run")
    assert (json.loads(ran.output)["verb"], json.loads(ran.output)["request"]) == ("offsets-reset", None)
    request = json.dumps({"offsets": [{"partition": WHERE, "offset": None}]})
    ran = lockstep("offsets", "alter", path, "-", "--dry-run", input=request)
    assert json.loads(ran.output)["request"] == json.loads(request)


@pytest.mark.parametrize(
    "arguments",
    [
        ["alter", "FILE"],
        ["alter", "FILE", "--topic", "orders", "--partition", "0"],
        ["alter", "FILE", "-", "--topic", "orders"],
        ["reset", "FILE", "--topic", "orders"],
        ["alter", "FILE", "--topic", "orders", "--partition", "0", "--offset", "-1"],
        ["list", "FILE", "--connector", "Mirror"],
        ["list", "FILE", "--flow", "A->C"],
    ],
)
def test_offsets_with_bad_arguments_is_bad_usage(file: File, arguments: list[str]) -> None:
    verb, _, *more = arguments
    assert lockstep("offsets", verb, file(), *more, input="{}").exit_code == 2
