"""Properties of MM2 and of Connect that are accepted and change nothing, each with the reason.

They have a list of their own because it says what Lockstep does not have: Connect's workers, their REST server, JMX.
"""

from lockstep_config.keys.key_types import (
    ANYWHERE,
    CONNECTOR,
    FLOW_ONLY,
    TOP_ONLY,
    WORKER,
    Key,
    KeyFamily,
    without_effect,
)

NO_WORKER = "there is no Connect worker here"
NO_REST = "there is no Connect REST server here: each service has pages of its own"
BYTES_UNTOUCHED = "record batches are copied as bytes, so nothing may change the records on their way"

KEYS_WITHOUT_EFFECT: tuple[Key, ...] = (
    without_effect("admin.listeners", NO_REST, WORKER),
    without_effect("listeners", NO_REST, WORKER),
    without_effect("ssl.client.auth", NO_REST, WORKER),
    without_effect("dedicated.mode.enable.internal.rest", "replicas of a service coordinate through Kafka", TOP_ONLY),
    without_effect(
        "name", "connectors keep MirrorMaker's own names, by which their progress is found", FLOW_ONLY | TOP_ONLY
    ),
    without_effect(
        "connector.class",
        "all three connectors of a flow run as services; MirrorMaker would run this class in the place of each of them",
    ),
    without_effect("connector.plugin.version", "all three connectors of a flow run as services"),
    without_effect("consumer.poll.timeout.ms", "fetches do not poll"),
    without_effect("metric.names.formats", "metrics have both names"),
    without_effect("metric.reporters", "metrics are on each service's page"),
    without_effect("metrics.recording.level", "metrics are on each service's page", ANYWHERE),
    without_effect("metrics.num.samples", "metrics are on each service's page", ANYWHERE),
    without_effect("metrics.sample.window.ms", "metrics are on each service's page", ANYWHERE),
    without_effect("auto.include.jmx.reporter", "there is no JMX here", ANYWHERE),
    without_effect("add.source.alias.to.metrics", "removed in Kafka 4.0: metrics always name the source"),
    without_effect("use.incremental.alter.configs", "removed in Kafka 4.0: configs are always altered incrementally"),
    without_effect("tasks.max.enforce", "tasks.max is always the upper limit"),
    without_effect("config.action.reload", "there is no Connect herder here"),
    without_effect("plugins", NO_WORKER),
    without_effect("plugin.path", NO_WORKER, ANYWHERE),
    without_effect("plugin.discovery", NO_WORKER, ANYWHERE),
    without_effect("client.id", "each client has the name of its role", ANYWHERE),
    without_effect("task.index", "set by the connector"),
    without_effect("task.assigned.partitions", "set by the connector"),
    without_effect("task.shutdown.graceful.timeout.ms", NO_WORKER, WORKER),
    without_effect("offset.flush.timeout.ms", "progress goes through the same producer as all facts", WORKER),
    without_effect("rebalance.timeout.ms", NO_WORKER, WORKER),
    without_effect("scheduled.rebalance.max.delay.ms", NO_WORKER, WORKER),
    without_effect("session.timeout.ms", NO_WORKER, WORKER),
    without_effect("heartbeat.interval.ms", NO_WORKER, WORKER),
    without_effect("connect.protocol", NO_WORKER, WORKER),
    without_effect("connector.client.config.override.policy", "every override is allowed", WORKER),
    without_effect("topic.tracking.enable", NO_WORKER, WORKER),
    without_effect("topic.tracking.allow.reset", NO_WORKER, WORKER),
    without_effect("topic.creation.enable", "remote topics are created with the source's settings", WORKER),
)

FAMILIES: tuple[KeyFamily, ...] = (
    KeyFamily("transforms.", ANYWHERE, "no transform is named by `transforms`"),
    KeyFamily("predicates.", ANYWHERE, "no predicate is named by `predicates`"),
    KeyFamily(
        "errors.",
        CONNECTOR,
        "nothing is skipped unseen here: a partition whose record is refused halts, or goes on with "
        "lockstep.on.refused=quarantine",
    ),
    KeyFamily("topic.creation.", CONNECTOR, "remote topics take the source's settings"),
    KeyFamily("config.storage.", WORKER, "there is no Connect config topic here"),
    KeyFamily("status.storage.", WORKER, "there is no Connect status topic here"),
    KeyFamily("offset.storage.", WORKER, "the progress topic is only compacted"),
    KeyFamily("key.converter.", ANYWHERE, BYTES_UNTOUCHED),
    KeyFamily("value.converter.", ANYWHERE, BYTES_UNTOUCHED),
    KeyFamily("header.converter.", ANYWHERE, BYTES_UNTOUCHED),
    KeyFamily("rest.", WORKER, NO_REST),
    KeyFamily("listeners.", WORKER, NO_REST),
    KeyFamily("admin.listeners.", WORKER, NO_REST),
    KeyFamily("access.control.", WORKER, NO_REST),
    KeyFamily("response.http.", WORKER, NO_REST),
    KeyFamily("inter.worker.", WORKER, NO_REST),
    KeyFamily("metrics.context.", ANYWHERE, "metrics have their own labels"),
    KeyFamily("worker.", WORKER, NO_WORKER),
    KeyFamily("task.", WORKER, NO_WORKER),
    KeyFamily("connections.max.", WORKER, NO_WORKER),
)
"""Families of keys without effect. They are tried after `KEYS`, and the first match counts."""
