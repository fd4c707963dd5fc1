"""What a client and a broker get to see of each other where the proxy answers by a profile."""

from dataclasses import replace
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from tests.support.batch_bytes import GZIP, TRANSACTIONAL, batch_bytes, crc_is_right, records
from tests.support.cluster_profile import API_KEYS, ClusterProfile, ConfigRules, ReplicationRule
from tests.support.kafka_frame import Frame, filled, read_frame, written_frame
from tests.support.known_clusters import KNOWN_CLUSTERS
from tests.support.profiled_exchange import ProfiledExchange

BEHIND, ADVERTISED = ("127.0.0.1", 9092), ("127.0.0.1", 19092)
NUMBER = 7


class Scene:
    """A client that asks, and a broker that answers as it is answered to."""

    def __init__(self, profile: ClusterProfile) -> None:
        self.exchange = ProfiledExchange(profile, {BEHIND: ADVERTISED})

    def ask(self, name: str, version: int, **values: Any) -> Any:
        """Return the request that reaches the broker."""
        schema = load_request_schema(API_KEYS[name], version)
        header = filled(
            schema.__header_schema__,
            request_api_key=API_KEYS[name],
            request_api_version=version,
            correlation_id=NUMBER,
            client_id="c",
        )
        frame = self.exchange.pass_requests(written_frame(Frame(header, filled(schema, **values))))
        key, reached = int.from_bytes(frame[4:6]), int.from_bytes(frame[6:8])
        return read_frame(frame, load_request_schema(key, reached)).body

    def answer(self, name: str, version: int, *, read_as: tuple[str, int] | None = None, **values: Any) -> Any:
        """Return the answer that reaches the client."""
        schema = load_response_schema(API_KEYS[name], version)
        header = filled(schema.__header_schema__, correlation_id=NUMBER)
        frame = self.exchange.pass_answers(written_frame(Frame(header, filled(schema, **values))))
        read_name, read_version = read_as or (name, version)
        read_response = read_frame(frame, load_response_schema(API_KEYS[read_name], read_version))
        assert read_response.header.correlation_id == NUMBER
        return read_response.body


def nested(api: str, version: int, side: str, entity: str, /, **values: Any) -> Any:
    load = load_request_schema if side == "request" else load_response_schema
    module = __import__(load(API_KEYS[api], version).__module__, fromlist=[entity])
    return filled(getattr(module, entity), **values)


def announced(*ranges: tuple[str, int, int]) -> tuple[Any, ...]:
    return tuple(
        nested("api_versions", 3, "response", "ApiVersion", api_key=API_KEYS[name], min_version=low, max_version=high)
        for name, low, high in ranges
    )


def new_topic(factor: int = 1, **configs: str) -> Any:
    entries = tuple(
        nested("create_topics", 5, "request", "CreatableTopicConfig", name=name.replace("_", "."), value=value)
        for name, value in configs.items()
    )
    return nested(
        "create_topics", 5, "request", "CreatableTopic",
        name="t", num_partitions=2, replication_factor=factor, configs=entries,
    )  # fmt: skip


def produced(content: bytes) -> Any:
    partition = nested("produce", 7, "request", "PartitionProduceData", index=0, records=content)
    return (nested("produce", 7, "request", "TopicProduceData", name="t", partition_data=(partition,)),)


def test_versions_announced_are_those_of_profile_and_broker() -> None:
    scene = Scene(ClusterProfile(versions={"fetch": (4, 11), "produce": (0, 7)}, absent=frozenset({"describe_acls"})))
    scene.ask("api_versions", 3)
    ranges = announced(("fetch", 6, 17), ("produce", 0, 12), ("describe_acls", 1, 3), ("metadata", 0, 13))
    answer = scene.answer("api_versions", 3, api_keys=ranges)
    assert answer.api_keys == announced(("fetch", 6, 11), ("produce", 0, 7), ("metadata", 0, 13))


def test_versions_without_one_in_common_are_not_announced() -> None:
    scene = Scene(ClusterProfile(versions={"offset_for_leader_epoch": (0, 0)}))
    scene.ask("api_versions", 3)
    assert scene.answer("api_versions", 3, api_keys=announced(("offset_for_leader_epoch", 2, 4))).api_keys == ()


def test_api_versions_too_new_is_answered_with_what_is_known() -> None:
    scene = Scene(ClusterProfile(versions={"api_versions": (0, 2)}))
    assert type(scene.ask("api_versions", 3)).__version__ == 0
    entry = nested("api_versions", 0, "response", "ApiVersion", api_key=18, min_version=0, max_version=4)
    answer = scene.answer("api_versions", 0, api_keys=(entry,))
    assert answer.error_code is ErrorCode.unsupported_version
    assert answer.api_keys == (replace(entry, max_version=2),)


