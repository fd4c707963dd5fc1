"""Groups whose offsets the target does not take: each is named by a code in its row, and the others are moved."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_state.kafka.kafka_requests import KafkaRequest as Request
from lockstep_state.rows.state_rows import GroupStatus
from tests.support.acls import GUARDS, acl, add
from tests.support.broker import Broker
from tests.support.checkpoint_scene import Scene, commit, until
from tests.support.clusters import committed_offset
from tests.support.control import last_row
from tests.support.proxy import Proxy


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    """Checks permissions, and allows what no rule is about."""
    with Broker("guarded", properties=GUARDS) as broker:
        yield broker


@pytest.fixture
def without_commits(proxy_b: Proxy) -> Iterator[Proxy]:
    """B's proxy, whose brokers do not know OffsetCommit."""
    proxy_b.announce({Request.OFFSET_COMMIT: -1})
    yield proxy_b
    proxy_b.announce({})


def row_of(scene: Scene, group: str) -> GroupStatus | None:
    row = last_row(scene.b.bootstrap, scene.flow, f"group/{group}")
    return row if isinstance(row, GroupStatus) and row.held else None


@pytest.mark.long
def test_group_without_the_right_to_commit_is_named_and_others_move(
    tmp_path: Path, broker_a: Broker, guarded: Broker
) -> None:
    scene = Scene.with_syncs(tmp_path, broker_a, guarded)
    denied = f"denied-{scene.mark}"
    everybody = {"principal": "User:*", "resource": "GROUP"}
    add(guarded, acl(denied, "READ", "DENY", **everybody), acl(denied, "DESCRIBE", **everybody))
    scene.sync((0, 0), (100, 90))
    for group in (denied, scene.group):
        commit(scene.a, group, scene.topic, 0, 100)
    with scene.service() as process:
        until(lambda: scene.on_target() == 90, what="the group that may be moved")
        row = until(lambda: row_of(scene, denied), what="the group that may not be committed for")
        assert (row.held, row.held_cause.code, row.synced) == ("refused", "not-permitted", False)
        assert f"group {denied}" in row.held_reason
        assert "kafka-acls" in str(row.held_cause.detail("grant"))
        assert process.status(str(scene.flow))["held"]["refused"] == 1


@pytest.mark.long
def test_groups_of_a_target_without_commits_are_named_as_not_moved(
    tmp_path: Path, broker_a: Broker, broker_b: Broker, without_commits: Proxy
) -> None:
    """The request is not known: it is no cluster that cannot be reached, and checkpoints are written."""
    scene = Scene.with_syncs(tmp_path, broker_a, broker_b)
    scene.target_address = without_commits.bootstrap
    scene.sync((0, 0), (100, 90))
    scene.commit(100)
    with scene.service() as process:
        until(lambda: (100, 90) in scene.emitted())
        row = until(lambda: row_of(scene, scene.group), what="its row")
        assert (row.held, row.held_cause.code) == ("refused", "request-unsupported")
        assert "does not know the request to alter offsets of group" in row.held_reason
        assert committed_offset(broker_b.bootstrap, scene.group, scene.remote, 0) is None
        assert process.running
