"""No key of Kafka's own clients is unknown to us: their classes are asked, not our memory."""

from collections.abc import Iterator
from typing import Any

import pytest

from lockstep_config.keys.client_keys import CLIENT, CONNECTION, ClientKind
from tests.support.jvm import jvm

CLASSES: dict[ClientKind, str] = {
    "consumer": "org.apache.kafka.clients.consumer.ConsumerConfig",
    "producer": "org.apache.kafka.clients.producer.ProducerConfig",
    "admin": "org.apache.kafka.clients.admin.AdminClientConfig",
}
REMOVED = {"auto.include.jmx.reporter", "internal.leave.group.on.close"}
"""Keys of Kafka 3 that files still carry."""


@pytest.fixture(scope="module")
def names() -> Iterator[dict[ClientKind, set[str]]]:
    with jvm() as gateway:

        def config_names(kind: ClientKind) -> set[str]:
            config: Any = gateway.jvm
            for part in CLASSES[kind].split("."):
                config = getattr(config, part)
            return set(config.configNames())

        yield {kind: config_names(kind) for kind in CLASSES}


@pytest.mark.parametrize("kind", list(CLASSES))
def test_every_key_of_javas_is_declared(names: dict[ClientKind, set[str]], kind: ClientKind) -> None:
    assert len(names[kind]) > 60, "the class was asked"
    assert names[kind] - set(CLIENT[kind]) - CONNECTION == set()


@pytest.mark.parametrize("kind", list(CLASSES))
def test_client_keys_were_all_known_to_java(names: dict[ClientKind, set[str]], kind: ClientKind) -> None:
    assert set(CLIENT[kind]) - names[kind] - REMOVED == set()


def test_every_connection_key_is_one_of_javas(names: dict[ClientKind, set[str]]) -> None:
    assert set.union(*names.values()) >= CONNECTION
