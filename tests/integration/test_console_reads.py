"""What the console's API shows of rows and topics, over real brokers, and that its document describes it."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types
from openapi_spec_validator import validate

from lockstep_rules.offsets.lag_history import LagSample, with_sample, with_worst
from lockstep_state.codecs.mm2_codec import OffsetSync, encode_offset_sync
from lockstep_state.events import Event
from lockstep_state.names import Flow, commands_topic
from lockstep_state.offsets import DownstreamOffset, UpstreamOffset
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import ClusterCapabilities, GroupStatus, Row, Switch, Verification
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, produce, unique_name
from tests.support.console_scene import create_control_topics, fan_in_file, flow_rows, write_events, write_rows
from tests.support.services import ServiceProcess

API = "/api/v1"


@pytest.fixture
def file(tmp_path: Path, flow: Flow, broker_a: Broker, broker_b: Broker) -> Path:
    """Replace the common file: a flow to the cluster `hub`."""
    return fan_in_file(tmp_path, [flow.source], broker_a.bootstrap, broker_b.bootstrap)


@pytest.fixture
def shown(flow: Flow) -> Flow:
    return Flow(flow.source, "hub")


class Reader:
    """A client that compares each answer with the document."""

    def __init__(self, process: ServiceProcess, flow: Flow) -> None:
        self._address = process.address
        self._flow = f"/flows/{quote(str(flow), safe='')}"
        status, text = self.fetch(f"{API}/openapi.json")
        assert status == 200
        self.document = json.loads(text)

    def fetch(self, path: str, **headers: str) -> tuple[int, str]:
        request = urllib.request.Request(self._address + path, headers=headers)  # noqa: S310 - our own address
        try:
            with urllib.request.urlopen(request, timeout=60.0) as answer:  # noqa: S310 - our own address
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def read(self, path: str, query: str = "", *, status: int = 200) -> Any:
        """Return the body of an answer that is as the document says. `path` has no flow for a path of all flows."""
        described = self.document["paths"][API + path]["get"]["responses"]
        code, text = self.fetch(API + path.replace("/flows/{flow}", self._flow) + (f"?{query}" if query else ""))
        assert code == status, text
        body = json.loads(text)
        schema = described.get(str(code), described["default"])["content"]["application/json"]["schema"]
        validator = Draft202012Validator({**schema, "components": self.document["components"]})
        assert [error.message for error in validator.iter_errors(body)] == []
        return body


@contextmanager
def reading(file: Path, flow: Flow) -> Iterator[Reader]:
    with ServiceProcess("lockstep_console", file).start() as process:
        process.hear("started")
        yield Reader(process, flow)


def scene(broker: Broker, flow: Flow, *rows: Row) -> str:
    topic = unique_name("reads")
    create_control_topics(broker.bootstrap, flow)
    write_rows(broker.bootstrap, flow, [*flow_rows(topic, 2), *rows])
    return topic


def test_document_is_valid_and_has_each_route(file: Path, shown: Flow, broker_b: Broker) -> None:
    scene(broker_b, shown)
    with reading(file, shown) as reader:
        validate(reader.document)
        assert f"{API}/flows/{{flow}}/commands" in reader.document["paths"]
        for path, methods in reader.document["paths"].items():
            if (
                path.startswith(API)
                and "get" in methods
                and "{id}" not in path
                and "{code}" not in path
                and not path.endswith((".md", "/changes", "/plan", ".json"))
            ):
                reader.read(path.removeprefix(API))


def test_code_is_explained_without_any_cluster(file: Path, shown: Flow, broker_b: Broker) -> None:
    scene(broker_b, shown)
    with reading(file, shown) as reader:
        codes = {(line["code"], line["kind"]) for line in reader.read("/codes")["codes"]}
        assert {("LockstepPartitionHalted", "alert"), ("PartitionHalted", "event")} <= codes
        status, text = reader.fetch(f"{API}/codes/lockstepgap")
        (entry,) = json.loads(text)["entries"]
        assert (status, entry["code"], entry["severity"]) == (200, "LockstepGap", "critical")
        assert "GapFound" in entry["look_at"]
        status, text = reader.fetch(f"{API}/codes/partition-halt")
        assert (status, json.loads(text)["error"]["code"]) == (404, "unknown-code")
        assert "Did you mean partition-halted" in json.loads(text)["error"]["sentence"]


def test_lag_history_has_gaps_as_null(file: Path, shown: Flow, broker_b: Broker) -> None:
    now_ms = time.time_ns() // 1_000_000
    block = with_sample(None, now_ms - 40_000, LagSample(1_500, 7, 0, 12))
    worst = with_worst(None, now_ms, {("orders", 3): 900})
    scene(broker_b, shown, block, worst)
    with reading(file, shown) as reader:
        body = reader.read("/flows/{flow}/lag", "hours=1")
        assert (len(body["lag_ms"]), body["step_s"]) == (360, 10)
        known = [
            (lag_ms, records) for lag_ms, records in zip(body["lag_ms"], body["lag_records"], strict=True) if lag_ms
        ]
        assert known == [(1_500, 7)]
        assert body["lag_ms"].count(None) == 359
        assert [(each["topic"], each["partition"], each["lag_ms"]) for each in body["worst"]] == [("orders", 3, [900])]
        reader.read("/flows/{flow}/lag", "hours=25", status=400)


def test_group_shows_places_by_topic_and_its_members(file: Path, shown: Flow, broker_b: Broker) -> None:
    row = GroupStatus(
        group="billing",
        phase="translated",
        positions=(("A.orders", 0, 10, 9), ("A.orders", 1, 20, 18)),
        exact=1,
        behind=(("A.orders", 1, 5),),
        waiting=(("A.payments", 0, "no run"),),
        causes=(("A.payments", 0, ReasonCode.REPORTED.to_reason(text="no run")),),
    )
    scene(broker_b, shown, row)
    with reading(file, shown) as reader:
        (group,) = reader.read("/flows/{flow}/groups")["groups"]
        assert group["readiness"] == "waiting"
        orders, payments = group["topics"]
        assert (orders["topic"], orders["exact"], orders["behind"], orders["records"]) == ("A.orders", 1, 1, 5)
        assert (payments["place"], payments["why"]) == ("waiting", "no run")
        assert group["members"] == [], "nobody uses it on the target, and that is known"


def test_clusters_say_what_they_lack_and_what_that_costs(file: Path, shown: Flow, broker_b: Broker) -> None:
    row = ClusterCapabilities(alias="hub", cluster_id="x", product="Kafka 3.9", lacks=("DescribeQuorum 1", "Odd 3"))
    scene(broker_b, shown, row)
    with reading(file, shown) as reader:
        clusters = {each["alias"]: each for each in reader.read("/clusters")["clusters"]}
        hub, source = clusters["hub"], clusters[shown.source]
        assert (hub["product"], hub["version"], hub["reachable"]) == ("Kafka", "3.9", True)
        assert [(lack["name"], bool(lack["costs"])) for lack in hub["lacks"]] == [
            ("DescribeQuorum 1", True),
            ("Odd 3", False),
        ]
        assert source["lacks"] is None, "no row says it"


def test_control_topics_are_decoded_and_hostile_bytes_are_text(
    file: Path, shown: Flow, broker_a: Broker, broker_b: Broker
) -> None:
    scene(broker_b, shown)
    syncs = create_topic(broker_a.bootstrap, f"mm2-offset-syncs.{shown.target}.internal")
    key, value = encode_offset_sync(OffsetSync("orders", 0, UpstreamOffset(100), DownstreamOffset(90)))
    hostile = (("<script>", b"<img src=x onerror=alert(1)>"), ("raw", b"\xff\x00"))
    produce(
        broker_a.bootstrap,
        syncs,
        [Record(key=key, value=value), Record(key=b"\xff", value=b"\x00<b>", headers=hostile)],
    )
    with reading(file, shown) as reader:
        body = reader.read("/flows/{flow}/records", "topic=offset-syncs&partition=0&limit=10")
        assert (body["topic"], body["cluster"], body["ends"]) == (syncs, shown.source, {"0": 2})
        newest, oldest = body["records"]
        assert (oldest["kind"], oldest["detail"]["upstream"]) == ("offset-sync", 100)
        assert (newest["kind"], newest["detail"]["value"]) == ("undecoded", b"\x00<b>".hex())
        assert newest["headers"] == [["<script>", "<img src=x onerror=alert(1)>"], ["raw", "\\xff\x00"]]
        (first,) = reader.read("/flows/{flow}/records", "topic=offset-syncs&from=beginning&limit=1")["records"]
        assert first["offset"] == 0
        (before,) = reader.read("/flows/{flow}/records", "topic=offset-syncs&partition=0&before=1")["records"]
        assert before["offset"] == 0
        reader.read("/flows/{flow}/records", "topic=offset-syncs&before=1", status=400)
        absent = reader.read("/flows/{flow}/records", "topic=quarantine")
        assert absent["records"] == []
        assert absent["unknown"]


def test_events_that_are_not_kept_are_read_from_the_topic(file: Path, shown: Flow, broker_b: Broker) -> None:
    scene(broker_b, shown)
    write_events(
        broker_b.bootstrap,
        shown,
        [Event(kind="Paused", service="topic-sync", flow=str(shown), subject=f"topic:t{n}") for n in range(1_300)],
    )
    with reading(file, shown) as reader:
        pages = [reader.read("/flows/{flow}/events", "limit=1000")]
        assert [event["about"] for event in pages[0]["events"]] == [f"topic:t{n}" for n in range(1_299, 299, -1)]
        assert pages[0]["older"]
        rare = reader.read("/flows/{flow}/events", "limit=5&kind=Resumed")
        assert rare["events"] == []
        everything = reader.read("/flows/{flow}/records", "topic=events&partition=0&limit=1000&before=300")
        assert [record["about"] for record in everything["records"]][-1] == "topic:t0"
        assert everything["older"] is None


def test_switch_evidence_is_shown_and_downloaded(file: Path, shown: Flow, broker_b: Broker) -> None:
    scene(broker_b, shown)
    with reading(file, shown) as reader:
        assert reader.read("/flows/{flow}/switch")["switch"] == ""
        assert reader.fetch(f"{API}/flows/{quote(str(shown), safe='')}/switch/evidence.md")[0] == 404
        row = Switch(
            id="0f3c",
            verb="switchover",
            phase="done",
            operator="me",
            began_ms=1_800_000_000_000,
            ended_ms=1_800_000_009_000,
            steps=(("check", "done", 1_800_000_000_000, 1_800_000_000_100, "ready"),),
        )
        write_rows(broker_b.bootstrap, shown, [row])
        deadline = time.monotonic() + 15
        while (body := reader.read("/flows/{flow}/switch"))["switch"] != "0f3c":
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert (body["phase"], body["plan_steps"][0]["step"]) == ("done", "check")
        assert reader.read("/flows/{flow}/switch/evidence.json")["seconds"] == 9.0
        code, text = reader.fetch(f"{API}/flows/{quote(str(shown), safe='')}/switch/evidence.md")
        assert code == 200
        assert text.startswith(f"# Switchover {shown}")


def test_verification_shows_the_last_request(file: Path, shown: Flow, broker_b: Broker) -> None:
    topic = scene(broker_b, shown, Verification(id="8e2f", phase="running", depth="bytes"))
    with reading(file, shown) as reader:
        body = reader.read("/flows/{flow}/verification")
        assert body["request"]["id"] == "8e2f"
        assert [line["topic"] for line in body["topics"]] == [topic]


def test_plan_is_made_with_progress_and_without(file: Path, shown: Flow, broker_a: Broker, broker_b: Broker) -> None:
    create_topic(broker_a.bootstrap, unique_name("planned"))
    scene(broker_b, shown)
    with reading(file, shown) as reader:
        plan = reader.read("/flows/{flow}/plan")
        assert [flow["flow"] for flow in plan["flows"]] == [str(shown)]
        path = f"{API}/flows/{quote(str(shown), safe='')}/plan"
        code, text = reader.fetch(path, Accept="text/event-stream")
        assert code == 200
        kinds = [line.removeprefix("event: ") for line in text.splitlines() if line.startswith("event: ")]
        assert kinds[0] == "progress"
        assert kinds[-1] == "plan"


def test_flow_that_has_never_run_says_so_everywhere(file: Path, shown: Flow) -> None:
    with reading(file, shown) as reader:
        for path in ("lag", "groups", "events", "records", "switch", "verification"):
            assert reader.read(f"/flows/{{flow}}/{path}")["unknown"]


def test_commands_topic_is_read_over_all_partitions(file: Path, shown: Flow, broker_b: Broker) -> None:
    scene(broker_b, shown)
    command = {"version": 1, "id": "1", "verb": "pause", "subject": "topic:t", "at_ms": 1}
    records = [Record(key=b"1", value=json.dumps(command).encode(), partition=number) for number in range(6)]
    commands = create_topic(broker_b.bootstrap, commands_topic(shown), partitions=6)
    produce(broker_b.bootstrap, commands, records)
    with reading(file, shown) as reader:
        body = reader.read("/flows/{flow}/records", "topic=commands")
        assert sorted(record["partition"] for record in body["records"]) == list(range(6))
        assert {record["kind"] for record in body["records"]} == {"pause"}
