"""Bodies of groups, clusters and records, and the document of the routes."""

from collections.abc import Iterator
from typing import Any

import pytest

from lockstep_console.api.schemas import schema_of
from lockstep_console.openapi import build_document
from lockstep_console.pages import ROUTES
from lockstep_console.views.cluster_body import FlowClusters, cluster_bodies
from lockstep_console.views.group_body import group_topics
from lockstep_console.views.record_body import LONGEST_HEADER, MOST_BYTES, header_bodies, record_bodies
from lockstep_kafka.topics.topic_reader import Record
from lockstep_ops.control_records import ControlRecord
from lockstep_state.names import Flow
from lockstep_state.rows.state_rows import ClusterCapabilities, GroupStatus

AB, BA = Flow("A", "B"), Flow("B", "A")


def clusters(*flows: FlowClusters) -> dict[str, Any]:
    return {body["alias"]: body for body in cluster_bodies(flows)}


class TestGroups:
    def test_a_partition_has_the_worst_of_its_places(self) -> None:
        row = GroupStatus(
            group="g",
            phase="translated",
            positions=(("t", 0, 10, 9), ("t", 1, 20, 18), ("t", 2, 1, 1)),
            behind=(("t", 1, 5),),
            ahead=(("t", 2, 9, 1, "ahead-on-target"),),
        )
        (topic,) = group_topics(row)
        assert [place["place"] for place in topic["partitions"]] == ["exact", "behind", "ahead-on-target"]
        assert (topic["exact"], topic["behind"], topic["ahead"], topic["place"]) == (1, 1, 1, "ahead-on-target")

    def test_a_waiting_partition_says_why(self) -> None:
        row = GroupStatus(group="g", phase="translated", waiting=(("t", 0, "no run covers it"),))
        (topic,) = group_topics(row)
        assert (topic["place"], topic["waiting"], topic["records"]) == ("waiting", 1, 0)
        assert topic["why"] == "no run covers it"


class TestClusters:
    def test_a_cluster_of_two_flows_is_there_once_with_the_newest_row(self) -> None:
        old = ClusterCapabilities(alias="B", product="Kafka 3.9", lacks=("DescribeQuorum 1",), at_ms=1)
        new = ClusterCapabilities(alias="B", product="Kafka 4.0", at_ms=2)
        bodies = clusters(
            FlowClusters(AB, {old.key(): old}, {"A": "", "B": ""}),
            FlowClusters(BA, {new.key(): new}, {"A": "", "B": ""}),
        )
        assert list(bodies) == ["A", "B"]
        assert (bodies["B"]["flows"], bodies["B"]["version"], bodies["B"]["lacks"]) == (["A->B", "B->A"], "4.0", [])

    @pytest.mark.parametrize(
        ("troubles", "reachable"), [(None, None), ("it is away", False), ("", True)], ids=["not asked", "away", "there"]
    )
    def test_a_cluster_that_was_not_asked_is_unknown(self, troubles: str | None, reachable: bool | None) -> None:
        body = clusters(FlowClusters(AB, {}, {"A": troubles, "B": ""}))["A"]
        assert body["reachable"] is reachable
        assert bool(body["why"]) is (reachable is not True)
        assert body["lacks"] is None, "no row says what it lacks"

    def test_only_what_costs_the_flow_in_its_role_is_named(self) -> None:
        row = ClusterCapabilities(alias="A", product="odd thing", lacks=("CreatePartitions",), at_ms=1)
        body = clusters(FlowClusters(AB, {row.key(): row}, {}))["A"]
        assert body["product"] == "odd thing"
        assert "CreatePartitions" not in [capability["name"] for capability in body["capabilities"]]
        assert body["lacks"] == [{"name": "CreatePartitions", "costs": "", "cost": ""}]


def entry(value: bytes, *headers: tuple[str, bytes | None]) -> ControlRecord:
    return ControlRecord(Record("t", 0, 7, b"key", value, 5), headers)


class TestRecords:
    def test_a_long_header_is_cut_and_bytes_are_escaped(self) -> None:
        shown = header_bodies("events", entry(b"", ("a", b"x" * 5_000), ("b", b"\xff"), ("c", None)))
        assert shown == [["a", "x" * LONGEST_HEADER], ["b", "\\xff"], ["c", None]]

    def test_headers_that_cannot_be_read_are_unknown(self) -> None:
        assert header_bodies("events", ControlRecord(Record("t", 0, 7, b"", b"", 5), None)) is None

    def test_of_a_quarantined_record_only_our_headers_are_shown(self) -> None:
        shown = header_bodies("quarantine", entry(b"secret", ("lockstep.reason", b"refused"), ("card", b"4111")))
        assert shown is not None
        assert shown[0] == ["lockstep.reason", "refused"]
        assert shown[1][1]["bytes"] == 4
        (body,) = record_bodies("A->B", "quarantine", [entry(b"secret", ("card", b"4111"))])
        assert "secret" not in str(body)
        assert "4111" not in str(body)

    def test_details_beyond_the_limit_are_cut_and_said_so(self) -> None:
        bodies = record_bodies("A->B", "events", [entry(b"x" * MOST_BYTES), entry(b"small")])
        assert [(body["cut"], bool(body["detail"])) for body in bodies] == [(False, True), (True, False)]


def arrays_in(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each schema of a list in a document, with its path."""
    if isinstance(value, dict) and value.get("type") == "array":
        yield path, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield from arrays_in(part, f"{path}/{name}")


class TestDocument:
    def test_each_route_has_an_operation_of_its_own(self) -> None:
        document = build_document(ROUTES, "1")
        operations = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
        assert len(operations) == len(set(operations)) == len(ROUTES)

    def test_every_list_says_what_is_in_it(self) -> None:
        assert [
            path for path, schema in arrays_in(build_document(ROUTES, "1")) if schema.get("items") == {"type": "object"}
        ] == []
        bare = [
            path
            for path, schema in arrays_in(build_document(ROUTES, "1"))
            if not schema.keys() & {"items", "prefixItems"}
        ]
        assert bare == []

    @pytest.mark.parametrize("kind", [set[int], object])
    def test_type_without_a_schema_is_no_silent_hole(self, kind: Any) -> None:
        with pytest.raises(TypeError, match="has no schema"):
            schema_of(kind)

    def test_a_route_that_acts_needs_the_token_and_the_header(self) -> None:
        operation = build_document(ROUTES, "1")["paths"]["/api/v1/flows/{flow}/commands"]["post"]
        assert operation["security"] == [{"token": []}]
        assert "X-Lockstep-Request" in [parameter["name"] for parameter in operation["parameters"]]
