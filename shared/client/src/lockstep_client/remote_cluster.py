"""MM2's `RemoteClusterUtils`: one question to one cluster (`mm2-behaviour.md` §3.8).

Each function is the method of MirrorClient with its name, of a client made for this one call, and raises what that one
raises. `conf` are librdkafka's settings of the target cluster, `policy` is the mirror's (default: MM2's default), and
`timeout` is in seconds.
"""

import logging
import re
from collections.abc import Mapping
from typing import overload

from confluent_kafka import TopicPartition

from lockstep_client.checkpoints import Groups, RemoteOffsets
from lockstep_client.cluster_reader import Conf
from lockstep_client.mirror_client import TIMEOUT, MirrorClient
from lockstep_rules.policy import ReplicationPolicy
from lockstep_state.codecs.mm2_codec import Checkpoint

log = logging.getLogger("lockstep_client")


@overload
def translate_offsets(
    conf: Conf, source_alias: str, groups: str, timeout: float = TIMEOUT, policy: ReplicationPolicy | None = None
) -> list[TopicPartition]: ...


@overload
def translate_offsets(
    conf: Conf,
    source_alias: str,
    groups: re.Pattern[str],
    timeout: float = TIMEOUT,
    policy: ReplicationPolicy | None = None,
) -> dict[str, list[TopicPartition]]: ...


def translate_offsets(
    conf: Conf, source_alias: str, groups: Groups, timeout: float = TIMEOUT, policy: ReplicationPolicy | None = None
) -> list[TopicPartition] | dict[str, list[TopicPartition]]:
    """Return the offsets at which groups of `source_alias` go on here.

    They are ready for `consumer.assign` or `consumer.commit(offsets=...)`. A group id gives the offsets of that group,
    sorted, and none without a checkpoint of it. A compiled pattern gives them for each group whose whole id matches.
    Nothing is skipped by a group that starts there; it may read some records twice. Records that are no checkpoints are
    passed over, with their number in a warning.

    >>> offsets = translate_offsets({"bootstrap.servers": "b.example.org:9092"}, "A", "billing")  # doctest: +SKIP
    >>> [(tp.topic, tp.partition, tp.offset) for tp in offsets]  # doctest: +SKIP
    [('A.orders', 0, 1042), ('A.orders', 1, 998)]
    """
    offsets = remote_consumer_offsets(conf, source_alias, groups, timeout, policy)
    if offsets.malformed:
        log.warning("passed over %d of the checkpoints of %s: no such record", offsets.malformed, source_alias)
    if isinstance(groups, str):
        return _positions(offsets.for_group(groups))
    return {group: _positions(offsets.for_group(group)) for group in sorted(offsets.groups)}


def _positions(checkpoints: Mapping[tuple[str, int], Checkpoint]) -> list[TopicPartition]:
    return [
        TopicPartition(topic, partition, checkpoint.downstream, checkpoint.metadata)
        for (topic, partition), checkpoint in sorted(checkpoints.items())
    ]


def remote_consumer_offsets(
    conf: Conf, source_alias: str, groups: Groups, timeout: float = TIMEOUT, policy: ReplicationPolicy | None = None
) -> RemoteOffsets:
    """Return the last checkpoint of each group and partition, and the number of records that are no checkpoints.

    >>> found = remote_consumer_offsets({"bootstrap.servers": "b.example.org:9092"}, "A", "billing")  # doctest: +SKIP
    >>> found.for_group("billing")["A.orders", 0].downstream, found.malformed  # doctest: +SKIP
    (1042, 0)
    """
    return MirrorClient(conf, policy, timeout=timeout).remote_consumer_offsets(source_alias, groups)


def replication_hops(
    conf: Conf, source_alias: str, timeout: float = TIMEOUT, policy: ReplicationPolicy | None = None
) -> int | None:
    """Return the least number of mirrors between `source_alias` and this cluster; None (MM2: -1) if not mirrored here.

    >>> replication_hops({"bootstrap.servers": "b.example.org:9092"}, "A")  # doctest: +SKIP
    1
    """
    return MirrorClient(conf, policy, timeout=timeout).replication_hops(source_alias)


def upstream_clusters(conf: Conf, timeout: float = TIMEOUT, policy: ReplicationPolicy | None = None) -> frozenset[str]:
    """Return the aliases of all clusters that are mirrored here, directly or through others.

    >>> upstream_clusters({"bootstrap.servers": "c.example.org:9092"})  # doctest: +SKIP
    frozenset({'A', 'B'})
    """
    return MirrorClient(conf, policy, timeout=timeout).upstream_clusters()


def heartbeat_topics(conf: Conf, timeout: float = TIMEOUT, policy: ReplicationPolicy | None = None) -> frozenset[str]:
    """Return the local and mirrored heartbeats topics.

    >>> heartbeat_topics({"bootstrap.servers": "b.example.org:9092"})  # doctest: +SKIP
    frozenset({'heartbeats', 'A.heartbeats'})
    """
    return MirrorClient(conf, policy, timeout=timeout).heartbeat_topics()


def checkpoint_topics(conf: Conf, timeout: float = TIMEOUT, policy: ReplicationPolicy | None = None) -> frozenset[str]:
    """Return the topics with checkpoints.

    >>> checkpoint_topics({"bootstrap.servers": "b.example.org:9092"})  # doctest: +SKIP
    frozenset({'A.checkpoints.internal'})
    """
    return MirrorClient(conf, policy, timeout=timeout).checkpoint_topics()


def remote_topics(
    conf: Conf, source_alias: str | None = None, timeout: float = TIMEOUT, policy: ReplicationPolicy | None = None
) -> frozenset[str]:
    """Return the topics that were mirrored here, all of them or those whose last hop was from `source_alias`.

    >>> remote_topics({"bootstrap.servers": "b.example.org:9092"}, "A")  # doctest: +SKIP
    frozenset({'A.orders', 'A.heartbeats'})
    """
    return MirrorClient(conf, policy, timeout=timeout).remote_topics(source_alias)
