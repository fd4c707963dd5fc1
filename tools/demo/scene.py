"""What is on the stage: two clusters, their topics, who may read them, and the configuration of the mirroring."""

from dataclasses import dataclass, field
from typing import Any

from lockstep_state.names import Flow
from tests.support.acls import acl, add
from tests.support.broker import Broker
from tests.support.clusters import create_topic

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

ACLS = (("User:billing", "READ"), ("User:support", "DESCRIBE"), ("User:shop", "WRITE"))
"""Of the topic that is read, on A. A principal that may read it may read its copy. Only the mirror writes a copy, so
WRITE is not copied."""


def client(bootstrap: str, **settings: Any) -> dict[str, Any]:
    """Return settings of a librdkafka client. It is silent: what goes wrong shows in what does not arrive."""
    return {"bootstrap.servers": bootstrap, "log_level": 0, **settings}


def remote(flow: Flow, topic: str) -> str:
    """Return the topic's name on the flow's target."""
    return f"{flow.source}.{topic}"


def properties(bootstrap: dict[str, str]) -> str:
    """Return the mm2.properties of the demo: MM2's defaults but for what one node and thirty seconds ask for."""
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


def create(broker: Broker) -> None:
    """Create the shop's topics on a cluster, and on A the ACLs. Raises KafkaException."""
    for topic in SHOP[broker.alias]:
        create_topic(broker.bootstrap, topic.name, partitions=topic.partitions, configs=topic.configs)
    if broker.alias == "A":
        add(broker, *(acl(READ, operation, principal=principal) for principal, operation in ACLS))
