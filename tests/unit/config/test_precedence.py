"""The order in which lines of a file override each other (`mm2-behaviour.md` §5.4, §5.5), as tables."""

import pytest

from lockstep_config.resolve import precedence
from lockstep_config.resolve.cells import KeyScope, parse_key, read_cells
from lockstep_config.resolve.precedence import Layers
from lockstep_config.text.properties import Entry
from lockstep_state.names import Flow

from .conftest import A_TO_B


def layers(text: str) -> Layers:
    entries = []
    for number, line in enumerate(text.split(), start=1):
        key, _, value = line.partition("=")
        entries.append(Entry(key, value, number))
    return precedence.sort_layers(read_cells(entries, ("A", "B")))


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("topics", KeyScope("topics")),
        ("topics.exclude", KeyScope("topics.exclude")),
        ("A.bootstrap.servers", KeyScope("bootstrap.servers", alias="A")),
        ("A->B.topics", KeyScope("topics", flow=A_TO_B)),
        ("A->Z.source.consumer.client.rack", KeyScope("source.consumer.client.rack", flow=Flow("A", "Z"))),
        ("C.bootstrap.servers", KeyScope("C.bootstrap.servers")),
        ("A->B", KeyScope("A->B")),
        ("->B.enabled", KeyScope("->B.enabled")),
    ],
)
def test_a_key_belongs_to_the_top_a_cluster_or_a_flow(key: str, place: KeyScope) -> None:
    assert parse_key(key, ("A", "B")) == place


def test_alias_equal_to_the_start_of_a_known_key_does_not_split_it() -> None:
    assert parse_key("topics.exclude", ("topics", "B")) == KeyScope("topics.exclude")
    assert parse_key("topics.bootstrap.servers", ("topics", "B")) == KeyScope("bootstrap.servers", alias="topics")


@pytest.mark.parametrize(
    ("lines", "value", "line"),
    [
        ("topics=a A->B.topics=b", "b", 2),
        ("A->B.topics=b topics=a", "b", 1),
        ("topics=a B->A.topics=b", "a", 1),
        ("topics=a A.topics=b B.topics=c", "a", 1),
        ("A.topics=b", None, 0),
        ("", None, 0),
    ],
)
def test_connector_line_of_the_flow_overrides_the_top(lines: str, value: str | None, line: int) -> None:
    cell = precedence.connector(layers(lines), A_TO_B, "topics")
    assert (cell and cell.entry.value, cell.entry.line if cell else 0) == (value, line)


@pytest.mark.parametrize(
    ("lines", "key", "value"),
    [
        ("offset.storage.partitions=1 B.offset.storage.partitions=2", "offset.storage.partitions", "1"),
        ("B.offset.storage.partitions=2 A.offset.storage.partitions=3", "offset.storage.partitions", "2"),
        ("A->B.offset.storage.partitions=9", "offset.storage.partitions", None),
        ("B.offset.flush.interval.ms=5 offset.flush.interval.ms=7", "offset.flush.interval.ms", "5"),
        ("offset.flush.interval.ms=7", "offset.flush.interval.ms", None),
        ("B.group.id=b A.group.id=a", "group.id", "b"),
    ],
)
def test_the_worker_is_the_targets_and_only_storage_counts_at_the_top(lines: str, key: str, value: str | None) -> None:
    cell = precedence.worker(layers(lines), A_TO_B, key)
    assert (cell.entry.value if cell else None) == value


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ("client.rack=t consumer.client.rack=t", None),  # dropped at the top: only K is passed on
        ("A->B.consumer.client.rack=f", "f"),
        ("A->B.consumer.client.rack=f A.consumer.client.rack=c", "c"),
        ("A->B.source.consumer.client.rack=s A.consumer.client.rack=c A->B.consumer.client.rack=f", "s"),
        ("B.consumer.client.rack=other A.producer.client.rack=other A->B.target.consumer.client.rack=other", None),
    ],
)
def test_mm2_058_059_a_client_property_of_the_side_beats_that_of_the_flow(lines: str, value: str | None) -> None:
    cell = precedence.client(layers(lines), A_TO_B, "source", "consumer").get("client.rack")
    assert (cell.entry.value if cell else None) == value


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ("security.protocol=top", "top"),
        ("security.protocol=top A.security.protocol=cluster", "cluster"),
        ("A.security.protocol=cluster A.consumer.security.protocol=consumer", "consumer"),
        ("A.consumer.security.protocol=consumer A->B.source.consumer.security.protocol=flow", "flow"),
        ("A->B.source.cluster.security.protocol=flow", "flow"),
        # MM2 spreads K to `source.consumer.*`, which beats `source.cluster.*`.
        ("A->B.source.cluster.security.protocol=flow A.security.protocol=cluster", "cluster"),
        ("A->B.source.cluster.security.protocol=flow security.protocol=top", "top"),
        ("A->B.consumer.security.protocol=x A.security.protocol=cluster", "cluster"),
        ("A->B.security.protocol=never B.security.protocol=other", None),
    ],
)
def test_connection_properties_spread_to_every_client_of_the_cluster(lines: str, value: str | None) -> None:
    cell = precedence.client(layers(lines), A_TO_B, "source", "consumer").get("security.protocol")
    assert (cell.entry.value if cell else None) == value


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ("producer.compression.type=t", None),
        ("B.producer.compression.type=c", "c"),
        ("B.producer.compression.type=c A->B.producer.override.compression.type=o", "o"),
        # `S->T.producer.x` reaches only the producer of offset syncs.
        ("A->B.producer.compression.type=p", None),
        ("A.producer.compression.type=other", None),
    ],
)
def test_the_producer_of_records_is_the_targets_worker(lines: str, value: str | None) -> None:
    cell = precedence.record_producer(layers(lines), A_TO_B).get("compression.type")
    assert (cell.entry.value if cell else None) == value


def test_the_override_prefix_is_no_property_of_the_other_producers() -> None:
    entries = layers("A->B.producer.override.linger.ms=1 A->B.producer.linger.ms=2")
    assert {
        key: cell.entry.value for key, cell in precedence.client(entries, A_TO_B, "target", "producer").items()
    } == {"linger.ms": "2"}


def test_a_cluster_as_a_side_of_a_flow_keeps_its_own_lines_first() -> None:
    entries = layers("A.ssl.key.password=c A->B.source.cluster.ssl.key.password=f A->B.source.cluster.ssl.provider=p")
    side = precedence.connection(entries, "A", A_TO_B)
    assert (side["ssl.key.password"].entry.value, side["ssl.provider"].entry.value) == ("c", "p")
    assert "ssl.provider" not in precedence.connection(entries, "A")
