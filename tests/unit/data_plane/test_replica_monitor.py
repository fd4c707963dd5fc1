"""Of which services the driver knows that a replica runs: what is not known is never taken for running."""

from collections.abc import Iterable, Set
from pathlib import Path

import pytest

from lockstep_data_plane.driver.replica_monitor import CHECK_INTERVAL_S, ReplicaMonitor
from lockstep_kafka.common.admin_types import GroupDescription, Outcome
from lockstep_kafka.common.errors import ClusterUnreachable, NotPermitted, RequestRefused
from lockstep_runtime.flow.context import Clock
from tests.support.flow_context import flow_context

OTHERS = frozenset({"topic-sync", "acl-sync", "checkpoint", "heartbeat"})
AWAY = ClusterUnreachable("B", "b:9092", "no answer")
FAILED = RequestRefused("B", "describe", "group g", 15, "coordinator not available")
NOT_ALLOWED = NotPermitted("B", "DESCRIBE", "group g")
"""A group that may not be described counts as one with members, as in `lockstep status`."""

STEPS: list[tuple[dict[str, int | NotPermitted | RequestRefused], bool, Set[str], Set[str]]] = [
    ({}, False, set(), set()),
    ({"checkpoint": 0}, False, set(), {"checkpoint"}),
    ({"checkpoint": 0}, True, OTHERS, set()),
    ({"checkpoint": 0}, False, set(), {"checkpoint"}),
    ({"checkpoint": FAILED, "acl-sync": NOT_ALLOWED}, False, {"checkpoint"}, set()),
]
"""Members of groups, whether the target is away, and the services that are unknown and absent then."""


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
        outcome: Outcome[GroupDescription] = Outcome()
        for name in groups:
            service = next(other for other in OTHERS if other in name)
            answer = self.members.get(service, 1)
            if isinstance(answer, NotPermitted):
                outcome.denied[name] = answer
            elif isinstance(answer, RequestRefused):
                outcome.failed[name] = answer
            else:
                outcome.done[name] = GroupDescription(name, "STABLE", answer)
        return outcome

    async def observe(self) -> None:
        self.now += CHECK_INTERVAL_S
        await self.monitor.observe_if_due()


async def test_replicas_are_known_by_the_last_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, monkeypatch)
    assert scene.monitor.unknown == OTHERS, "until the first answer"
    for members, away, unknown, absent in STEPS:
        scene.members, scene.away = members, away
        await scene.observe()
        assert scene.monitor.unknown == unknown
        assert scene.monitor.absent == absent
