"""Two clusters for what runs a real MirrorMaker beside Lockstep: it mirrors every heartbeats topic that it finds, so it
does not run on the clusters that all tests share."""

from collections.abc import Iterator

import pytest

from tests.support.broker import Broker, started


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Broker, Broker]]:
    """A and B, new for each file."""
    a, b = Broker("A"), Broker("B")
    with started(a, b):
        yield a, b
