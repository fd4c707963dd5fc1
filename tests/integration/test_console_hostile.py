"""The console among hostile clients, rows and clusters: every answer is JSON with a sentence, and others are shown."""

import json
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

from lockstep_state.names import Flow, commands_topic, events_topic, state_topic
from lockstep_state.rows.state_rows import Switch
from tests.support.acting_console import ACTS, TOKEN, ActingConsole
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, produce
from tests.support.console_scene import create_control_topics, flow_rows, progress_row, write_rows
from tests.support.control import read_so_far
from tests.support.eventually import wait_until

SAYS_SO_WITHIN = 5.0
"""Seconds within which a page says that a cluster does not answer."""

STATIC = ("/../../etc/passwd", "/..%2f..%2fetc/passwd", "/lib/%2e%2e/app.js", "//app.js", "/app.js%00", "/vendor/")
PARTS = ("partitions", "topics", "groups", "events", "records?topic=events", "records?topic=state", "lag", "switch")
"""What is read of a flow by the API."""


def flows_file(folder: Path, source: str, flows: dict[Flow, str]) -> Path:
    """Return a file with these flows from a cluster at `source`, each to the target at its address."""
    sources = {flow.source: source for flow in flows}
    targets = {flow.target: address for flow, address in flows.items()}
    lines = [f"clusters = {', '.join([*sources, *targets])}", "emit.heartbeats.enabled = false"]
    lines += [f"{alias}.bootstrap.servers = {address}" for alias, address in (sources | targets).items()]
    lines += [
        f"{name}replication.factor = 1" for name in ("", "offset.storage.", "heartbeats.topic.", "checkpoints.topic.")
    ]
    lines += [f"{flow}.enabled = true" for flow in flows]
    path = folder / "mm2.properties"
    path.write_text("\n".join([*lines, "topics = .*"]) + "\n")
    return path


def strict(text: str) -> Any:
    """Return JSON as a browser reads it: NaN and infinity are none."""

    def refuse(word: str) -> NoReturn:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


class Hostile:
    """A client that sends what no library would."""

    def __init__(self, console: ActingConsole) -> None:
        host, _, port = console.address.partition("://")[2].rpartition(":")
        self._address, self._host = (host, int(port)), f"{host}:{port}".encode()

    def sent(self, line: bytes, *headers: bytes, body: bytes = b"", announced: int | None = None) -> tuple[int, bytes]:
        """Return status and body of the answer."""
        length = len(body) if announced is None else announced
        head = [line + b" HTTP/1.1", b"Host: " + self._host, *headers, b"Content-Length: %d" % length]
        with socket.create_connection(self._address, timeout=60) as connection:
            connection.sendall(b"\r\n".join(head) + b"\r\n\r\n" + body)
            answer = b""
            while part := connection.recv(65_536):
                answer += part
        first, _, rest = answer.partition(b"\r\n\r\n")
        return int(first.split()[1]), rest


@contextmanager
def acting(file: Path) -> Iterator[ActingConsole]:
    with ActingConsole(file) as console:
        yield console.wait_ready()


def lines_of(console: ActingConsole, flow: Flow, part: str) -> list[Any]:
    """Return all lines of a page. The source may have topics of other tests, which the flow mirrors too."""
    lines: list[Any] = console.get(flow, f"/{part}?limit=1000")[part]
    return lines


@pytest.fixture
def flows(flow: Flow) -> tuple[Flow, Flow]:
    """Two flows, each with aliases of its own, as state topics are named by the source."""
    return Flow(f"{flow.source}x", f"{flow.target}x"), Flow(f"{flow.source}y", f"{flow.target}y")


BEARER = f"Authorization: Bearer {TOKEN}".encode()
ACTING = tuple(f"{name}: {value}".encode() for name, value in ACTS.items())
BODIES = (
    b'{"verb":"skip","subject":"partition:\\ud800-0"}',
    b'{"verb":"pause","subject":"topic:\\ud800","dry_run":true}',
    b'{"verb":NaN}',
    b'{"verb":"skip","subject":"partition:t-0","arguments":{"offset":1e999}}',
    b'{"verb":"skip","subject":"partition:t-' + b"9" * 5_000 + b'"}',
    b'{"verb":"restart-from","subject":"partition:t-0","arguments":{"offset":' + b"9" * 40 + b"}}",
    b"[" * 60_000,
    b'{"verb":"pause","subject":"topic:' + b"t" * 60_000 + b'","dry_run":true}',
    b"\xff\xfe",
    b'{"verb":"' + b"x" * 70_000 + b'"}',
)


