"""Codecs of the source's batches: what a target refuses, what its brokers compress anew, and what that costs."""

from typing import Any

import pytest

from lockstep_kafka.session.batch_heads import BatchHead
from lockstep_ops.plan.recompression import measure
from lockstep_ops.plan.rules.batch_sample import CodecSample, average_record, growth_factor, replace_refused
from lockstep_ops.plan.rules.flow_facts import ConfigChange, FlowFacts
from lockstep_ops.plan.rules.flow_plan import NOTE, WARNING, PlanHazard
from lockstep_ops.plan.rules.hazards import find_hazards
from lockstep_ops.plan.rules.link_traffic import replaced_codecs
from lockstep_rules.clusters.cluster_capabilities import CAPABILITIES, Role, missing_capabilities
from lockstep_rules.clusters.cluster_codecs import refused_codecs
from lockstep_rules.clusters.cluster_kind import ClusterKind
from lockstep_state.kafka.batch_codecs import CODEC_NAMES
from lockstep_state.kafka.kafka_requests import KafkaRequest
from tests.support.plan_facts import cluster, facts, forecast, settings_for, topic

SIZES = {"none": 4000, "gzip": 1200, "snappy": 2000, "lz4": 1500, "zstd": 1000}
ZSTD = CodecSample("zstd", 3, 100, 1000, SIZES)
PLAIN = CodecSample("none", 1, 100, 4000, SIZES)
UNREAD = CodecSample("lz4", 3, 100, 1000)
OLD_PRODUCE = tuple(missing_capabilities({KafkaRequest.PRODUCE: (0, 6)}, [Role.TARGET]))
HUBS = cluster("B", product=ClusterKind.EVENT_HUBS)
OLD = cluster("B", product="Kafka 2.0", lacks=OLD_PRODUCE)
NEVER = "lockstep.recompress = never"
LZ4_COPY = cluster("B", {"A.orders": topic(own={"compression.type": "lz4"})})


def flow(*lines: str, **fields: Any) -> FlowFacts:
    return facts(settings_for(*lines), **{"batches": {"orders": (ZSTD,)}, **fields})


def hazards(flow_facts: FlowFacts) -> dict[str, PlanHazard]:
    return {hazard.code: hazard for hazard in find_hazards(flow_facts, forecast(flow_facts))}


def test_cluster_that_takes_all_codecs_has_no_hazard() -> None:
    assert not {"LS038", "LS039"} & hazards(flow()).keys()
    assert replaced_codecs(flow()) == {}


@pytest.mark.parametrize(
    ("lines", "fields", "words"),
    [
        (
            (),
            {"target": OLD},
            "orders has batches in zstd, which B (Kafka 2.0) does not take (it does not know P",
        ),
        ((), {"target": OLD}, "They are compressed anew with lz4: about 150% of their bytes, by a sample"),
        ((), {"target": HUBS}, "They are compressed anew with none: about 400% of their bytes, by a sample. With g"),
        ((), {"target": HUBS}, "With gzip, where the tier takes it: about 120% of their bytes"),
        ((NEVER,), {"target": OLD}, "their partitions halt, as lockstep.recompress is never"),
        (("B.producer.compression.type = snappy",), {"target": OLD}, "anew with snappy: about 200%"),
        ((), {"target": HUBS, "batches": {"orders": (UNREAD,)}}, "how large they become is not known"),
        (
            (),
            {"target": HUBS, "batches": {}},
            "the codecs of 1 topic are not known, as none of their batches was read: orders",
        ),
    ],
)
def test_codec_that_the_target_refuses_is_named_with_its_cost(
    lines: tuple[str, ...], fields: dict[str, Any], words: str
) -> None:
    hazard = hazards(flow(*lines, **fields))["LS038"]
    assert hazard.severity == WARNING
    assert any(words in detail for detail in hazard.details), hazard.details


def test_codec_that_no_topic_has_is_no_hazard() -> None:
    assert "LS038" not in hazards(flow(target=OLD, batches={"orders": (PLAIN, UNREAD)}))


