"""Pairs of brokers of several versions and kinds, and a mirror between them."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial

from confluent_kafka import KafkaError, KafkaException

from tests.support.broker import Broker
from tests.support.clusters import (
    Record,
    create_topic,
    delete_topic,
)
from tests.support.eventually import wait_until
from tests.support.kafka_jars import OLDER
from tests.support.kfake import Kfake
from tests.support.zookeeper import BrokerBefore24, ZooKeeperBroker

WITHIN = 90.0  # seconds; usual is 3, but three JVMs and Spark share the cores
until = partial(wait_until, within=WITHIN, every=0.5)

BEFORE_IDS = {"inter.broker.protocol.version": "2.7"}
KINDS: Mapping[str, Callable[[], Broker | Kfake]] = {
    "4.3": lambda: Broker("current", authorizer=True),
    "3.9": lambda: Broker("previous", kafka=OLDER["3.9"], authorizer=True),
    **{
        release: partial(ZooKeeperBroker, f"old-{release}", kafka=OLDER[release], authorizer=True)
        for release in ("2.8", "2.7", "2.4")
    },
    "2.1": lambda: BrokerBefore24("old-2.1", kafka=OLDER["2.1"], authorizer=True),
    "2.8-too": lambda: ZooKeeperBroker("old-2.8-too", kafka=OLDER["2.8"], authorizer=True),
    "kfake": Kfake,
    "2.8-without-ids": lambda: ZooKeeperBroker("old-2.8-no-ids", kafka=OLDER["2.8"], properties=BEFORE_IDS),
    "3.9-without-ids": lambda: ZooKeeperBroker("previous-no-ids", kafka=OLDER["3.9"], properties=BEFORE_IDS),
}


class Brokers:
    """Brokers by kind, each started once."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._started: dict[str, Broker | Kfake] = {}

    def __getitem__(self, kind: str) -> Broker | Kfake:
        if kind not in self._started:
            broker = KINDS[kind]()
            self._stack.callback(broker.close)
            self._started[kind] = broker.start()
        return self._started[kind]


def numbered_records(count: int, first: int = 0, partitions: int = 1) -> list[Record]:
    """Return records with everything that a record can have. Some lack their key, some their value."""
    return [
        Record(
            key=None if n % 11 == 0 else b"key %d" % (n % 13),
            value=None if n % 17 == 1 else b"value %d " % n + b"v" * (n % 300),
            headers=(("number", b"%d" % n), ("number", b"again"), ("none", None)) if n % 3 else (),
            timestamp_ms=1_700_000_000_000 + n * 1000,
            partition=n % partitions,
        )
        for n in range(first, first + count)
    ]


def created_again(bootstrap: str, topic: str) -> None:
    """Delete a topic and create it again. With ZooKeeper its name is free only some time after it is gone."""
    delete_topic(bootstrap, topic)

    def created() -> bool:
        try:
            return bool(create_topic(bootstrap, topic))
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            return False

    until(created, what=f"{topic} is created again")
