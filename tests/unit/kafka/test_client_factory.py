"""Clients whose certificates do not serve at the moment they are made."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from lockstep_config.clients.oauth import TokenSettings
from lockstep_config.clients.token_source import TokenCallback, TokenSource
from lockstep_kafka.admin.admin import Admin
from lockstep_kafka.common.errors import ClusterUnreachable
from lockstep_kafka.librdkafka.client_factory import create_client
from lockstep_kafka.librdkafka.control_producer import ControlProducer

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}


@pytest.fixture
def broken(tmp_path: Path) -> dict[str, str]:
    """A file that somebody is writing just now."""
    file = tmp_path / "user.pem"
    file.write_text("half of a key")
    return {**NOWHERE, "security.protocol": "ssl", "ssl.key.location": str(file), "ssl.certificate.location": str(file)}


def test_broken_certificate_makes_the_cluster_unreachable(broken: dict[str, str]) -> None:
    with pytest.raises(ClusterUnreachable, match=r"cluster B at 127\.0\.0\.1:1 cannot be reached: .*ssl\.certificate"):
        create_client(Producer, broken, "B")


async def test_admin_and_producer_say_so(broken: dict[str, str]) -> None:
    with pytest.raises(ClusterUnreachable):
        await Admin("B", broken).probe()
    producer = ControlProducer("B", broken)
    with pytest.raises(ClusterUnreachable):
        await producer.start()
    await producer.stop()  # it never began


async def test_event_loop_runs_while_a_client_gets_its_token() -> None:
    """confluent-kafka sleeps for a second then."""
    callback = TokenCallback(TokenSource(TokenSettings(token="opaque")))
    bearer: dict[str, Any] = {
        **NOWHERE,
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": callback,
    }
    producer = ControlProducer("B", bearer)
    starting = asyncio.gather(producer.start(), producer.start())
    turns = 0
    while not starting.done():
        await asyncio.sleep(0.02)
        turns += 1
    assert turns >= 5
    made = producer._producer
    await producer.start()
    assert producer._producer is made
    await producer.stop()


def test_create_client_raises_a_bad_setting_unchanged() -> None:
    with pytest.raises(KafkaException):
        create_client(AdminClient, {**NOWHERE, "nonsense": "1"}, "B")


async def test_an_admin_asks_with_its_new_settings() -> None:
    admin = Admin("B", NOWHERE)
    before = await admin._connected()
    await admin.renew({**NOWHERE, "bootstrap.servers": "127.0.0.1:2"}, NOWHERE)
    assert admin.bootstrap == "127.0.0.1:2"
    assert await admin._connected() is not before
