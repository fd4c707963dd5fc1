"""Commands on clusters that are well, about something that is not there or that a newer release wrote: one sentence, a
code, and nothing is changed. `test_unhappy_input.py` has what needs no cluster."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from lockstep_state.names import commands_topic, events_topic, state_topic
from lockstep_state.rows.state_rows import PartitionProgress
from tests.conftest import Pair
from tests.support.clusters import Record, create_topic, produce, read_topic, unique_name
from tests.support.commands import lockstep
from tests.support.own_flow import OwnFlow
from tests.support.services import ServiceProcess

NEVER_RUN = "the flow has never run"
ALTER = ("--topic", "nosuch", "--partition", "0", "--offset", "3")
COMPACTED = {"cleanup.policy": "compact"}


@dataclass(frozen=True, slots=True)
class UnhappyFlow(OwnFlow):
    """Commands about what it does not have."""

    def ended(self, command: str, *arguments: str) -> tuple[int, str, str]:
        """Code, standard output and standard error."""
        line = [sys.executable, "-m", "lockstep_cli", *command.split(), str(self.file), *arguments]
        done = subprocess.run(line, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    def create_own_topics(self) -> None:
        create_topic(self.target, state_topic(self.flow), configs=COMPACTED)
        create_topic(self.target, events_topic(self.flow))
        create_topic(self.target, commands_topic(self.flow), partitions=6)


@pytest.fixture
def unhappy(tmp_path: Path, pair: Pair) -> UnhappyFlow:
    factors = ("checkpoints.topic.replication.factor = 1", "lockstep.control.replication.factor = 1")
    lines = ("emit.heartbeats.enabled = false", *factors)
    return UnhappyFlow.between(pair.a, pair.b, tmp_path, unique_name("u"), *lines)


@pytest.mark.parametrize(
    ("command", "arguments", "code", "words"),
    [
        ("status", (), 3, NEVER_RUN),
        ("watch", ("--no-follow",), 0, ""),
        *((verb, (), 3, NEVER_RUN) for verb in ("pause", "resume", "stop", "restart", "refresh")),
        ("pause", ("topic:nosuch",), 3, NEVER_RUN),
        ("offsets list", (), 3, NEVER_RUN),
        ("offsets alter", ALTER, 3, NEVER_RUN),
        ("offsets reset", (), 3, NEVER_RUN),
        ("probe", ("--canary-topic", "nosuch"), 1, "does not mirror nosuch: name a topic that it does"),
        ("doctor", ("--category", "flow", "--canary-topic", "nosuch"), 1, "does not mirror nosuch"),
        ("takeover", ("--yes",), 1, "refused: there is no topic mm2-offsets."),
        ("takeover", ("--yes", "--offsets-topic", "nosuch"), 1, "refused: there is no topic nosuch"),
        ("handback", ("--yes",), 1, "refused: nothing is written down of this flow"),
        ("handback", ("--yes", "--stop"), 3, NEVER_RUN),
    ],
)
def test_command_about_what_is_not_there_changes_nothing(
    unhappy: UnhappyFlow, command: str, arguments: tuple[str, ...], code: int, words: str
) -> None:
    before = unhappy.names()
    found, printed, complaints = unhappy.ended(command, *arguments)
    assert found == code, printed + complaints
    assert words in printed + complaints
    assert len(complaints.splitlines()) <= 1
    assert unhappy.names() == before


@pytest.fixture
def newer(unhappy: UnhappyFlow) -> UnhappyFlow:
    """A flow of which a newer release runs."""
    unhappy.create_own_topics()
    key, value = PartitionProgress(topic=f"{unhappy.mark}-orders", partition=0, upstream=9, downstream=9).encode()
    body = json.dumps({**json.loads(value), "version": 99}).encode()
    produce(unhappy.target, state_topic(unhappy.flow), [Record(key=key, value=body)])
    return unhappy


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("status", ()),
        ("status", ("--output", "json")),
        ("plan", ()),
        ("takeover", ("--yes",)),
        ("handback", ("--yes",)),
    ],
)
def test_state_of_a_newer_release_ends_a_command_with_its_place(
    newer: UnhappyFlow, command: str, arguments: tuple[str, ...]
) -> None:
    before = newer.names()
    code, printed, complaints = newer.ended(command, *arguments)
    place = f"topic {state_topic(newer.flow)} on cluster {newer.flow.target}"
    assert (code, printed) == (1, "")
    assert complaints == (
        f"'partition/{newer.mark}-orders/0' in {place} was written in version 99, this release reads up to 1: "
        "run the newer release everywhere\n"
    )
    assert newer.names() == before
    assert len(read_topic(newer.target, state_topic(newer.flow))) == 1


def test_row_of_a_newer_release_is_undecoded_where_it_is_watched(newer: UnhappyFlow) -> None:
    printed = lockstep("watch", newer.file, "--no-follow", "--from", "beginning", "--topic", "state")
    assert "undecoded" in printed
    assert "version 99" in printed


@pytest.mark.long
def test_command_about_an_unknown_topic_is_refused_and_changes_nothing(unhappy: UnhappyFlow) -> None:
    create_topic(unhappy.source, f"{unhappy.mark}-orders")
    with ServiceProcess("lockstep_topic_sync", unhappy.file, str(unhappy.flow)) as process:
        process.hear("leading", flow=str(unhappy.flow))
        before = len(read_topic(unhappy.target, state_topic(unhappy.flow)))
        code, printed, complaints = unhappy.ended("pause", "topic:nosuch", "--timeout", "20")
        assert (code, complaints) == (1, "")
        assert "refused: no topic 'nosuch' of the source is mirrored by this flow" in printed
        rows = [record.key for record in read_topic(unhappy.target, state_topic(unhappy.flow))[before:]]
        assert not any(key is not None and key.startswith(b"wanted/") for key in rows)
