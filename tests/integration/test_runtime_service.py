"""The life of a service's process: clusters that are away, commands, replicas, bad input (`architecture.md` §3, §4;
`kafka-wire.md` §7)."""

import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from lockstep_state.codecs.mm2_codec import connect_json
from lockstep_state.commands.command import Command
from lockstep_state.events import Event, decode_event
from lockstep_state.names import COMMANDS_PARTITIONS, Flow, commands_topic, events_topic, progress_topic, state_topic
from lockstep_state.rows.state_rows import Leader, decode_row
from tests.support.broker import Broker
from tests.support.clusters import Record, produce, read_topic
from tests.support.heartbeat_service import HEARTBEAT, wait_until
from tests.support.ports import free_port
from tests.support.proxy import Proxy
from tests.support.services import ServiceProcess, two_cluster_file


def test_a_service_listens_on_one_port_and_shows_nothing_of_fausts(file: Path, flow: Flow, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")
    with ServiceProcess(HEARTBEAT, file, str(flow), arguments=["--token-file", str(token)]) as service:
        service.hear("leading")
        port = int(service.address.rpartition(":")[2])
        listening = [c.laddr for c in psutil.Process(service.pid).net_connections("inet") if c.status == "LISTEN"]
        assert [(at.ip, at.port) for at in listening] == [("127.0.0.1", port)]
        for path in ("/", "/tables", "/router", "/stats", "/metrics/"):
            assert service.page(path)[0] == 404
        assert [service.page(path)[0] for path in ("/status", "/metrics", "/live", "/ready")] == [401, 401, 200, 200]
        assert "s3cret" not in " ".join(psutil.Process(service.pid).cmdline())
        assert "s3cret" not in service.text()


def answers(broker: Broker, flow: Flow, command: str) -> list[Event]:
    decoded = [decode_event(r.value or b"") for r in read_topic(broker.bootstrap, events_topic(flow))]
    return [event for event in decoded if event.answers == command]


def ask(broker: Broker, flow: Flow, command: Command) -> None:
    key, value = command.encode()
    produce(broker.bootstrap, commands_topic(flow), [Record(key, value, partition=0)])


def leaders(broker: Broker, flow: Flow) -> list[tuple[str, int]]:
    found = []
    for record in read_topic(broker.bootstrap, state_topic(flow)):
        row = decode_row(record.key or b"", record.value)
        if isinstance(row, Leader):
            found.append((row.instance, record.offset or 0))
    return found


# -- commands ----------------------------------------------------------------------------------------------------------


def test_each_command_is_answered_once_also_after_a_restart(file: Path, flow: Flow, broker_b: Broker) -> None:
    with ServiceProcess(HEARTBEAT, file, str(flow)) as service:
        service.hear("leading")
        ask(broker_b, flow, Command(id="r1", verb="refresh", service="heartbeat"))
        ask(broker_b, flow, Command(id="d1", verb="dance", service="heartbeat"))
        ask(broker_b, flow, Command(id="o1", verb="refresh", service="topic-sync"))
        wait_until(lambda: answers(broker_b, flow, "d1"))
        # A refresh is answered once it was done, a refusal at once: the first command may be answered last.
        assert [e.kind for e in wait_until(lambda: answers(broker_b, flow, "r1"))] == ["Refreshed"]
        (refused,) = answers(broker_b, flow, "d1")
        assert refused.kind == "CommandRefused"
        assert "dance" in refused.detail["reason"]
        assert answers(broker_b, flow, "o1") == []  # not ours

        service.kill()
        ask(broker_b, flow, Command(id="all", verb="refresh"))  # asked while nobody was there
        service.start()
        wait_until(lambda: answers(broker_b, flow, "all"))
        ask(broker_b, flow, Command(id="r1", verb="refresh", service="heartbeat"))  # the same again
        ask(broker_b, flow, Command(id="last", verb="refresh", service="heartbeat"))
        wait_until(lambda: answers(broker_b, flow, "last"))
        assert [len(answers(broker_b, flow, known)) for known in ("r1", "d1", "all", "last")] == [1, 1, 1, 1]


def test_wanted_phase_outlives_the_process(file: Path, flow: Flow, broker_b: Broker) -> None:
    """The heartbeat connector is paused, killed, started, and resumed; the flow's other connectors are not its own."""
    with ServiceProcess(HEARTBEAT, file, str(flow)) as service:
        wait_until(lambda: service.status(str(flow))["last_beat_ms"])
        ask(broker_b, flow, Command(id="p1", verb="pause", subject="connector:A->B.MirrorHeartbeatConnector"))
        ask(broker_b, flow, Command(id="t1", verb="pause", subject="topic:orders"))
        service.hear("not running")
        (paused,) = wait_until(lambda: answers(broker_b, flow, "p1"))
        assert (paused.kind, paused.detail["wanted"]) == ("Paused", "paused")
        service.kill()
        service.start()
        service.hear("not running")
        ask(broker_b, flow, Command(id="f1", verb="refresh"))
        (refused,) = wait_until(lambda: answers(broker_b, flow, "f1"))
        assert "MirrorHeartbeatConnector is paused: resume it" in refused.detail["reason"]
        assert service.status(str(flow))["last_beat_ms"] == 0
        ask(broker_b, flow, Command(id="p2", verb="resume", subject="flow"))
        wait_until(lambda: service.status(str(flow))["last_beat_ms"])
        assert [event.kind for event in wait_until(lambda: answers(broker_b, flow, "p2"))] == ["Resumed"]
        assert answers(broker_b, flow, "t1") == []


def test_mm2_047_048_078_079_heartbeat_offsets_are_plain_records(file: Path, flow: Flow, broker_b: Broker) -> None:
    """Those of the heartbeat connector; of the checkpoint connector they are the same, by the same code."""
    name = "connector:MirrorHeartbeatConnector"
    mine = {"sourceClusterAlias": flow.source, "targetClusterAlias": flow.target}
    key = connect_json(["MirrorHeartbeatConnector", mine])

    def change(partition: dict[str, str], offset: int | None) -> dict[str, Any]:
        return {"partition": partition, "offset": None if offset is None else {"offset": offset}}

    def asked(verb: str, *offsets: dict[str, Any]) -> Event:
        command = Command(id=uuid.uuid4().hex, verb=verb, subject=name, arguments={"offsets": list(offsets)})
        ask(broker_b, flow, command)
        return wait_until(lambda: answers(broker_b, flow, command.id))[0]

    def records() -> list[tuple[bytes | None, bytes | None]]:
        return [(record.key, record.value) for record in read_topic(broker_b.bootstrap, progress_topic(flow))]

    with ServiceProcess(HEARTBEAT, file, str(flow)) as service:
        service.hear("leading")
        assert "stop it first" in asked("offsets-alter", change(mine, 0)).detail["reason"]
        asked("stop")
        assert asked("offsets-list").detail["offsets"] == []
        assert "can only be 0" in asked("offsets-alter", change(mine, 0), change(mine, 7)).detail["reason"]
        assert asked("offsets-alter", change(mine, 0)).kind == "OffsetsAltered"
        assert records() == [(key, b'{"offset":0}')]
        assert asked("offsets-list").detail["offsets"] == [change(mine, 0)]
        assert asked("offsets-alter", change({"rubbish": "x"}, None)).kind == "OffsetsAltered"
        assert asked("offsets-reset").detail["entries"] == 1
        assert (key, None) in records()
        assert asked("offsets-list").detail["offsets"] == []


# -- leadership --------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_other_replica_leads_10_s_after_a_kill_and_at_once_after_an_end(
    file: Path, flow: Flow, broker_b: Broker
) -> None:
    one = ServiceProcess(HEARTBEAT, file, str(flow), instance="one")
    two = ServiceProcess(HEARTBEAT, file, str(flow), instance="two")
    both = {"one": one, "two": two}

    def seen(name: str, what: str) -> Any:
        return both[name].status(str(flow))[what]

    def settled() -> list[str]:
        """The acting replicas, once each has its share: an arrival may move partition 0."""
        shares = [len(seen(name, "partitions")) for name in both]
        return [name for name in both if seen(name, "acting")] if all(shares) and sum(shares) == 6 else []

    with one, two:
        (acting,) = wait_until(settled, what="two shares and one who acts")
        (other,) = both.keys() - {acting}
        term = seen(acting, "term")
        both[acting].kill()
        began = time.monotonic()
        wait_until(lambda: seen(other, "acting"), every=0.05, what="the take-over after a kill")
        assert time.monotonic() - began < 10.0
        assert seen(other, "term") > term

        both[acting].start()
        (acting,) = wait_until(settled, what="two shares again")
        (other,) = both.keys() - {acting}
        signalled = time.monotonic()
        psutil.Process(both[acting].pid).send_signal(signal.SIGTERM)
        wait_until(lambda: seen(other, "acting"), every=0.05, what="the take-over after an end")
        assert time.monotonic() - signalled < 5.0
    claimed = leaders(broker_b, flow)
    assert claimed[-1][0] == other
    assert [offset for _, offset in claimed] == sorted(offset for _, offset in claimed)