def test_no_request_fails_and_no_refusal_is_without_a_sentence(
    tmp_path: Path, flows: tuple[Flow, Flow], broker_a: Broker, broker_b: Broker
) -> None:
    flow = flows[0]
    create_control_topics(broker_b.bootstrap, flow)
    write_rows(broker_b.bootstrap, flow, flow_rows("t", 1))
    file = flows_file(tmp_path, broker_a.bootstrap, {flow: broker_b.bootstrap})
    with acting(file) as console:
        hostile = Hostile(console)
        path = b"/api/v1" + console.path(flow, "").encode()
        for body in BODIES:
            status, answer = hostile.sent(b"POST " + path + b"/commands", BEARER, *ACTING, body=body)
            assert status in (400, 409, 413), (body[:60], status, answer)
            assert strict(answer.decode())["error"]["sentence"], body[:60]
        for body in (b'{"verb":"switchover","cutoff":"99999999999999999999999"}', b'{"verb":"failover","allow":[NaN]}'):
            assert hostile.sent(b"POST " + path + b"/switches", BEARER, *ACTING, body=body)[0] == 400
        began = time.monotonic()
        status, _ = hostile.sent(b"POST " + path + b"/commands", BEARER, *ACTING, body=b"x" * 200_000, announced=10**8)
        assert (status, time.monotonic() - began < SAYS_SO_WITHIN) == (413, True)
        for query in (
            b"limit=-1",
            b"limit=NaN",
            b"limit=" + b"9" * 5_000,
            b"before_ms=99999999999999999999",
            b"limit=%C2%B2",
        ):
            assert hostile.sent(b"GET " + path + b"/events?" + query, BEARER)[0] == 400, query
        for name in (b"%00%FF%ED%A0%80", b"X%2F..%2F..", b"<script>", b"t" * 5_000):
            status, answer = hostile.sent(b"GET /api/v1/flows/" + name, BEARER)
            assert (status, strict(answer.decode())["error"]["code"]) == (404, "unknown-flow"), name
        for file_name in STATIC:
            assert hostile.sent(b"GET " + file_name.encode())[0] == 404, file_name
        forged = [(b"X-Forwarded-User: mallory", b"X-Forwarded-User: alice"), (b"X-Forwarded-User: a\xffb",), ()]
        for names in forged:
            status, answer = hostile.sent(b"POST " + path + b"/commands", *names, *ACTING, body=b'{"verb":"pause"}')
            assert (status, strict(answer.decode())["error"]["code"]) == (401, "not-admitted"), names
        for headers in ((ACTING[0],), (b"Content-Type: text/plain", ACTING[1]), (*ACTING, b"Origin: null")):
            assert hostile.sent(b"POST " + path + b"/commands", BEARER, *headers, body=b'{"verb":"pause"}')[0] == 403
        assert hostile.sent(b"OPTIONS " + path, b"Origin: http://x", b"Access-Control-Request-Method: POST")[0] == 405
        assert console.page("/ready")[0] == 200
        assert read_so_far(broker_b.bootstrap, commands_topic(flow)) == [], "nothing was asked of any service"


DEEP = b"[" * 900 + b"]" * 900
VALUES = (
    b"",
    b"\x00\xff",
    b"null",
    b"[]",
    b'{"version":1}',
    b'{"version":1e999}',
    b'{"version":1,"topic":NaN}',
    b'{"version":1,"topic":"\\ud800","partition":0}',
    b'{"version":1,"unknown":' + DEEP + b"}",
    b'{"version":1,"topic":"t","partition":-5,"upstream":99999999999999999999999}',
    b'{"version":1,"text":"' + b"<script>alert(1)</script>" * 4_000 + b'"}',
)
KEYS = (
    b"",
    b"/",
    b"partition/t/0",
    b"partition/t/-1",
    b"switch/current",
    b"lag/0",
    b"lag-worst/0",
    b"group/<b>",
    b"\xff/\xff",
)


