"""Topics of the two clusters between the runs: the source topic stays, everything else begins anew."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.eventually import wait_until
from tools.bench.wire import Connection, ends_if_led

ADMIN_S = 30.0
CLEAN_WITHIN_S = 60.0
BROKER_OWN = "__"  # __consumer_offsets, __transaction_state, __cluster_metadata
GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND)


@dataclass(frozen=True, slots=True)
class Clusters:
    """The bootstrap addresses of the source cluster A, which has one broker, and the target cluster B, which has one
    too, but for the part that says otherwise."""

    source: str
    target: str
    brokers: Sequence[int] = ()
    """The ids of the brokers' processes; none where what they use is not looked at."""

    def begin_anew(self, keep: Sequence[str]) -> None:
        """Delete every topic but those named, and every group, on both clusters.

        Returns when they are gone. Raises NeverHappened.

        So each system starts without progress, offset syncs or Connect configuration of the one before it.
        """
        for bootstrap in (self.source, self.target):
            admin = _admin(bootstrap)
            kept = set(keep) if bootstrap == self.source else set()

            def clean(admin: AdminClient = admin, kept: set[str] = kept) -> bool:
                topics = [name for name in _topics(admin) if name not in kept]
                groups = [group.group_id for group in admin.list_consumer_groups().result(ADMIN_S).valid]
                if topics:
                    _settle(admin.delete_topics(topics, operation_timeout=ADMIN_S))
                if groups:
                    _settle(admin.delete_consumer_groups(groups))
                return not topics and not groups

            wait_until(
                clean,
                within=CLEAN_WITHIN_S,
                every=0.2,
                what=f"topics and groups of the run before gone from {bootstrap}",
            )

    def create(self, bootstrap: str, topic: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic with one replica and wait until each partition is led.

        Raises KafkaException, NeverHappened.
        """
        admin = _admin(bootstrap)
        for done in admin.create_topics([NewTopic(topic, partitions, 1, config=dict(configs or {}))]).values():
            done.result(ADMIN_S)
        with Connection(bootstrap) as connection:
            wait_until(
                lambda: None not in ends_if_led(connection, topic, partitions),
                within=CLEAN_WITHIN_S,
                what=f"every partition of {topic} led",
            )

    def delete(self, bootstrap: str, topic: str) -> None:
        """Delete a topic and wait until it is gone; one that does not exist is gone. Raises NeverHappened."""
        admin = _admin(bootstrap)

        def gone() -> bool:
            if topic not in _topics(admin):
                return True
            _settle(admin.delete_topics([topic], operation_timeout=ADMIN_S))
            return False

        wait_until(gone, within=CLEAN_WITHIN_S, every=0.2, what=f"{topic} gone from {bootstrap}")


def _admin(bootstrap: str) -> AdminClient:
    # Quiet: what it would say of a broker that ends before it is no news, and every refusal is raised anyway.
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def _topics(admin: AdminClient) -> list[str]:
    return [name for name in admin.list_topics(timeout=ADMIN_S).topics if not name.startswith(BROKER_OWN)]


def _settle(futures: Mapping[Any, Future[Any]]) -> None:
    """Wait for each; that a thing is already gone, or that a group still has members, is seen at the next look."""
    for done in futures.values():
        try:
            done.result(ADMIN_S)
        except KafkaException as refused:
            error = refused.args[0]
            if error.code() not in (*GONE, KafkaError.NON_EMPTY_GROUP):
                raise