# -- clusters that are away --------------------------------------------------------------------------------------------


@pytest.fixture
def late() -> Iterator[Broker]:
    """A broker that is not there yet."""
    broker = Broker("late")
    yield broker
    broker.close()


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("module", [HEARTBEAT, "lockstep_topic_sync", "lockstep_checkpoint"])
def test_processes_with_the_same_instance_name_are_distinguished(
    file: Path, flow: Flow, broker_b: Broker, module: str
) -> None:
    """Each keeps to a name of its own soon, so that the lead does not go to and fro."""
    at_rest_s = 15.0
    file.write_text(f"{file.read_text()}{flow}.enabled = true\n{flow}.topics = nothing\n")
    processes = [ServiceProcess(module, file, str(flow), instance="same") for _ in range(3)]
    with ExitStack() as stack:
        for process in processes:
            stack.enter_context(process)
            process.hear("started")

        def names() -> set[str]:
            return {process.status(str(flow))["instance"] for process in processes}

        def settled() -> bool:
            leads = [bool(process.status(str(flow))["acting"]) for process in processes]
            return len(names()) == 3 and (all(leads) if module == "lockstep_checkpoint" else leads.count(True) == 1)

        wait_until(settled, what="three names, and one of them leads")
        time.sleep(at_rest_s)
        assert settled()
        before = len(leaders(broker_b, flow))
        time.sleep(at_rest_s)
        assert len(leaders(broker_b, flow)) == before
        assert settled()
        assert before < 20 * (COMMANDS_PARTITIONS if module == "lockstep_checkpoint" else 1)
    renamed = [line for process in processes for line in process.said("instance renamed")]
    assert {line["level"] for line in renamed} == {"warning"}
    assert len(renamed) == 2
    events = [decode_event(r.value or b"") for r in read_topic(broker_b.bootstrap, events_topic(flow))]
    assert [event.detail["taken"] for event in events if event.kind == "InstanceRenamed"] == ["same", "same"]


