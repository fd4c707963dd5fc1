"""MM2's `MirrorClient`: questions to the target cluster of a flow (`mm2-behaviour.md` §3.8)."""

import re

from confluent_kafka import Message

from lockstep_client.checkpoints import CheckpointFold, Groups, RemoteOffsets
from lockstep_client.cluster_reader import Conf, reading
from lockstep_client.errors import CheckpointsNotRead, CheckpointsTopicMissing, UnsupportedCheckpoint
from lockstep_rules import remote_topics
from lockstep_rules.policy import DefaultReplicationPolicy, ReplicationPolicy
from lockstep_state.codecs.mm2_codec import UnsupportedRecordVersion

TIMEOUT = 30.0
"""Seconds that a question may take by default."""


class MirrorClient:
    """A client for the topics that are mirrored to one cluster, and for the offsets of other clusters' groups on it.

    `conf` are librdkafka's settings for that cluster, as confluent-kafka takes them; those that decide how is read are
    set here. `policy` must be the one of the mirror: a DefaultReplicationPolicy (with its separator), an
    IdentityReplicationPolicy, or a custom one.

    It holds no connection: each call opens one, joins no group, commits nothing, creates nothing, and closes it again.
    So one instance may be shared by threads. Each call that reaches the cluster raises ClusterUnreachable, NotPermitted
    or RequestRefused.

    >>> client = MirrorClient({"bootstrap.servers": "b.example.org:9092"})
    >>> client = MirrorClient({"bootstrap.servers": "b.example.org:9092"}, DefaultReplicationPolicy(separator="_"))
    """

    def __init__(
        self,
        conf: Conf,
        policy: ReplicationPolicy | None = None,
        *,
        timeout: float = TIMEOUT,
    ) -> None:
        """Prepare the client; `timeout` in seconds is for every question about topics."""
        self._conf = dict(conf)
        self._policy = policy or DefaultReplicationPolicy()
        self._timeout = timeout

    def remote_consumer_offsets(self, source_alias: str, groups: Groups, timeout: float | None = None) -> RemoteOffsets:
        """Return the offsets here of groups of the cluster `source_alias`, from the checkpoints that its mirror wrote.

        `groups` is one group's exact id, or a compiled pattern that has to match the whole id. A group without a
        checkpoint is absent from the result. Reads the whole checkpoints topic, as it is when called.

        Raises CheckpointsNotRead if `timeout` seconds do not suffice (MM2 returns a part without saying so),
        CheckpointsTopicMissing, UnsupportedCheckpoint, and ValueError for an argument that is empty.

        >>> client = MirrorClient({"bootstrap.servers": "b.example.org:9092"})
        >>> found = client.remote_consumer_offsets("A", re.compile("billing-.*"))  # doctest: +SKIP
        >>> found.for_group("billing-eu")["A.orders", 0].downstream  # doctest: +SKIP
        1042
        """
        _check("source_alias", source_alias, str)
        _check("groups", groups, (str, re.Pattern))
        allowed = self._timeout if timeout is None else timeout
        topic = self._policy.checkpoints_topic(source_alias)
        fold = CheckpointFold(groups)

        def on_record(message: Message) -> None:
            try:
                fold.apply_record(message.key(), message.value())
            except UnsupportedRecordVersion as exc:
                raise UnsupportedCheckpoint(topic, message.offset() or 0, str(exc)) from exc

        with reading(self._conf, allowed) as cluster:
            names = cluster.topics()
            if topic not in names:
                existing = sorted(remote_topics.checkpoints_among(self._policy, names))
                raise CheckpointsTopicMissing(topic, cluster.bootstrap, existing)
            begin, end = cluster.bounds(topic)
            position = cluster.records(topic, begin, end, on_record)
        if position < end:
            raise CheckpointsNotRead(topic, allowed, position, end, fold.result())
        return fold.result()

    def replication_hops(self, source_alias: str) -> int | None:
        """Return the least number of mirrors between the cluster `source_alias` and this one; 1 is a direct mirror.

        None (MM2: -1) if no heartbeats of it arrive, so it is not mirrored here, or heartbeats are off.

        >>> MirrorClient({"bootstrap.servers": "b.example.org:9092"}).replication_hops("A")  # doctest: +SKIP
        1
        """
        return remote_topics.count_hops(self._policy, self._topics(), source_alias)

    def upstream_clusters(self) -> frozenset[str]:
        """Return the aliases of all clusters that are mirrored here, directly or through others.

        >>> MirrorClient({"bootstrap.servers": "c.example.org:9092"}).upstream_clusters()  # doctest: +SKIP
        frozenset({'A', 'B'})
        """
        return remote_topics.find_upstream_clusters(self._policy, self._topics())

    def heartbeat_topics(self) -> frozenset[str]:
        """Return the local and mirrored heartbeats topics.

        >>> MirrorClient({"bootstrap.servers": "b.example.org:9092"}).heartbeat_topics()  # doctest: +SKIP
        frozenset({'heartbeats', 'A.heartbeats'})
        """
        return remote_topics.heartbeats_among(self._policy, self._topics())

    def checkpoint_topics(self) -> frozenset[str]:
        """Return the topics with checkpoints, one for each cluster whose groups are translated to here.

        >>> MirrorClient({"bootstrap.servers": "b.example.org:9092"}).checkpoint_topics()  # doctest: +SKIP
        frozenset({'A.checkpoints.internal'})
        """
        return remote_topics.checkpoints_among(self._policy, self._topics())

    def remote_topics(self, source_alias: str | None = None) -> frozenset[str]:
        """Return the topics that were mirrored here, all of them or those whose last hop was from `source_alias`.

        Only names are compared: a local topic `first.second` counts as coming from `first`. Under an
        IdentityReplicationPolicy with a source alias every topic but `heartbeats` counts, as MM2 has it.

        >>> MirrorClient({"bootstrap.servers": "b.example.org:9092"}).remote_topics("A")  # doctest: +SKIP
        frozenset({'A.orders', 'A.heartbeats'})
        """
        return remote_topics.remote_among(self._policy, self._topics(), source_alias)

    def _topics(self) -> frozenset[str]:
        with reading(self._conf, self._timeout) as cluster:
            return cluster.topics()


def _check(name: str, value: object, types: type | tuple[type, ...]) -> None:
    if not isinstance(value, types) or value == "":
        raise ValueError(f"{name} is {value!r}: something to look for is needed")
