"""Clients of others read the copy: they find what they find on the source."""

import uuid
from collections.abc import Iterator

import pytest

from tests.support.broker import Broker
from tests.support.broker_pairs import numbered_records
from tests.support.clusters import create_topic, produce, produce_transaction, read_topic
from tests.support.mirror import Mirror, MirroredFlow
from tests.support.other_clients import CLIENTS, absent_clients

pytestmark = pytest.mark.long

PARTITIONS = 3
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def copied(
    tmp_path_factory: pytest.TempPathFactory, broker_a: Broker, broker_b: Broker
) -> Iterator[tuple[MirroredFlow, str]]:
    """A flow, and a topic with records of all codecs and of transactions that is copied."""
    mark, folder = uuid.uuid4().hex[:6], tmp_path_factory.mktemp("clients")
    committed = f"s{mark}.consumer.isolation.level = read_committed"
    with Mirror.of_records(folder, mark, broker_a, broker_b, committed) as mirror:
        flow = mirror.flow
        topic = create_topic(flow.source, f"{flow.flow.source[1:]}-orders", partitions=PARTITIONS)
        for number, codec in enumerate(CODECS):
            produce(flow.source, topic, numbered_records(200, number * 1000, PARTITIONS), codec=codec)
            transaction = numbered_records(100, number * 1000 + 500, PARTITIONS)
            produce_transaction(flow.source, topic, transaction, codec=codec, commit=number % 2 == 0)
        flow.wait_copied(topic, isolation="read_committed")
        yield flow, topic


@pytest.mark.parametrize("client", CLIENTS)
def test_client_reads_of_the_copy_what_it_reads_of_the_source(client: str, copied: tuple[MirroredFlow, str]) -> None:
    if reason := absent_clients().get(client):
        pytest.skip(reason)
    flow, topic = copied
    written = [record.same_as() for record in read_topic(flow.source, topic)]
    assert len(written) == 1300
    assert [record.same_as() for record in CLIENTS[client](flow.source, topic)] == written
    assert [record.same_as() for record in CLIENTS[client](flow.target, flow.remote(topic))] == written
