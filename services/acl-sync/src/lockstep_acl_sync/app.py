"""The ACL sync service: read both sides, add what the target lacks, say how it stands."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from lockstep_acl_sync import metrics
from lockstep_acl_sync.apply import NoAuthorizer, add_acls, read_acls
from lockstep_acl_sync.bindings import AclBinding
from lockstep_acl_sync.plan import AclPlan, AclRule, plan
from lockstep_protocol.commands import Command
from lockstep_protocol.filters import should_replicate_topic
from lockstep_protocol.state import AclStatus, MirroredTopic, Row
from lockstep_protocol.verbs import Scope
from lockstep_runtime.context import Answer, FlowContext
from lockstep_runtime.errors import ClusterTrouble, ClusterUnreachable, NotPermitted, RequestRefused

__all__ = ["AclSync", "build"]

ROUND = "ACL sync"


class AclSync:
    """One flow's ACLs. A cluster without an authorizer, and one that does not let us, are states and tried again each
    round.
    """

    wants: ClassVar[frozenset[type[Row]]] = frozenset({AclStatus, MirroredTopic})

    def __init__(self, ctx: FlowContext) -> None:
        settings = ctx.settings
        self._ctx = ctx
        self._rule = AclRule(
            replicates=partial(
                should_replicate_topic,
                topics=settings.topics,
                policy=settings.policy,
                flow=ctx.flow,
                heartbeats_replicated=settings.topic_sync.heartbeats_replicated,
                also_source=settings.rules.cycle_by_source,
            ),
            remote_topic=partial(settings.policy.format_remote_topic, ctx.flow.source),
        )
        self._status = AclStatus(phase="failing", reason="not looked yet")
        self._mirrored: set[str] = set()
        self._reported: frozenset[AclBinding] = frozenset()
        self._added = ctx.metrics.of(metrics.ADDED, str(ctx.flow))
        ctx.state.listen(self._topic_seen)

    async def run(self) -> None:
        await self._ctx.every(ROUND, self._ctx.settings.acl_sync.every, self._round)

    async def command(self, command: Command, scope: Scope) -> Answer | None:
        return None

    def status(self) -> Mapping[str, Any]:
        row = self._status
        return {"phase": row.phase, "reason": row.reason, "copied": row.copied, "left_out": row.left_out}

    def _topic_seen(self, row: Row) -> None:
        """A topic that is mirrored from now on: who may read it should not wait for the interval."""
        if not isinstance(row, MirroredTopic):
            return
        if row.phase != "mirrored":
            self._mirrored.discard(row.source_topic)
        elif row.source_topic not in self._mirrored:
            self._mirrored.add(row.source_topic)
            self._ctx.rounds.hurry(ROUND)

    async def _round(self) -> None:
        try:
            await self._sync()
        except NoAuthorizer as none:
            await self._stand("no-authorizer", str(none))
        except NotPermitted as denied:
            await self._stand("not-permitted", str(denied))
        except ClusterUnreachable:
            raise
        except RequestRefused as refused:
            await self._stand("failing", str(refused))

    async def _sync(self) -> None:
        ctx = self._ctx
        source = await read_acls(ctx.source)
        wanted = plan(source, await read_acls(ctx.target), self._rule)
        self._report_unknown(wanted)
        if not wanted.missing:
            await self._stand("in-sync", "", wanted.present, len(wanted.left_out))
            return
        ctx.must_act()
        added = await add_acls(ctx.target, wanted.missing)
        for binding in added.done:
            self._added.add()
            await ctx.event("AclAdded", binding.name, str(binding), **_detail(binding))
        troubles: list[ClusterTrouble] = [trouble for _, trouble in added.refused]
        copied = wanted.present + len(added.done)
        if troubles:
            denied = any(isinstance(trouble, NotPermitted) for trouble in troubles)
            reason = "; ".join(sorted({str(trouble) for trouble in troubles}))
            await self._stand("not-permitted" if denied else "failing", reason, copied, len(wanted.left_out))
            return
        await self._stand("in-sync", "", copied, len(wanted.left_out))

    def _report_unknown(self, wanted: AclPlan) -> None:
        unknown = frozenset(wanted.unknown)
        for binding in sorted(unknown - self._reported):
            self._ctx.log.warn("ACL left out", f"{binding}: an operation this release cannot name", **_detail(binding))
        self._reported = unknown

    async def _stand(self, phase: str, reason: str, copied: int = 0, left_out: int = 0) -> None:
        """Keep the row true; say it once when the phase or its reason changes."""
        before = self._ctx.state.get(AclStatus, "sync")
        self._status = AclStatus(phase=phase, reason=reason, copied=copied, left_out=left_out)
        for state, count in (("copied", copied), ("left-out", left_out)):
            self._ctx.metrics.of(metrics.ACLS, str(self._ctx.flow), state).set(count)
        changed = before is None or (before.phase, before.reason) != (phase, reason)
        if await self._ctx.state.write_if_changed(self._status) and changed:
            text = reason or f"{copied} bindings on {self._ctx.flow.target}, {left_out} of the source left out"
            self._ctx.log.say(f"ACLs {phase}", text, phase=phase)


def _detail(binding: AclBinding) -> dict[str, Any]:
    return {
        "principal": binding.principal,
        "host": binding.host,
        "operation": binding.operation,
        "permission": binding.permission,
        "topic": binding.name,
    }


def build(ctx: FlowContext) -> AclSync:
    """The service of one flow, for `lockstep_runtime.service`."""
    return AclSync(ctx)
