"""Which operation of Kafka's ACLs a refused request of an admin client lacked. No I/O."""

from __future__ import annotations

from confluent_kafka import KafkaError

OPERATIONS = {
    "add partitions to": "Alter",
    "alter configs of": "AlterConfigs",
    "alter offsets of": "Read",
    "create": "Create",
    "create an ACL for": "Alter",
    "delete an ACL of": "Alter",
    "describe configs of": "DescribeConfigs",
}
"""By what was asked; for everything else Describe does."""

KINDS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "cluster",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional-id",
}


def words(asked: str) -> str:
    """What was asked, as it reads before "on topic orders"."""
    return f"to {asked}".removesuffix(" of").removesuffix(" to").removesuffix(" for")


def missing_operation(code: int, asked: str, resource: str) -> tuple[str, str, str]:
    """Kind of the resource, its name, and the operation, in the words of `lockstep_config.credentials.permissions`.
    `asked` and `resource` are those of the request: "create", "topic orders"."""
    kind = KINDS.get(code, "")
    name = resource.removeprefix(f"{kind} ") if kind != "cluster" else ""
    return kind, name, OPERATIONS.get(asked, "Describe")
