"""Two real Kafka clusters, A and B, started once for the whole run and shared by every test that asks for them.

Tests keep apart by topic names (`topic_name`), not by brokers. Whoever needs to stop a broker, or special settings,
makes a `tests.harness.broker.Broker` of its own.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from tests.harness.broker import Broker, start_all
from tests.harness.clusters import unique_name
from tests.harness.proxy import Proxy


@dataclass(frozen=True, slots=True)
class Pair:
    """Both clusters, each with ACLs enabled (nothing is denied) and a proxy in front."""

    a: Broker
    b: Broker


@pytest.fixture(scope="session")
def pair() -> Iterator[Pair]:
    with ExitStack() as stack:
        before_a, before_b = stack.enter_context(Proxy()), stack.enter_context(Proxy())
        a = Broker("A", authorizer=True, behind=before_a)
        stack.callback(a.close)
        b = Broker("B", authorizer=True, behind=before_b)
        stack.callback(b.close)
        start_all(a, b)
        yield Pair(a, b)


@pytest.fixture(scope="session")
def broker_a(pair: Pair) -> Broker:
    return pair.a


@pytest.fixture(scope="session")
def broker_b(pair: Pair) -> Broker:
    return pair.b


@pytest.fixture
def proxy_a(broker_a: Broker) -> Iterator[Proxy]:
    """In front of A for clients that bootstrap from it; healed after the test."""
    assert broker_a.proxy is not None
    yield broker_a.proxy
    broker_a.proxy.heal()


@pytest.fixture
def proxy_b(broker_b: Broker) -> Iterator[Proxy]:
    """In front of B for clients that bootstrap from it; healed after the test."""
    assert broker_b.proxy is not None
    yield broker_b.proxy
    broker_b.proxy.heal()


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name no other test uses, with the test's own in it."""
    return unique_name(request.node.originalname.removeprefix("test_")[:60])
