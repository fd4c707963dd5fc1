"""Distinct connections to a cluster, and their subjects in doctor's findings."""

from pathlib import Path

import pytest

from lockstep_config import FlowSettings, load
from lockstep_ops.doctor.cluster_connections import cluster_connections, main_key, required_requests
from lockstep_state.kafka.kafka_apis import OF_BOTH, OF_PRODUCER_IDS, OF_TARGET, OF_TRANSACTIONS

BOTH = ("A->B.enabled = true", "B->A.enabled = true")


def flows_of(folder: Path, *lines: str) -> tuple[FlowSettings, ...]:
    path = folder / "mm2.properties"
    head = (
        "clusters = A, B, C\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nC.bootstrap.servers = c:9092\n"
    )
    path.write_text(head + "\n".join(lines or BOTH) + "\n", encoding="utf-8")
    return tuple(settings for settings in load(path, {}).flows if settings.enabled)


def subjects(folder: Path, *lines: str) -> list[str]:
    return [connection.subject for connection in cluster_connections(flows_of(folder, *lines)).values()]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (BOTH, ["A", "B"]),
        ((*BOTH, "A.consumer.fetch.min.bytes = 5"), ["A", "B"]),
        (("A->B.enabled = true", "A.consumer.security.protocol = SSL"), ["A", "A (consumer)", "B"]),
        ((*BOTH, "A.consumer.security.protocol = SSL"), ["A", "A (consumer)", "B"]),
        ((*BOTH, "A.admin.bootstrap.servers = x:1"), ["A", "A (consumer, producer, record producer)", "B"]),
        (
            ("A->B.enabled = true", "C->B.enabled = true", "C->B.target.producer.security.protocol = SSL"),
            ["A", "B", "B (C->B producer)", "C"],
        ),
        (("A->B.enabled = true", "A->B.producer.override.security.protocol = SSL"), ["A", "B", "B (record producer)"]),
    ],
)
def test_each_way_to_a_cluster_is_named_once(tmp_path: Path, lines: tuple[str, ...], expected: list[str]) -> None:
    assert sorted(subjects(tmp_path, *lines)) == sorted(expected)


def test_main_connection_is_that_of_the_admin_client(tmp_path: Path) -> None:
    (settings,) = flows_of(tmp_path, "A->B.enabled = true", "A.admin.bootstrap.servers = x:1")
    by_key = cluster_connections([settings])
    main = by_key[main_key(settings, "source")]
    assert (main.subject, main.bootstrap, main.is_main) == ("A", "x:1", True)
    (other,) = [connection for connection in by_key.values() if connection.alias == "A" and not connection.is_main]
    assert other.bootstrap == "a:9092"


def test_connection_has_no_settings_that_only_copy(tmp_path: Path) -> None:
    (settings,) = flows_of(tmp_path, "A->B.enabled = true", "A.consumer.fetch.min.bytes = 5")
    (source,) = [way for way in cluster_connections([settings]).values() if way.alias == "A"]
    assert "fetch.min.bytes" not in source.properties


@pytest.mark.parametrize(
    ("line", "of_target"),
    [
        ("", OF_TARGET),
        ("replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy", OF_PRODUCER_IDS),
        ("B.exactly.once.source.support = enabled", OF_TRANSACTIONS),
    ],
)
def test_requests_of_a_cluster_are_those_of_its_role(tmp_path: Path, line: str, of_target: tuple[str, ...]) -> None:
    flows = flows_of(tmp_path, "A->B.enabled = true", line)
    assert required_requests(flows, "A") == frozenset(OF_BOTH)
    assert required_requests(flows, "B") == frozenset(of_target)
