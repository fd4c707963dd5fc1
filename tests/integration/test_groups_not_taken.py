"""Groups whose offsets the target does not take: each is named by a code in its row, and the others are moved."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from lockstep_state.kafka.kafka_requests import KafkaRequest as Request
from lockstep_state.rows.state_rows import GroupStatus
from tests.support.acls import GUARDS, acl, add
from tests.support.broker import Broker
from tests.support.checkpoint_scene import Scene, commit, until
from tests.support.cluster_profile import ClusterProfile
from tests.support.control import last_row
from tests.support.proxy import Proxy


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    """Checks permissions, and allows what no rule is about."""
    with Broker("guarded", properties=GUARDS) as broker:
        yield broker


@pytest.fixture
def scene(tmp_path: Path, broker_a: Broker, broker_b: Broker, proxy_b: Proxy) -> Scene:
    """A scene whose service reaches B through its proxy."""
    scene = Scene.with_syncs(tmp_path, broker_a, broker_b)
    scene.target_address = proxy_b.bootstrap
    return scene


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
def test_groups_of_a_target_without_commits_are_named_as_not_moved(scene: Scene, proxy_b: Proxy) -> None:
    """The request is not known: it is no cluster that cannot be reached, and checkpoints are written."""
    proxy_b.announce({Request.OFFSET_COMMIT: -1})
    scene.sync((0, 0), (100, 90))
    scene.commit(100)
    with scene.service() as process:
        until(lambda: (100, 90) in scene.emitted())
        row = until(lambda: row_of(scene, scene.group), what="its row")
        assert (row.held, row.held_cause.code) == ("refused", "request-unsupported")
        assert "does not know the request to alter offsets of group" in row.held_reason
        assert scene.on_target() is None
        assert process.running


@dataclass(frozen=True, slots=True)
class RefusedCommit:
    """An error by which the target answers each commit of a group, and what its row says then."""

    error: ErrorCode
    code: str
    held: str = "refused"
    words: str = ""


REFUSED_COMMITS = (
    RefusedCommit(ErrorCode.invalid_group_id, "request-refused"),
    RefusedCommit(ErrorCode.group_authorization_failed, "not-permitted", words="kafka-acls"),
    RefusedCommit(ErrorCode.topic_authorization_failed, "not-permitted", words="kafka-acls"),
    RefusedCommit(ErrorCode.cluster_authorization_failed, "not-permitted"),
    RefusedCommit(ErrorCode.unsupported_version, "request-unsupported", words="does not know the request"),
    RefusedCommit(ErrorCode.policy_violation, "request-refused"),
    RefusedCommit(ErrorCode.not_coordinator, "request-refused"),
    RefusedCommit(ErrorCode.coordinator_not_available, "request-refused"),
    RefusedCommit(ErrorCode.invalid_commit_offset_size, "request-refused"),
    RefusedCommit(ErrorCode.offset_metadata_too_large, "request-refused"),
    RefusedCommit(ErrorCode.illegal_generation, "request-refused"),
    RefusedCommit(ErrorCode.throttling_quota_exceeded, "request-refused"),
    RefusedCommit(ErrorCode.unknown_server_error, "request-refused"),
    RefusedCommit(ErrorCode.group_id_not_found, "reported", words="has its name on the target"),
    RefusedCommit(ErrorCode.unknown_member_id, "target-group-active", held="in-use"),
)
MOVED_WITHIN = 30.0
"""Seconds in which a group moves while others are refused, one of them for want of a coordinator."""


def is_at(scene: Scene, group: str, offset: int) -> bool:
    return scene.on_target(group=group) == offset


@pytest.mark.long
def test_each_refused_commit_has_its_code_and_holds_no_other_group_up(scene: Scene, proxy_b: Proxy) -> None:
    groups = {f"{case.error.name.replace('_', '-')}-{scene.mark}": case for case in REFUSED_COMMITS}
    errors = {(group, ""): case.error for group, case in groups.items()}
    proxy_b.answer_as(ClusterProfile(commit_errors=errors))
    scene.sync((0, 0), (100, 90), (200, 190))
    for group in (*groups, scene.group):
        commit(scene.a, group, scene.topic, 0, 100)
    with scene.service() as process:
        until(lambda: scene.on_target() == 90, what="the group that may be moved")
        for group, case in groups.items():
            row = until(partial(row_of, scene, group), what=f"the row of {group}")
            assert (row.held, row.held_cause.code, row.synced) == (case.held, case.code, False), group
            assert case.words in f"{row.held_reason} {row.held_cause.detail('grant')}"
            assert scene.on_target(group=group) is None
        assert process.status(str(scene.flow))["held"]["refused"] == len(groups) - 1
        scene.commit(200)
        until(partial(is_at, scene, scene.group, 190), within=MOVED_WITHIN, what="the next offset of the group")
        proxy_b.answer_as(ClusterProfile())
        for group in groups:
            until(partial(is_at, scene, group, 90), what=group)


@pytest.mark.long
def test_topic_that_a_group_may_not_commit_in_is_named_and_its_others_move(scene: Scene, proxy_b: Proxy) -> None:
    other = scene.with_second_topic()
    code = ErrorCode.topic_authorization_failed
    proxy_b.answer_as(ClusterProfile(commit_errors={(scene.group, other.remote): code}))
    for each in (scene, other):
        each.sync((0, 0), (100, 90))
        each.commit(100)
    with scene.service():
        until(lambda: scene.on_target() == 90, what="the topic in which the group may commit")
        row = until(lambda: row_of(scene, scene.group), what="the row")
        assert (row.held, row.held_cause.code) == ("refused", "not-permitted")
        assert other.remote in row.held_reason
        assert f"topic {scene.remote}:" not in row.held_reason
        assert other.on_target() is None


@pytest.mark.long
def test_groups_of_a_target_that_closes_the_connection_at_commits_are_named(scene: Scene, proxy_b: Proxy) -> None:
    proxy_b.answer_as(ClusterProfile(closes_on=frozenset({"offset_commit"})))
    second = f"second-{scene.mark}"
    scene.sync((0, 0), (100, 90))
    for group in (second, scene.group):
        commit(scene.a, group, scene.topic, 0, 100)
    with scene.service() as process:
        for group in (second, scene.group):
            row = until(partial(row_of, scene, group), what=f"the row of {group}")
            assert (row.held, row.held_cause.code) == ("refused", "request-unsupported")
        assert process.running
