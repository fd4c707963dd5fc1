"""A cluster whose brokers are dead refuses connections: commands say so within seconds, and show what they know."""

import json
import time
from pathlib import Path

import pytest

from lockstep_state.names import Flow, events_topic, state_topic
from lockstep_state.rows.state_rows import MirroredTopic, PartitionProgress
from tests.conftest import Pair
from tests.support.clusters import create_topic, unique_name
from tests.support.command_line import lockstep
from tests.support.own_flow import OwnFlow
from tests.support.ports import free_port
from tests.support.services import one_flow_file

WITHIN_S = 4.0
"""Usual is 1.5. With librdkafka's own patience each takes 5 to 25."""

SHOW = ("verify", "show")
ONE_SHOT: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("watch", "--no-follow"),
    ("plan",),
    ("doctor", "--category", "connection"),
    SHOW,
    ("takeover", "--dry-run"),
    ("switchover", "--dry-run"),
    ("failback", "--dry-run"),
)
ASK_TARGET: tuple[tuple[str, ...], ...] = (
    ("pause",),
    ("offsets", "list"),
    ("handback", "--dry-run"),
    ("failover", "--dry-run"),
)
REFUSED = "connection refused"


def flow_with_rows(folder: Path, pair: Pair, refused: str) -> OwnFlow:
    """Return a flow both ways that has copied nine records, of which one cluster refuses connections now."""
    mark = unique_name("r").replace("-", "")
    way = OwnFlow.between(pair.a, pair.b, folder, mark)
    topic = create_topic(way.source, f"{mark}-orders")
    create_topic(way.target, f"{way.flow.source}.{topic}")
    create_topic(way.target, events_topic(way.flow))
    for flow, bootstrap in ((way.flow, way.target), (Flow(way.flow.target, way.flow.source), way.source)):
        create_topic(bootstrap, state_topic(flow), configs={"cleanup.policy": "compact"})
    way.write_rows(
        MirroredTopic(source_topic=topic, target_topic=f"{way.flow.source}.{topic}", partitions=1, target_partitions=1),
        PartitionProgress(topic=topic, partition=0, upstream=8, downstream=8),
    )
    nowhere = f"127.0.0.1:{free_port()}"
    source, target = (nowhere, way.target) if refused == "source" else (way.source, nowhere)
    back = f"{way.flow.target}->{way.flow.source}.enabled = true"
    file = one_flow_file(folder, way.flow, mark, source, target, "lockstep.control.replication.factor = 1", back)
    return OwnFlow(way.flow, file, mark, source, target)


def run_timed(way: OwnFlow, command: tuple[str, ...], *options: str) -> tuple[int, str, float]:
    """Return the exit code of a command about the flow, what it printed, and how many seconds it took."""
    subcommand = command if command[0] in ("verify", "offsets") else command[:1]
    more = command[len(subcommand) :]
    place = (f"{way.mark}-orders-0", "3") if command == SHOW else ()
    began = time.monotonic()
    ran = lockstep(*subcommand, way.file, *place, "--flow", way.flow, *more, *options)
    return ran.exit_code, ran.output, time.monotonic() - began


@pytest.mark.parametrize("refused", ["source", "target"])
def test_command_says_within_seconds_that_a_cluster_refuses(tmp_path: Path, pair: Pair, refused: str) -> None:
    way = flow_with_rows(tmp_path, pair, refused)
    took: dict[str, float] = {}
    for command in ONE_SHOT if refused == "source" else (*ONE_SHOT, *ASK_TARGET):
        code, printed, seconds = run_timed(way, command)
        assert (code in (1, 3), REFUSED in printed) == (True, True), (command, code, printed)
        took[" ".join(command)] = seconds
    assert {name: seconds for name, seconds in took.items() if seconds > WITHIN_S} == {}


def test_status_shows_the_rows_of_a_flow_whose_source_refuses(tmp_path: Path, pair: Pair) -> None:
    way = flow_with_rows(tmp_path, pair, "source")
    code, printed, _ = run_timed(way, ("status",), "--output", "json")
    (report,) = json.loads(printed)["flows"]
    (partition,) = report["partitions"]
    assert (code, partition["upstream"], partition["lag_records"]) == (1, 8, None), printed
    assert any(trouble["what"] == f"cluster {way.flow.source}" for trouble in report["troubles"]), printed
