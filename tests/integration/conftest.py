"""A flow of a test's own between A and B, and its file."""

import uuid
from pathlib import Path

import pytest

from lockstep_state.names import Flow
from tests.conftest import GuardedPair
from tests.support.broker import Broker
from tests.support.clusters import unique_name
from tests.support.planned_flow import FACTORS, QUIET, PlannedFlow
from tests.support.services import two_cluster_file


@pytest.fixture
def flow() -> Flow:
    """Aliases of its own keep a test's control topics apart from every other test's."""
    mark = uuid.uuid4().hex[:6]
    return Flow(f"s{mark}", f"t{mark}")


@pytest.fixture
def file(tmp_path: Path, flow: Flow, broker_a: Broker, broker_b: Broker) -> Path:
    return two_cluster_file(tmp_path, (flow.source, broker_a.bootstrap), (flow.target, broker_b.bootstrap))


@pytest.fixture
def planned(tmp_path: Path, pair: GuardedPair) -> PlannedFlow:
    mark = unique_name("p")
    lines = (f"groups = {mark}-.*", "sync.topic.acls.enabled = false", *FACTORS, *QUIET)
    return PlannedFlow.between(pair.a, pair.b, tmp_path, mark, *lines)