@pytest.mark.parametrize(
    ("profile", "name", "version"),
    [
        (ClusterProfile(absent=frozenset({"describe_cluster"})), "describe_cluster", 0),
        (ClusterProfile(closes_on=frozenset({"describe_cluster"})), "describe_cluster", 0),
        (ClusterProfile(names_all=True, versions={"fetch": (4, 11)}), "describe_cluster", 0),
        (ClusterProfile(versions={"metadata": (0, 5)}), "metadata", 8),
        (ClusterProfile(versions={"api_versions": (0, 3)}, resets_newer_api_versions=True), "api_versions", 4),
        (ClusterProfile(largest_request=10), "describe_cluster", 0),
    ],
)  # fmt: skip
def test_request_that_is_not_known_ends_the_connection(profile: ClusterProfile, name: str, version: int) -> None:
    with pytest.raises(ConnectionResetError):
        Scene(profile).ask(name, version)


def test_unsupported_request_is_answered_so() -> None:
    scene = Scene(ClusterProfile(unsupported=frozenset({"init_producer_id"})))
    scene.ask("init_producer_id", 4)
    answer = scene.answer("api_versions", 0, read_as=("init_producer_id", 4))
    assert answer.error_code is ErrorCode.unsupported_version


@pytest.mark.parametrize(
    "profile", [ClusterProfile(hides_authorized_operations=True), ClusterProfile(versions={"fetch": (4, 9)})]
)
def test_addresses_are_the_proxys(profile: ClusterProfile) -> None:
    scene = Scene(profile)
    scene.ask("metadata", 8)
    broker = nested("metadata", 8, "response", "MetadataResponseBroker", host=BEHIND[0], port=BEHIND[1])
    topic = nested("metadata", 8, "response", "MetadataResponseTopic", topic_authorized_operations=5)
    answer = scene.answer("metadata", 8, brokers=(broker,), topics=(topic,), cluster_authorized_operations=6)
    assert (answer.brokers[0].host, answer.brokers[0].port) == ADVERTISED
    hidden = profile.hides_authorized_operations
    answered = answer.topics[0].topic_authorized_operations, answer.cluster_authorized_operations
    assert answered == ((-(2**31), -(2**31)) if hidden else (5, 6))


@pytest.mark.parametrize(
    ("factor", "segment_bytes", "sentence"),
    [
        (3, "52428800", None),
        (-1, "52428800", None),
        (2, "52428800", "Topic replication factor must be 3"),
        (3, "26214400", "Config property 'segment.bytes' with value '26214400' is lower than the minimum allowed value"
         " of 52428800."),
    ],
)  # fmt: skip
def test_new_topic_is_refused_as_confluent_does(factor: int, segment_bytes: str, sentence: str | None) -> None:
    scene = Scene(KNOWN_CLUSTERS["confluent-cloud"].profile)
    (refusal,) = scene.ask("create_topics", 5, topics=(new_topic(factor, segment_bytes=segment_bytes),)).topics
    assert refusal.replication_factor == -1
    assert refusal.num_partitions == (2 if sentence is None else 0)
    provoked = ErrorCode.none if sentence is None else ErrorCode.invalid_partitions
    result = nested("create_topics", 5, "response", "CreatableTopicResult", name="t", error_code=provoked)
    (answered,) = scene.answer("create_topics", 5, topics=(result,)).topics
    assert answered.error_code is (ErrorCode.none if sentence is None else ErrorCode.policy_violation)
    assert sentence is None or answered.error_message == sentence


def test_new_topic_that_exists_keeps_that_error_though_refused() -> None:
    scene = Scene(ClusterProfile(replication=ReplicationRule(factor=3)))
    scene.ask("create_topics", 5, topics=(new_topic(),))
    code = ErrorCode.topic_already_exists
    result = nested("create_topics", 5, "response", "CreatableTopicResult", name="t", error_code=code)
    assert scene.answer("create_topics", 5, topics=(result,)).topics[0].error_code is code


@pytest.mark.parametrize("name", ["alter_configs", "incremental_alter_configs"])
def test_config_that_only_creation_sets_is_refused_later(name: str) -> None:
    scene = Scene(KNOWN_CLUSTERS["msk-serverless"].profile)
    config = nested(name, 1, "request", "AlterableConfig", name="cleanup.policy", value="compact")
    resource = nested(name, 1, "request", "AlterConfigsResource", resource_type=2, resource_name="t", configs=(config,))
    answers = scene.ask(name, 1, resources=(resource,))
    assert answers.resources[0].configs[0].name != "cleanup.policy"
    code = ErrorCode.invalid_config
    result = nested(name, 1, "response", "AlterConfigsResourceResponse", resource_name="t", error_code=code)
    assert scene.answer(name, 1, responses=(result,)).responses[0].error_code is ErrorCode.policy_violation


