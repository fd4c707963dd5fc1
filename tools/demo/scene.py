"""What is on the stage: two clusters, their topics, who may read them, and the configuration of the mirroring."""

from dataclasses import dataclass, field
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from lockstep_state.names import Flow

FLOWS = (Flow("A", "B"), Flow("B", "A"))

GROUP = "billing"
"""The consumer group that moves from A to B."""

READ = "orders"
"""The topic it reads, on A under this name."""

OFFSET_LAG_MAX = 100
"""MM2's default, and so the most records of a partition that a group may read twice when it moves."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of the shop and how many records a second go into it."""

    name: str
    partitions: int
    rate: int
    configs: dict[str, str] = field(default_factory=dict)


SHOP = {
    "A": (
        Topic("orders", 4, 200, {"compression.type": "lz4"}),
        Topic("payments", 2, 100),
        Topic("customers", 1, 50, {"cleanup.policy": "compact"}),
    ),
    "B": (Topic("shipments", 3, 100), Topic("stock", 1, 50, {"cleanup.policy": "compact"})),
}

ACLS = (
    ("orders", "User:billing", AclOperation.READ),
    ("orders", "User:support", AclOperation.DESCRIBE),
    ("orders", "User:shop", AclOperation.WRITE),
)
"""On A. A principal that may read the topic may read its copy. Only the mirror writes it, so WRITE is not copied."""


def client(bootstrap: str, **settings: Any) -> dict[str, Any]:
    """Settings of a librdkafka client. It is silent: what goes wrong shows in what does not arrive."""
    return {"bootstrap.servers": bootstrap, "log_level": 0, **settings}


def remote(flow: Flow, topic: str) -> str:
    """The topic's name on the flow's target."""
    return f"{flow.source}.{topic}"


def properties(bootstrap: dict[str, str]) -> str:
    """The mm2.properties of the demo: both ways, MM2's defaults but for what one node and thirty seconds ask for."""
    lines = [f"clusters = {', '.join(bootstrap)}"]
    lines += [f"{alias}.bootstrap.servers = {address}" for alias, address in bootstrap.items()]
    lines += [f"{flow}.enabled = true" for flow in FLOWS]
    lines += [
        "",
        "# A group that moves to the other cluster finds its offsets there a second later.",
        "emit.checkpoints.interval.seconds = 1",
        "sync.group.offsets.enabled = true",
        "sync.group.offsets.interval.seconds = 1",
        "",
        "# Each cluster has one node.",
        "replication.factor = 1",
        "checkpoints.topic.replication.factor = 1",
        "heartbeats.topic.replication.factor = 1",
        "offset-syncs.topic.replication.factor = 1",
        "offset.storage.replication.factor = 1",
    ]
    return "\n".join(lines) + "\n"


def create(alias: str, admin: AdminClient) -> None:
    """The shop's topics on a cluster, and on A the ACLs. Raises KafkaException."""
    topics = [NewTopic(t.name, t.partitions, replication_factor=1, config=t.configs) for t in SHOP[alias]]
    for future in admin.create_topics(topics).values():
        future.result()
    if alias == "A":
        bindings = [
            AclBinding(
                ResourceType.TOPIC,
                topic,
                ResourcePatternType.LITERAL,
                principal,
                "*",
                operation,
                AclPermissionType.ALLOW,
            )
            for topic, principal, operation in ACLS
        ]
        for added in admin.create_acls(bindings).values():
            added.result()
