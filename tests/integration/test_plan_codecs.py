"""`lockstep plan` reads a few of the newest batches: their codecs, and what they take with another one."""

import random
from pathlib import Path

import pytest

from lockstep_kafka.session.batch_heads import read_batch_heads
from lockstep_state.kafka.batch_codecs import CODEC_NAMES
from tests.support.broker import Broker
from tests.support.cluster_profile import ClusterProfile
from tests.support.clusters import Record, create_topic, end_offsets, produce, produce_transaction, unique_name
from tests.support.planned_flow import QUIET, PlannedFlow, hazards, numbered
from tests.support.proxy import Proxy

LARGE = 300_000
"""A value that random bytes make, so that its batch is larger than a partition's limit of one fetch."""


@pytest.fixture
def planned(tmp_path: Path, broker_a: Broker, proxy_b: Proxy) -> PlannedFlow:
    return PlannedFlow.between(broker_a, proxy_b, tmp_path, unique_name("p"), *QUIET)


def write(planned: PlannedFlow, codec: str, count: int = 500) -> str:
    topic = planned.topic(codec)
    produce(planned.source, topic, numbered(count), codec=codec)
    return topic


def test_codecs_of_the_newest_batches_are_counted(planned: PlannedFlow) -> None:
    for codec in CODEC_NAMES:
        write(planned, codec)
    planned.topic("empty")
    traffic = planned.only()["traffic"]
    assert traffic["codecs"] == dict.fromkeys(CODEC_NAMES, 1)
    assert traffic["unsampled"] == 1
    assert "codecs of the newest batches: gzip in 1 topic, lz4 in 1 topic, none in 1 topic" in planned.plan()


def test_codec_that_the_target_does_not_take_is_named_with_measured_bytes(planned: PlannedFlow, proxy_b: Proxy) -> None:
    proxy_b.answer_as(ClusterProfile(versions={"produce": (0, 6)}))
    topic = write(planned, "zstd")
    (detail,) = hazards(planned.only())["LS038"]
    assert detail.startswith(f"{topic} has batches in zstd, which {planned.flow.target} ")
    assert "They are compressed anew with lz4: about " in detail
    planned.file.write_text(planned.file.read_text() + "lockstep.recompress = never\n")
    (detail,) = hazards(planned.only())["LS038"]
    assert "their partitions halt" in detail


def test_copy_that_brokers_compress_anew_is_a_note(planned: PlannedFlow) -> None:
    topic = write(planned, "lz4")
    planned.file.write_text(planned.file.read_text() + "sync.topic.configs.enabled = false\n")
    remote = f"{planned.flow.source}.{topic}"
    create_topic(planned.target, remote, configs={"compression.type": "uncompressed"})
    (detail,) = hazards(planned.only())["LS039"]
    prefix = (
        f"{remote}: compression.type is uncompressed on {planned.flow.target}, so its brokers compress batches in lz4"
    )
    assert detail.startswith(prefix)
    assert int(detail.split("about ")[1].split("%")[0]) > 100


async def test_heads_of_large_batches_and_of_transactions_are_read(planned: PlannedFlow) -> None:
    noise = random.Random(1).randbytes(LARGE)
    topics = [planned.topic(name) for name in ("first", "second", "third")]
    for topic in topics:
        produce(planned.source, topic, [Record(value=noise)])
    committed = planned.topic("committed")
    produce_transaction(planned.source, committed, numbered(20), codec="snappy")
    offsets = {(topic, 0): 0 for topic in (*topics, committed)}
    properties = {"bootstrap.servers": planned.source}
    heads = await read_batch_heads("A", properties, "test", {**offsets, ("absent", 0): 0}, 20.0)
    assert heads.keys() == offsets.keys()
    for topic in topics:
        (head,) = heads[topic, 0]
        assert (head.codec, head.records) == ("none", 1)
        assert head.stored_bytes > LARGE
    assert {head.codec for head in heads[committed, 0]} == {"snappy"}
    assert sum(head.records for head in heads[committed, 0]) == 20, "the marker is no batch of records"


async def test_old_versions_of_fetch_give_the_same_heads(planned: PlannedFlow, proxy_a: Proxy) -> None:
    topic = write(planned, "lz4")
    offsets = {(topic, 0): end_offsets(planned.source, topic)[0] - 50}
    expected = await read_batch_heads("A", {"bootstrap.servers": planned.source}, "test", offsets, 20.0)
    assert expected
    for newest in ({"fetch": (4, 6), "metadata": (0, 5)}, {"fetch": (0, 11), "metadata": (0, 8)}):
        proxy_a.answer_as(ClusterProfile(versions=newest))
        assert await read_batch_heads("A", {"bootstrap.servers": proxy_a.bootstrap}, "t", offsets, 20.0) == expected