def test_batch_of_refused_codec_is_refused_alone() -> None:
    scene = Scene(ClusterProfile(refused_codecs={GZIP: ErrorCode.unsupported_compression_type}))
    good, refused = batch_bytes(records(0, 3)), batch_bytes(records(0, 3), codec=GZIP)
    for content, code in ((good, ErrorCode.none), (refused, ErrorCode.unsupported_compression_type)):
        (topic,) = scene.ask("produce", 7, topic_data=produced(content)).topic_data
        assert crc_is_right(topic.partition_data[0].records) == (content is good)
        partition = nested("produce", 7, "response", "PartitionProduceResponse", index=0)
        result = nested("produce", 7, "response", "TopicProduceResponse", name="t", partition_responses=(partition,))
        assert scene.answer("produce", 7, responses=(result,)).responses[0].partition_responses[0].error_code is code


def test_batches_lose_their_producer_outside_transactions() -> None:
    scene = Scene(KNOWN_CLUSTERS["no-producer-ids"].profile)
    plain = batch_bytes(records(0, 3), producer=(9, 1, 40))
    transactional = batch_bytes(records(3, 3), producer=(9, 1, 43), attributes=TRANSACTIONAL)
    (topic,) = scene.ask("produce", 7, topic_data=produced(plain + transactional)).topic_data
    stored = topic.partition_data[0].records
    assert stored[: len(plain)] == batch_bytes(records(0, 3))
    assert stored[len(plain) :] == transactional


def test_leader_epochs_end_at_zero_where_the_cluster_lies() -> None:
    scene = Scene(KNOWN_CLUSTERS["lying-epochs"].profile)
    scene.ask("offset_for_leader_epoch", 4)
    end = nested("offset_for_leader_epoch", 4, "response", "EpochEndOffset", leader_epoch=3, end_offset=500)
    topic = nested("offset_for_leader_epoch", 4, "response", "OffsetForLeaderTopicResult", topic="t", partitions=(end,))
    (answered,) = scene.answer("offset_for_leader_epoch", 4, topics=(topic,)).topics[0].partitions
    assert (answered.leader_epoch, answered.end_offset) == (0, 0)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_answers_are_rewritten_however_they_come(size: int) -> None:
    scene = Scene(ClusterProfile(absent=frozenset({"fetch"})))
    scene.ask("api_versions", 3)
    schema = load_response_schema(API_KEYS["api_versions"], 3)
    body = filled(schema, api_keys=announced(("fetch", 4, 17), ("metadata", 0, 13)))
    frame = written_frame(Frame(filled(schema.__header_schema__, correlation_id=NUMBER), body))
    other = written_frame(Frame(filled(schema.__header_schema__, correlation_id=NUMBER + 1), body))
    sent = other + frame + other
    passed = b"".join(scene.exchange.pass_answers(sent[i : i + size]) for i in range(0, len(sent), size))
    assert passed.startswith(other)
    assert passed.endswith(other)
    answered = read_frame(passed[len(other) : -len(other)], schema).body
    assert answered.api_keys == announced(("metadata", 0, 13))


def test_profile_without_fields_changes_no_byte() -> None:
    exchange = ProfiledExchange(ClusterProfile(), {BEHIND: ADVERTISED})
    garbage = bytes(range(256)) * 3
    assert exchange.pass_requests(garbage) == exchange.pass_answers(garbage) == garbage


def test_profile_of_a_request_that_kio_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="fetchh"):
        ClusterProfile(absent=frozenset({"fetchh"}))
    with pytest.raises(ValueError, match="no error of its own"):
        ClusterProfile(unsupported=frozenset({"create_acls"}))


def test_configs_that_are_settable_are_not_refused() -> None:
    rules = ConfigRules(settable=frozenset({"retention.ms"}), smallest={"retention.ms": 10})
    assert rules.refusal({"retention.ms": "10"}, creates=True) is None
    assert rules.refusal({"retention.ms": None}, creates=False) is None
    assert rules.refusal({"retention.ms": "9"}, creates=True) is not None
    assert rules.refusal({"segment.bytes": "9"}, creates=True) is not None


@pytest.mark.parametrize("name", KNOWN_CLUSTERS)
def test_known_cluster_names_what_it_was_read_from(name: str) -> None:
    cluster = KNOWN_CLUSTERS[name]
    assert cluster.documents or name == "no-producer-ids"
    assert all(document.address.startswith("https://") for document in cluster.documents)