def test_copy_that_brokers_compress_anew_is_named_with_its_size() -> None:
    existing, new = flow(target=LZ4_COPY), flow(source=cluster("A", {"orders": topic(own={"compression.type": "lz4"})}))
    for flow_facts in (existing, new):
        hazard = hazards(flow_facts)["LS039"]
        assert hazard.severity == NOTE
        assert hazard.details == (
            "A.orders: compression.type is lz4 on B, so its brokers compress batches in zstd anew: about 150% of their "
            "bytes, by a sample",
        )


@pytest.mark.parametrize(
    "fields",
    [
        {"batches": {"orders": (UNREAD,)}, "target": LZ4_COPY},
        {"target": cluster("B", {"A.orders": topic(own={"compression.type": "producer"})})},
        {
            "source": cluster("A", {"orders": topic(own={"compression.type": "lz4"})}),
            "refused_configs": {"A.orders": {"compression.type": "no"}},
        },
        {
            "target": LZ4_COPY,
            "config_changes": (ConfigChange("orders", "A.orders", "compression.type", "lz4", None),),
        },
    ],
    ids=["the same codec", "the producer's", "a config that is refused", "a config that is taken back"],
)
def test_copy_that_keeps_its_codec_is_no_hazard(fields: dict[str, Any]) -> None:
    assert "LS039" not in hazards(flow(**fields))


def test_copies_of_topics_without_a_sample_are_named_together() -> None:
    (detail,) = hazards(flow(target=LZ4_COPY, batches={}))["LS039"].details
    assert detail == (
        "Copies on B have a compression.type, and the codecs of 1 topic are not known, as none of their batches was "
        "read: orders"
    )


def test_growth_of_a_mixed_topic_counts_only_what_changes() -> None:
    assert growth_factor((ZSTD, PLAIN), {"zstd": "lz4"}) == 5500 / 5000
    assert growth_factor((ZSTD, PLAIN), {}) == 1.0
    assert growth_factor((UNREAD,), {"lz4": "gzip"}) is None
    assert growth_factor((UNREAD,), {"zstd": "gzip"}) == 1.0
    assert growth_factor((), {}) is None
    assert (average_record((ZSTD, PLAIN)), average_record(())) == (25.0, None)


def test_replacement_is_the_one_that_the_data_plane_takes() -> None:
    assert replace_refused({"zstd"}, None) == "lz4"
    assert replace_refused({"zstd", "lz4"}, None) == "gzip"
    assert replace_refused({"zstd"}, "snappy") == "snappy"
    assert replace_refused({"zstd", "snappy"}, "snappy") == "lz4"
    assert replace_refused({"gzip", "snappy", "lz4", "zstd"}, None) == "none"
    assert replace_refused({"zstd"}, "none") == "lz4"


def test_refused_codecs_follow_from_kind_and_versions() -> None:
    assert refused_codecs("Kafka 4.3", ()) == {}
    assert refused_codecs("Kafka 4.3", CAPABILITIES).keys() == {"zstd"}
    assert refused_codecs(ClusterKind.EVENT_HUBS, ()).keys() == {"gzip", "snappy", "lz4", "zstd"}


def test_sample_measures_each_codec_on_the_records_of_the_batches() -> None:
    heads = [BatchHead("zstd", 10, 19, 10, 300), BatchHead("none", 20, 29, 10, 2061), BatchHead("lz4", 50, 59, 10, 9)]
    records = {offset: b"value %d" % (offset % 3) + b"x" * 193 for offset in range(10, 25)}
    lz4, none, zstd = measure(heads, records)
    assert (none.codec, none.records, none.stored, none.batches) == ("none", 10, 2061, 1)
    assert none.sizes["none"] == 61 + 2000  # of the five records that were read
    assert zstd.sizes.keys() == set(CODEC_NAMES)
    assert all(61 < zstd.sizes[codec] < 1000 for codec in CODEC_NAMES if codec != "none")
    assert (lz4.sizes, lz4.stored) == ({}, 9)
