"""Of which services the driver knows that a replica runs: what is not known is never taken for running."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from lockstep_data_plane.driver.replica_monitor import CHECK_INTERVAL_S, ReplicaMonitor
from lockstep_kafka.common.admin_types import GroupDescription, Outcome
from lockstep_kafka.common.errors import ClusterUnreachable, NotPermitted, RequestRefused
from lockstep_runtime.flow.context import Clock
from tests.support.flow_context import flow_context

OTHERS = frozenset({"topic-sync", "acl-sync", "checkpoint", "heartbeat"})
AWAY = ClusterUnreachable("B", "b:9092", "no answer")


class Scene:
    """A monitor, and a target whose answers the test sets by service; others have one member each."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        ctx = flow_context(folder, "data-plane", lines="A->B.sync.group.offsets.enabled = true\n")
        self.now = 0.0
        ctx.clock = Clock(monotonic=lambda: self.now)
        self.members: dict[str, int | NotPermitted | RequestRefused] = {}
        self.away = False
        monkeypatch.setattr(ctx.target, "describe_groups", self._describe)
        self.monitor = ReplicaMonitor(ctx)

    async def _describe(self, groups: Iterable[str]) -> Outcome[GroupDescription]:
        if self.away:
            raise AWAY
        found: Outcome[GroupDescription] = Outcome()
        for name in groups:
            service = next(one for one in OTHERS if one in name)
            answer = self.members.get(service, 1)
            if isinstance(answer, NotPermitted):
                found.denied[name] = answer
            elif isinstance(answer, RequestRefused):
                found.failed[name] = answer
            else:
                found.done[name] = GroupDescription(name, "STABLE", answer)
        return found

    async def observe(self) -> None:
        self.now += CHECK_INTERVAL_S
        await self.monitor.observe_if_due()


async def test_replicas_are_unknown_until_the_first_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, monkeypatch)
    assert scene.monitor.unknown == OTHERS
    await scene.monitor.observe_if_due()
    assert (scene.monitor.unknown, scene.monitor.absent) == (frozenset(), frozenset())


async def test_replicas_are_unknown_after_a_cluster_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, monkeypatch)
    scene.members["checkpoint"] = 0
    await scene.observe()
    assert scene.monitor.absent == {"checkpoint"}
    scene.away = True
    await scene.observe()
    assert (scene.monitor.unknown, scene.monitor.absent) == (OTHERS, frozenset())
    scene.away = False
    await scene.observe()
    assert (scene.monitor.unknown, scene.monitor.absent) == (frozenset(), frozenset({"checkpoint"}))


async def test_group_that_fails_is_unknown_unless_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that may not be described counts as one with members, as in `lockstep status`."""
    scene = Scene(tmp_path, monkeypatch)
    scene.members["checkpoint"] = RequestRefused("B", "describe", "group g", 15, "coordinator not available")
    scene.members["acl-sync"] = NotPermitted("B", "DESCRIBE", "group g")
    await scene.observe()
    assert (scene.monitor.unknown, scene.monitor.absent) == (frozenset({"checkpoint"}), frozenset())
