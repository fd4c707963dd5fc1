"""The settings that `lockstep_config.flow.client_settings` makes are settings that confluent-kafka takes.

librdkafka judges all of them when a client is made, without reaching a broker.
"""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from lockstep_config import FlowSettings, load
from lockstep_config.flow.client_settings import source_admin, source_consumer, target_admin, target_producer
from lockstep_config.keys.client_keys import CLIENT, ClientKind
from lockstep_config.keys.key_types import KeyStatus
from lockstep_state.names import Flow

LISTENING_NOWHERE = "127.0.0.1:1"


def settings_with(tmp_path: Path, lines: str) -> FlowSettings:
    path = tmp_path / "mm2.properties"
    path.write_text(
        f"clusters = A, B\nA.bootstrap.servers = {LISTENING_NOWHERE}\nB.bootstrap.servers = {LISTENING_NOWHERE}\n"
        f"A->B.enabled = true\n{lines}"
    )
    return load(path, {}).flow(Flow("A", "B"))


def accepted(settings: FlowSettings) -> None:
    Consumer(source_consumer(settings, "replication-consumer") | {"group.id": "none"}).close()
    Producer(target_producer(settings, "state-producer"))
    AdminClient(dict[str, str | int | float | bool](source_admin(settings)))
    AdminClient(dict[str, str | int | float | bool](target_admin(settings)))


def extremes(kind: ClientKind, *, least: bool) -> list[str]:
    """A line for each property that has a counterpart, at one end of what Java takes."""
    side = "B" if kind == "producer" else "A"
    lines = []
    for key in CLIENT[kind].values():
        if key.status is KeyStatus.USED and key.librdkafka:
            value = key.choices[0 if least else -1] if key.choices else ("0" if least else "2147483647")
            value = {"check.crcs": "true", "client.rack": "r"}.get(key.name, value)
            lines.append(f"{side}.{kind}.{key.name} = {value}\n")
    return lines


def test_the_defaults_are_taken(tmp_path: Path) -> None:
    accepted(settings_with(tmp_path, ""))


@pytest.mark.parametrize("least", [True, False], ids=["least", "most"])
@pytest.mark.parametrize("kind", list(CLIENT))
def test_every_property_is_taken_alone_and_with_all_others(tmp_path: Path, kind: ClientKind, least: bool) -> None:
    lines = extremes(kind, least=least)
    for line in lines:
        accepted(settings_with(tmp_path, line))
    accepted(settings_with(tmp_path, "".join(lines)))


def test_security_is_taken(tmp_path: Path) -> None:
    accepted(
        settings_with(
            tmp_path,
            "security.protocol = SASL_SSL\nsasl.mechanism = SCRAM-SHA-512\n"
            "ssl.endpoint.identification.algorithm =\n"
            "sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required "
            'username="u" password="p";\n',
        )
    )
