"""The console over real brokers: what it says of flows, of outages, and to whom."""

import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from lockstep_console.pages import HEADERS
from lockstep_state.events import Event
from lockstep_state.names import Flow, state_topic
from tests.support.broker import Broker
from tests.support.clusters import create_topic, delete_topic
from tests.support.console_scene import (
    COMPACTED,
    create_control_topics,
    fan_in_file,
    flow_rows,
    halted_row,
    progress_row,
    write_events,
    write_raw,
    write_rows,
)
from tests.support.eventually import wait_until
from tests.support.services import ServiceProcess

API = "/api/v1"
SAYS_SO_WITHIN = 5.0
"""Seconds within which a page says that a broker is away."""


@pytest.fixture
def file(tmp_path: Path, flow: Flow, broker_a: Broker, broker_b: Broker) -> Path:
    """Replace the common file: a flow to the cluster `hub`."""
    return fan_in_file(tmp_path, [flow.source], broker_a.bootstrap, broker_b.bootstrap)


@pytest.fixture
def shown(flow: Flow) -> Flow:
    return Flow(flow.source, "hub")


@contextmanager
def console(file: Path, *arguments: str, instance: str = "test") -> Iterator[ServiceProcess]:
    with ServiceProcess("lockstep_console", file, instance=instance, arguments=arguments) as process:
        process.hear("started")
        yield process


