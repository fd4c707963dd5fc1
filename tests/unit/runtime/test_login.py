"""Clients whose certificates do not serve at the moment they are made."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from lockstep_runtime.admin import Admin
from lockstep_runtime.errors import ClusterUnreachable
from lockstep_runtime.facts import FactProducer
from lockstep_runtime.login import logged_in

NOWHERE = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}


@pytest.fixture
def broken(tmp_path: Path) -> dict[str, str]:
    """A file that somebody is writing just now."""
    file = tmp_path / "user.pem"
    file.write_text("half of a key")
    return {**NOWHERE, "security.protocol": "ssl", "ssl.key.location": str(file), "ssl.certificate.location": str(file)}


def test_they_make_the_cluster_unreachable_for_the_moment(broken: dict[str, str]) -> None:
    with pytest.raises(ClusterUnreachable, match=r"cluster B at 127\.0\.0\.1:1 cannot be reached: .*ssl\.certificate"):
        logged_in(Producer, broken, "B")


async def test_admin_and_producer_say_so(broken: dict[str, str]) -> None:
    with pytest.raises(ClusterUnreachable):
        await Admin("B", broken).probe()
    producer = FactProducer("B", broken)
    with pytest.raises(ClusterUnreachable):
        producer.start()
    await producer.stop()  # it never began


def test_a_mistake_of_ours_stays_one() -> None:
    with pytest.raises(KafkaException):
        logged_in(AdminClient, {**NOWHERE, "nonsense": "1"}, "B")


async def test_an_admin_asks_with_its_new_settings() -> None:
    admin = Admin("B", NOWHERE)
    before = await admin._connected()
    await admin.renew({**NOWHERE, "bootstrap.servers": "127.0.0.1:2"})
    assert admin.bootstrap == "127.0.0.1:2"
    assert await admin._connected() is not before