def test_garbage_in_the_topics_of_one_flow_hides_neither_it_nor_others(
    tmp_path: Path, flows: tuple[Flow, Flow], broker_a: Broker, broker_b: Broker
) -> None:
    garbage, other = flows
    for flow in flows:
        create_control_topics(broker_b.bootstrap, flow)
        write_rows(broker_b.bootstrap, flow, flow_rows("t", 2))
    file = flows_file(tmp_path, broker_a.bootstrap, dict.fromkeys(flows, broker_b.bootstrap))
    event = {"version": 1, "kind": "Paused", "service": "x", "flow": str(garbage), "subject": "<img src=x>"}
    events = [
        json.dumps(event | {"detail": {"a": "\ud800"}}).encode(),
        json.dumps(event).encode()[:-1] + b',"unknown":' + b"[" * 400 + b"]" * 400 + b"}",
        json.dumps(event).encode()[:-1] + b',"detail":{"n":1e999}}',
        json.dumps(event | {"answers": "x" * 500_000}).encode(),
        *VALUES,
    ]
    with acting(file) as console:

        def write_garbage() -> None:
            rows = [Record(key=key, value=value or None, partition=0) for key in KEYS for value in VALUES]
            produce(broker_b.bootstrap, state_topic(garbage), rows)
            produce(broker_b.bootstrap, events_topic(garbage), [Record(value=value, partition=0) for value in events])
            steps = (("warp", "running", 1, 0, ""),)
            switch = Switch(id="x", verb="teleport", phase="running", console="gone", operator="o", steps=steps)
            write_rows(broker_b.bootstrap, garbage, [switch])

        request = urllib.request.Request(  # noqa: S310 - our own address
            f"{console.address}/api/v1/changes?rows=partition,switch,lag&worst=5",
            headers={"Authorization": f"Bearer {TOKEN}"},
        )
        with urllib.request.urlopen(request, timeout=30) as stream:  # noqa: S310 - our own address
            write_garbage()
            write_rows(broker_b.bootstrap, other, [progress_row("t", 0, upstream=150)])
            seen: set[str] = set()
            deadline = time.monotonic() + 40
            while not {"status", "rows", "events", "worst"} <= seen:
                assert time.monotonic() < deadline, seen
                line = stream.readline().decode()
                if line.startswith("event: "):
                    seen.add(line.removeprefix("event: ").strip())
                elif line.startswith("data: "):
                    strict(line.removeprefix("data: "))
        for flow in flows:
            for part in ("", *(f"/{part}" for part in PARTS)):
                status, body = console.ask("GET", console.path(flow, part))
                assert status in (200, 500) if part == "/switch" else status == 200, (flow, part, body)
        for name in ("/flows", "/decisions", "/clusters"):
            assert console.ask("GET", name)[0] == 200
        listed = {body["flow"]: body for body in console.ask("GET", "/flows")[1]["flows"]}
        assert listed.keys() == {str(flow) for flow in flows}
        assert "unknown" not in listed[str(other)]
        assert listed[str(garbage)]["fine"] is False
        write_rows(broker_b.bootstrap, garbage, flow_rows("t", 2))
        produce(broker_b.bootstrap, state_topic(garbage), [Record(key=b"switch/current", value=None, partition=0)])
        wait_until(
            lambda: [line["topic"] for line in lines_of(console, garbage, "partitions")].count("t") == 2,
            within=30,
            every=0.5,
            what="good rows count again",
        )


@pytest.mark.long
def test_frozen_target_is_named_within_five_seconds_and_others_stay_live(
    tmp_path: Path, flows: tuple[Flow, Flow], broker_a: Broker
) -> None:
    frozen, live = flows
    with Broker("C") as target, Broker("D") as other:
        targets = {frozen: target.bootstrap, live: other.bootstrap}
        file = flows_file(tmp_path, broker_a.bootstrap, targets)
        for flow, address in targets.items():
            create_control_topics(address, flow)
            write_rows(address, flow, flow_rows("t", 2))
        target.kill()  # it is away at the start, and comes later
        with acting(file) as console:

            def state(flow: Flow) -> dict[str, Any]:
                return console.get(flow, "")

            wait_until(lambda: "unknown" not in state(live), within=30, every=0.2, what="the live flow is known")
            assert "cannot be reached" in state(frozen)["unknown"]
            target.start()
            wait_until(lambda: "unknown" not in state(frozen), within=60, every=0.2, what="the target has come")
            target.suspend()
            began = time.monotonic()
            wait_until(
                lambda: "unknown" in state(frozen), within=30, every=0.05, what="the page says that it is frozen"
            )
            assert time.monotonic() - began <= SAYS_SO_WITHIN
            before = state(live)["at_ms"]
            wait_until(
                lambda: state(live)["at_ms"] >= before + 6_000, within=15, every=0.2, what="the other is read on"
            )
            assert "unknown" not in state(live)
            target.resume()
            wait_until(lambda: "unknown" not in state(frozen), within=60, every=0.2, what="it is back")
            target.rebuild()  # another cluster at the same address
            wait_until(lambda: "never run" in str(state(frozen)), within=60, every=0.5, what="the flow is not there")
            assert "unknown" not in state(live)
            assert console.running


def test_topic_of_another_name_than_any_parser_expects_is_shown(
    tmp_path: Path, flows: tuple[Flow, Flow], broker_a: Broker, broker_b: Broker
) -> None:
    flow = flows[0]
    create_control_topics(broker_b.bootstrap, flow)
    names = ["<script>alert(1)</script>", '"; rm -rf', "a%2Fb", "t" * 249, "\u202egnp.exe", "line\nbreak"]
    for name in names:
        write_rows(broker_b.bootstrap, flow, flow_rows(name, 1))
    create_topic(broker_a.bootstrap, "t" * 249)
    file = flows_file(tmp_path, broker_a.bootstrap, {flow: broker_b.bootstrap})
    with acting(file) as console:
        assert {line["topic"] for line in lines_of(console, flow, "topics")} >= set(names)
        for name in names:
            body = {"verb": "pause", "subject": f"topic:{name}", "dry_run": True}
            assert console.post(flow, "/commands", body, code=200)["subject"] == f"topic:{name}"