def ask(
    process: ServiceProcess,
    path: str,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: Any = None,
) -> tuple[int, Any]:
    """Return status and body of an answer of the API."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(process.address + API + path, data, headers or {}, method=method)  # noqa: S310 - our own address
    try:
        with urllib.request.urlopen(request, timeout=15.0) as answer:  # noqa: S310 - our own address
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def path_of(flow: Flow) -> str:
    return f"/flows/{quote(str(flow), safe='')}"


class Listener:
    """A client of the stream of changes, on a thread of its own."""

    def __init__(self, process: ServiceProcess, query: str = "") -> None:
        self.messages: list[tuple[float, str, Any]] = []
        self._answer = urllib.request.urlopen(f"{process.address}{API}/changes?{query}", timeout=30.0)  # noqa: S310 - our own
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        kind = ""
        try:
            for line in self._answer:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    self.messages.append((time.monotonic(), kind, json.loads(value)))
        except (OSError, ValueError, AttributeError):
            return  # the test has ended it

    def of(self, kind: str) -> list[Any]:
        bodies = [body for _, said, body in self.messages if said == kind]
        return [flow for flows in bodies for flow in flows] if kind == "status" else bodies

    def close(self) -> None:
        self._answer.close()


@contextmanager
def listening(process: ServiceProcess, query: str = "") -> Iterator[Listener]:
    listener = Listener(process, query)
    try:
        wait_until(lambda: listener.of("hello"), within=10, what="the greeting")
        yield listener
    finally:
        listener.close()


def scene(broker: Broker, flow: Flow, topic: str, partitions: int = 3) -> None:
    create_control_topics(broker.bootstrap, flow)
    write_rows(broker.bootstrap, flow, flow_rows(topic, partitions))


def test_console_without_a_token_shows_all_and_is_read_only(file: Path, shown: Flow, broker_b: Broker) -> None:
    scene(broker_b, shown, f"{shown.source}-orders")
    with console(file) as process:
        status, session = ask(process, "/session")
        assert (status, session["may_act"], session["read_only"], session["flows"]) == (200, False, True, [str(shown)])
        status, body = ask(process, "/flows")
        (flow_body,) = body["flows"]
        assert status == 200
        assert flow_body["fine"] is False  # its source has no such topic, so nothing is known of its lag
        assert flow_body["sentence"].startswith(f"{shown}: ")
        assert "fine" not in flow_body["sentence"]
        assert flow_body["verified_until_ms"] is None
        _, page = ask(process, path_of(shown) + "/partitions?limit=2&sort=name")
        assert (page["total"], page["matching"], len(page["partitions"])) == (3, 3, 2)
        first = page["partitions"][0]
        assert (first["partition"], first["copied_to"], first["lag_ms"], len(first["spark"])) == (0, 99, None, 90)
        _, page = ask(process, path_of(shown) + "/topics?filter=ORDERS")
        assert [line["topic"] for line in page["topics"]] == [f"{shown.source}-orders"]
        acting = {"Content-Type": "application/json", "X-Lockstep-Request": "1"}
        status, refused = ask(process, path_of(shown) + "/commands", "POST", acting, {"verb": "pause"})
        assert (status, refused["error"]["code"]) == (403, "read-only")
        status, refused = ask(process, path_of(shown) + "/partitions?limit=x")
        assert (status, refused["error"]["code"]) == (400, "bad-query")


def test_console_names_its_flows_for_one_that_it_does_not_follow(file: Path, shown: Flow) -> None:
    with console(file) as process:
        status, body = ask(process, "/flows/X-%3EY")
        assert (status, body["error"]["code"], body["error"]["flows"]) == (404, "unknown-flow", [str(shown)])
        assert ask(process, "/nothing")[1]["error"]["code"] == "unknown-path"


def test_console_of_a_flow_that_has_never_run_says_so_and_sees_it_begin(
    file: Path, shown: Flow, broker_b: Broker
) -> None:
    with console(file) as process:
        _, body = ask(process, path_of(shown))
        assert "never run" in body["unknown"]
        assert body["fine"] is False
        scene(broker_b, shown, f"{shown.source}-orders")
        wait_until(lambda: "unknown" not in ask(process, path_of(shown))[1], within=20, what="the flow is shown")


def test_halted_partition_waits_for_a_decision_with_what_each_choice_loses(
    file: Path, shown: Flow, broker_b: Broker
) -> None:
    topic = f"{shown.source}-orders"
    scene(broker_b, shown, topic)
    with console(file) as process, listening(process, "rows=partition") as listener:
        assert ask(process, "/decisions")[1]["decisions"] == []
        write_rows(broker_b.bootstrap, shown, [halted_row(topic, 1)])
        (decision,) = wait_until(lambda: ask(process, "/decisions")[1]["decisions"], within=10, what="the decision")
        assert (decision["kind"], decision["subject"], decision["case"]) == (
            "halted-partition",
            f"partition:{topic}-1",
            "records-gone",
        )
        assert decision["range"]["source_start"] == 150
        by_verb = {choice["verb"]: choice for choice in decision["choices"]}
        assert by_verb["skip"]["arguments"] == {"offset": 150}
        assert "100 to 149" in by_verb["skip"]["loses"]
        assert "restart" in by_verb
        rows = wait_until(lambda: [row for rows in listener.of("rows") for row in rows], within=5, what="the row")
        assert rows[0]["key"] == f"partition/{topic}/1"
        assert rows[0]["value"]["phase"] == "halted"
        wait_until(lambda: any(body["decisions"] for body in listener.of("status")), within=10, what="the status")


def test_row_of_a_newer_release_is_a_sentence_and_its_end_is_seen(file: Path, shown: Flow, broker_b: Broker) -> None:
    topic = f"{shown.source}-orders"
    scene(broker_b, shown, topic)
    key = f"partition/{topic}/0".encode()
    write_raw(broker_b.bootstrap, shown, key, b'{"version":9,"topic":"x"}')
    write_raw(broker_b.bootstrap, shown, b"topic/garbage", b"no row")
    with console(file) as process:
        body = ask(process, path_of(shown))[1]
        assert "written in version 9" in body["unknown"]
        assert ask(process, path_of(shown) + "/partitions")[1]["unknown"] == body["unknown"]
        write_rows(broker_b.bootstrap, shown, [progress_row(topic, 0)])

        def readable() -> bool:
            told = ask(process, path_of(shown))[1]
            return "unknown" not in told and any(trouble["what"] == "state topic" for trouble in told["troubles"])

        wait_until(readable, within=15, what="the flow is shown, and the record that is no row")


def test_events_reach_two_followers_and_both_consoles(file: Path, shown: Flow, broker_b: Broker) -> None:
    scene(broker_b, shown, f"{shown.source}-orders")
    with (
        console(file, instance="one") as one,
        console(file, instance="two") as two,
        listening(one) as first,
        listening(one) as second,
        listening(two) as third,
    ):
        event = Event(kind="TopicCreated", service="topic-sync", flow=str(shown), subject="orders")
        wait_until(one.ready, within=20, what="one is ready")
        wait_until(two.ready, within=20, what="two is ready")
        write_events(broker_b.bootstrap, shown, [event])
        for listener in (first, second, third):
            wait_until(partial(listener.of, "events"), within=10, what="the event")
            assert listener.of("events")[0][0]["kind"] == "TopicCreated"


def test_token_admits_and_a_forged_request_is_refused(
    file: Path, tmp_path: Path, shown: Flow, broker_b: Broker
) -> None:
    scene(broker_b, shown, f"{shown.source}-orders")
    token = tmp_path / "token"
    token.write_text("right\n")
    right, wrong = {"Authorization": "Bearer right"}, {"Authorization": "Bearer wrong"}
    acting = {**right, "Content-Type": "application/json", "X-Lockstep-Request": "1"}
    commands = path_of(shown) + "/commands"
    asked = {"verb": "pause", "subject": "flow", "dry_run": True}
    with console(file, "--token-file", str(token)) as process:
        assert ask(process, "/flows")[0] == 401
        assert ask(process, "/flows", headers=wrong)[0] == 401
        assert ask(process, "/changes", headers=wrong)[0] == 401
        status, session = ask(process, "/session", headers=wrong)
        assert (status, session["may_read"], "flows" in session) == (200, False, False)
        assert ask(process, "/flows", headers=right)[0] == 200
        assert ask(process, commands, "POST", acting, asked)[0] == 200
        for forged in (
            {**acting, "Content-Type": "text/plain"},
            {name: value for name, value in acting.items() if name != "X-Lockstep-Request"},
            {**acting, "Sec-Fetch-Site": "cross-site"},
            {**acting, "Origin": "https://elsewhere.example"},
        ):
            status, refused = ask(process, commands, "POST", forged, asked)
            assert (status, refused["error"]["code"]) == (403, "foreign-request"), forged
        assert ask(process, commands, "POST", {**acting, "Authorization": "Bearer wrong"}, asked)[0] == 401
        assert ask(process, commands, "POST", acting, {"verb": "x" * 70_000})[0] == 413
        assert process.page("/live")[0] == 200
        assert process.page("/metrics")[0] == 401
    with console(file, "--token-file", str(token), "--anonymous-read") as process:
        assert ask(process, "/flows")[0] == 200
        assert ask(process, commands, "POST", {**acting, "Authorization": ""}, asked)[0] == 403


def test_trusted_header_names_the_user(file: Path, shown: Flow, broker_b: Broker) -> None:
    scene(broker_b, shown, f"{shown.source}-orders")
    with console(file, "--trust-header", "X-Forwarded-User") as process:
        assert ask(process, "/flows")[0] == 401
        _, session = ask(process, "/session", headers={"X-Forwarded-User": "ana"})
        assert (session["user"], session["may_act"]) == ("ana", True)


def test_every_answer_keeps_other_sites_out(file: Path, shown: Flow) -> None:
    with console(file) as process:
        for path in (f"{API}/session", f"{API}/nothing", "/", "/live", "/metrics", "/../process.py", "/%2e%2e/a.js"):
            try:
                with urllib.request.urlopen(process.address + path, timeout=15.0) as answer:  # noqa: S310 - our own
                    headers = answer.headers
            except urllib.error.HTTPError as error:
                with error:
                    headers = error.headers
            for name, value in HEADERS.items():
                assert headers[name] == value, path
        status, text = process.page("/metrics")
        assert status == 200
        for name in ("lockstep_console_streams", "lockstep_memory_bytes", "lockstep_build_info"):
            assert name in text


def test_stream_that_nobody_reads_costs_no_probe_and_is_bounded(file: Path, shown: Flow, broker_b: Broker) -> None:
    scene(broker_b, shown, f"{shown.source}-orders")
    with console(file) as process:
        host, _, port = process.address.partition("://")[2].rpartition(":")
        opened = []
        for _ in range(40):
            connection = socket.create_connection((host, int(port)), timeout=10)
            connection.sendall(f"GET {API}/changes HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            opened.append(connection)
        answers = [connection.recv(32).split()[1] for connection in opened]
        assert (answers.count(b"200"), answers.count(b"503")) == (32, 8)
        assert process.page("/live")[0] == 200
        for connection in opened:
            connection.close()

        def served_again() -> bool:
            with listening(process):
                return True

        wait_until(served_again, within=15, what="a stream after the others have ended")


@pytest.mark.long
@pytest.mark.parametrize("side", ["source", "target"])
def test_broker_that_is_killed_is_named_within_five_seconds(tmp_path: Path, flow: Flow, side: str) -> None:
    shown = Flow(flow.source, "hub")
    with Broker("C") as source, Broker("D") as target:
        file = fan_in_file(tmp_path, [shown.source], source.bootstrap, target.bootstrap)
        scene(target, shown, f"{shown.source}-orders")
        with console(file) as process, listening(process) as listener:
            wait_until(lambda: listener.of("status"), within=20, what="a status")
            assert "cannot be reached" not in str(listener.of("status")[-1])
            broker = source if side == "source" else target
            broker.kill()
            killed = time.monotonic()
            wait_until(
                lambda: "cannot be reached" in listener.of("status")[-1]["sentence"],
                within=SAYS_SO_WITHIN,
                every=0.05,
                what=f"the page says that the {side} is away ({time.monotonic() - killed:.1f} s)",
            )
            body = listener.of("status")[-1]
            assert body["fine"] is False
            assert body["switch_ready"] is False
            broker.start()
            wait_until(lambda: "cannot be reached" not in str(listener.of("status")[-1]), within=40, what="it is back")


def test_killed_console_leaves_nothing_and_the_next_one_shows_the_same(
    file: Path, shown: Flow, broker_b: Broker
) -> None:
    scene(broker_b, shown, f"{shown.source}-orders")

    def seen(process: ServiceProcess) -> Any:
        page = ask(process, path_of(shown) + "/partitions?sort=name")[1]
        return [(line["partition"], line["copied_to"], line["state"]) for line in page["partitions"]]

    with console(file) as process:
        # The state of a partition whose slot says nothing changes with the age of its row.
        wait_until(lambda: {state for _, _, state in seen(process)} == {"silent"}, within=60, every=1)
        before = seen(process)
        process.kill()
        process.start()
        process.hear("started")
        assert seen(process) == before
        assert process.stop() == 0


def test_state_topic_that_is_created_again_is_read_anew(file: Path, shown: Flow, broker_b: Broker) -> None:
    topic = f"{shown.source}-orders"
    scene(broker_b, shown, topic)
    with console(file) as process:
        assert ask(process, path_of(shown) + "/partitions")[1]["total"] == 3
        delete_topic(broker_b.bootstrap, state_topic(shown))
        create_topic(broker_b.bootstrap, state_topic(shown), configs=COMPACTED)
        write_rows(broker_b.bootstrap, shown, flow_rows(topic, 5))
        wait_until(
            lambda: ask(process, path_of(shown) + "/partitions")[1]["total"] == 5,
            within=40,
            what="the rows of the new topic are shown",
        )


def test_console_without_a_usable_configuration_ends_with_its_code(tmp_path: Path) -> None:
    missing = ServiceProcess("lockstep_console", tmp_path / "none.properties")
    with missing:
        assert missing.wait() == 2
    assert "there is no such file" in missing.text()
