"""How a service starts and ends: exit codes, sentences without a traceback, signals."""

import json
import signal
import socket
from pathlib import Path

import psutil
import pytest

from lockstep_state.names import Flow, state_topic
from tests.support.broker import Broker
from tests.support.clusters import Record, produce
from tests.support.heartbeat_service import HEARTBEAT, wait_until
from tests.support.proxy import Proxy
from tests.support.services import ServiceProcess, two_cluster_file

# -- bad input ---------------------------------------------------------------------------------------------------------


def test_a_port_in_use_is_one_sentence_and_exit_code_2(file: Path, flow: Flow) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with ServiceProcess(HEARTBEAT, file, str(flow), arguments=("--port", port)) as service:
            assert service.wait() == 2
            *remarks, line = service.lines()
            assert {remark["level"] for remark in remarks} <= {"warning"}
            assert f"port {port} on 127.0.0.1 is in use" in line["text"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--flow", "X->Y"], "X->Y"),
        (["--flow", "XY"], "not a flow"),
        (["--config", "nowhere.properties"], "nowhere.properties"),
    ],
)
def test_service_that_cannot_start_has_its_reason_without_a_traceback(
    file: Path, arguments: list[str], expected: str
) -> None:
    with ServiceProcess(HEARTBEAT, file, arguments=arguments) as service:
        assert service.wait() == 2
        assert expected in service.text()
        assert "Traceback" not in service.text()


def test_every_line_of_the_json_log_is_an_object(file: Path, flow: Flow) -> None:
    with ServiceProcess(HEARTBEAT, file, str(flow)) as service:
        service.hear("leading")
        assert service.stop() == 0
        for text in service.text().splitlines():
            assert {"at", "level", "service", "message"} <= json.loads(text).keys()


def test_a_row_of_a_newer_release_stops_it_with_one_sentence(file: Path, flow: Flow, broker_b: Broker) -> None:
    with ServiceProcess(HEARTBEAT, file, str(flow)) as service:
        service.hear("leading")
        produce(
            broker_b.bootstrap,
            state_topic(flow),
            [Record(b"topic/x", b'{"version":99,"source_topic":"x"}', partition=0)],
        )
        assert service.wait() == 1
        (line,) = service.said("crashed")
        assert "run the newer release everywhere" in line["error"]
        assert "Traceback" not in service.text()


def test_a_second_interrupt_ends_it_at_once(tmp_path: Path, flow: Flow, broker_a: Broker, proxy_b: Proxy) -> None:
    file = two_cluster_file(tmp_path, (flow.source, broker_a.bootstrap), (flow.target, proxy_b.bootstrap))
    with ServiceProcess(HEARTBEAT, file, str(flow)) as service:
        service.hear("leading")
        wait_until(lambda: service.status(str(flow))["last_beat_ms"])
        proxy_b.hold()  # answers do not come any more: a clean end waits for them
        wait_until(lambda: service.status(str(flow))["age_seconds"] > 2.5, what="a beat waits for its answer")
        process = psutil.Process(service.pid)
        process.send_signal(signal.SIGINT)
        service.hear("ending")
        process.send_signal(signal.SIGINT)
        assert service.wait(5.0) == 130
