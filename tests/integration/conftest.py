"""A flow of a test's own between A and B, and its file."""

import uuid
from pathlib import Path

import pytest

from lockstep_protocol.names import Flow
from tests.support.broker import Broker
from tests.support.services import two_cluster_file


@pytest.fixture
def flow() -> Flow:
    """Aliases of its own keep a test's control topics apart from every other test's."""
    mark = uuid.uuid4().hex[:6]
    return Flow(f"s{mark}", f"t{mark}")


@pytest.fixture
def file(tmp_path: Path, flow: Flow, broker_a: Broker, broker_b: Broker) -> Path:
    return two_cluster_file(tmp_path, (flow.source, broker_a.bootstrap), (flow.target, broker_b.bootstrap))
