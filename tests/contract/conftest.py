"""Two clusters for what runs a real MirrorMaker beside Lockstep: it mirrors every heartbeats topic that it finds, so it
does not run on the clusters that all tests share."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.broker import Broker, two_brokers
from tests.support.jvm import jvm


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Broker, Broker]]:
    """A and B, new for each file."""
    with two_brokers() as brokers:
        yield brokers


@pytest.fixture(scope="module")
def java() -> Iterator[Any]:
    """The gateway to a Java of its own for each file, which has Kafka's classes."""
    with jvm() as gateway:
        yield gateway


@pytest.fixture
def mark() -> str:
    """What the topics and aliases of one test begin with, so that tests can share the brokers."""
    return uuid.uuid4().hex[:6]
