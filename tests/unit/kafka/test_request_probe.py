"""The requests by which a cluster is tried: each can be sent in every version of ours, and names nothing real."""

import pytest

from lockstep_kafka.messages.message_versions import encode_entity, load_message
from lockstep_kafka.session.request_probe import _PROBES, NOBODY, _error_codes
from lockstep_state.kafka.kafka_apis import APIS
from lockstep_state.kafka.kafka_requests import KafkaRequest as Request
from tests.support.kafka_frame import filled

VERSIONS = [
    (request, version)
    for request in _PROBES
    for version in range(APIS[request.api_name].oldest, APIS[request.api_name].newest + 1)
]
NAMELESS = frozenset(
    {Request.LIST_GROUPS, Request.INIT_PRODUCER_ID, Request.CREATE_ACLS, Request.DESCRIBE_LOG_DIRS}
    | {Request.DESCRIBE_CLIENT_QUOTAS, Request.DESCRIBE_QUORUM}
)


@pytest.mark.parametrize(("request_key", "version"), VERSIONS, ids=str)
def test_each_request_is_sent_in_every_version(request_key: Request, version: int) -> None:
    api = APIS[request_key.api_name]
    assert (api.key, api.name) == (request_key, request_key.kafka_name)
    sent = encode_entity(_PROBES[request_key](load_message(request_key.api_name, version, "request")))
    assert (sent.api_key, sent.version) == (request_key, version)
    assert (NOBODY.encode() in b"".join(sent.parts)) is (request_key not in NAMELESS)


def test_errors_of_an_answer_are_its_own_and_those_of_its_entries() -> None:
    commit = load_message("offset_commit", 8, "response")
    partition = filled(commit.OffsetCommitResponsePartition, partition_index=0, error_code=35)
    topic = filled(commit.OffsetCommitResponseTopic, name="t", partitions=(partition, partition))
    assert list(_error_codes(filled(commit.OffsetCommitResponse, topics=(topic,)))) == [35, 35]
    groups = load_message("list_groups", 4, "response")
    assert list(_error_codes(filled(groups.ListGroupsResponse, error_code=44, groups=()))) == [44]
    added = load_message("add_partitions_to_txn", 3, "response")
    refused = filled(added.AddPartitionsToTxnPartitionResult, partition_index=0, partition_error_code=35)
    topic = filled(added.AddPartitionsToTxnTopicResult, name="t", results_by_partition=(refused,))
    answer = filled(added.AddPartitionsToTxnResponse, results_by_topic_v3_and_below=(topic,))
    assert list(_error_codes(answer)) == [35]