def test_target_away_at_the_start_is_named_once_and_used_when_it_comes(
    tmp_path: Path, flow: Flow, broker_a: Broker, late: Broker
) -> None:
    file = two_cluster_file(tmp_path, (flow.source, broker_a.bootstrap), (flow.target, late.bootstrap))
    with ServiceProcess(HEARTBEAT, file, str(flow)) as service:
        line = service.hear("cluster unreachable")
        assert flow.target in line["text"]
        assert late.bootstrap in line["text"]
        assert "refused" in line["reason"]
        assert service.page("/live")[0] == 200
        code, why = service.page("/ready")
        assert code == 503
        assert str(flow) in why
        wait_until(lambda: service.status(str(flow))["restarts"] >= 3)
        assert service.has_said_each_cause_once()

        late.start()
        service.hear("leading")
        assert service.ready()
        assert len(service.said("cluster reachable again")) == 1
        assert service.stop() == 0


@pytest.mark.long
def test_a_target_that_goes_away_shows_as_degraded_and_still_ready(
    tmp_path: Path, flow: Flow, broker_a: Broker, broker_b: Broker, proxy_b: Proxy
) -> None:
    file = two_cluster_file(tmp_path, (flow.source, broker_a.bootstrap), (flow.target, proxy_b.bootstrap))
    with ServiceProcess(HEARTBEAT, file, str(flow)) as service:
        service.hear("leading")
        wait_until(lambda: service.status(str(flow))["last_beat_ms"])
        proxy_b.refuse()
        proxy_b.cut()
        line = service.hear("cluster unreachable")
        assert proxy_b.bootstrap in line["text"]
        wait_until(lambda: service.status(str(flow))["degraded"])
        assert service.ready()
        assert service.page("/live")[0] == 200
        seen = service.status(str(flow))["last_beat_ms"]

        proxy_b.heal()
        service.hear("cluster reachable again")
        wait_until(lambda: service.status(str(flow))["last_beat_ms"] > seen)
        wait_until(lambda: not service.status(str(flow))["degraded"])
        assert service.has_said_each_cause_once()
        assert service.running


@pytest.mark.long
def test_sigterm_ends_it_within_ten_seconds_while_its_target_is_away(
    tmp_path: Path, flow: Flow, broker_a: Broker
) -> None:
    file = two_cluster_file(tmp_path, (flow.source, broker_a.bootstrap), (flow.target, f"127.0.0.1:{free_port()}"))
    with ServiceProcess(HEARTBEAT, file, str(flow)) as service:
        service.hear("cluster unreachable")
        began = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - began < 10.0


def test_sigquit_prints_the_threads_and_the_service_continues(file: Path, flow: Flow) -> None:
    with ServiceProcess(HEARTBEAT, file, str(flow)) as service:
        service.hear("leading")
        os.kill(service.pid, signal.SIGQUIT)
        wait_until(lambda: "most recent call first" in service.text() and " in _serve" in service.text())
        seen = service.status(str(flow))["last_beat_ms"]
        wait_until(lambda: service.status(str(flow))["last_beat_ms"] > seen)
