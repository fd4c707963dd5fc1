"""Which permission a refused request lacked."""

import pytest
from confluent_kafka import KafkaError

from lockstep_kafka.common.error_verdicts import missing_operation, operation_words

TOPIC, GROUP, CLUSTER = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)


@pytest.mark.parametrize(
    ("code", "asked", "resource", "lacks"),
    [
        (TOPIC, "describe", "topic orders", ("topic", "orders", "Describe")),
        (TOPIC, "list offsets of", "topic orders", ("topic", "orders", "Describe")),
        (TOPIC, "create", "topic a topic", ("topic", "a topic", "Create")),
        (TOPIC, "add partitions to", "topic orders", ("topic", "orders", "Alter")),
        (TOPIC, "describe configs of", "topic orders", ("topic", "orders", "DescribeConfigs")),
        (TOPIC, "alter configs of", "topic orders", ("topic", "orders", "AlterConfigs")),
        (TOPIC, "alter offsets of", "topic orders", ("topic", "orders", "Read")),
        (GROUP, "alter offsets of", "group readers", ("group", "readers", "Read")),
        (GROUP, "list offsets of", "group readers", ("group", "readers", "Describe")),
        (CLUSTER, "create an ACL for", "topic orders", ("cluster", "", "Alter")),
        (CLUSTER, "describe ACLs of", "topic resources", ("cluster", "", "Describe")),
    ],
)
def test_missing_operation_follows_from_the_request(
    code: int, asked: str, resource: str, lacks: tuple[str, str, str]
) -> None:
    assert missing_operation(code, asked, resource) == lacks


@pytest.mark.parametrize(
    ("asked", "read"),
    [("create", "to create"), ("alter configs of", "to alter configs"), ("add partitions to", "to add partitions")],
)
def test_operation_words_fit_before_the_resource(asked: str, read: str) -> None:
    assert operation_words(asked) == read
