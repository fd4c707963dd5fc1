"""The rounds of the acl-sync service in one flow: read both sides, add, delete, write the state."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar

from lockstep_acl_sync import metrics
from lockstep_acl_sync.apply import AclsChanged, acls_changed
from lockstep_acl_sync.binding_ledger import BindingLedger
from lockstep_kafka.admin.acl_reader import AclsUnsupported, NoAuthorizer, OAuthRules, read_acls
from lockstep_kafka.common.errors import (
    ClusterError,
    ClusterUnreachable,
    NotPermitted,
    RequestRefused,
    RequestUnsupported,
)
from lockstep_kafka.common.tracing import set_attributes
from lockstep_rules.acls.acl_plan import AclPlan, AclRule, PrefixCandidates, Verdict, judge_with, plan
from lockstep_rules.acls.binding_ownership import Deletions, Review, RevocationHistory, deletions, review
from lockstep_rules.acls.token_authorization import token_notes
from lockstep_rules.filters import should_replicate_group
from lockstep_rules.topic_plan import copy_owners
from lockstep_runtime.flow.context import Answer, FlowContext
from lockstep_runtime.telemetry.metrics import Sample
from lockstep_state.acl_binding import AclBinding
from lockstep_state.commands.command import Command
from lockstep_state.commands.command_vocabulary import Scope
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.reasons.reason_catalogue import ReasonCode, format_sentence
from lockstep_state.rows.state_rows import AclStatus, CopiedAcl, MirroredTopic, Row

ROUND = "ACL sync"


class AclSync:
    """The ACLs of one flow.

    A cluster without an authorizer, and one that denies access to ACLs, are phases and tried again each round.
    """

    wants: ClassVar[frozenset[type[Row]]] = frozenset({AclStatus, CopiedAcl, MirroredTopic})

    def __init__(self, ctx: FlowContext) -> None:
        settings = ctx.settings
        self._ctx = ctx
        self._settings = settings.acl_sync
        self._rule = AclRule(
            replicates=self._replicates,
            remote_topic=settings.remote_topic,
        )
        self._one_cluster = False
        self._resources = frozenset({"TOPIC", "GROUP"} if self._settings.groups else {"TOPIC"})
        self._own = BindingLedger(ctx)
        self._history = RevocationHistory()
        self._tokens = token_notes(
            {
                ctx.flow.source: settings.clients.source_admin,
                ctx.flow.target: settings.clients.target_admin,
            },
            ctx.flow.target,
        )
        self._status = AclStatus(phase="failing", cause=ReasonCode.ACLS_NOT_READ.to_reason())
        self._mirrored: set[str] = set()
        self._reported: frozenset[AclBinding] = frozenset()
        self._added = ctx.metrics.series(metrics.ADDED, str(ctx.flow))
        self._deleted = ctx.metrics.series(metrics.DELETED, str(ctx.flow))
        ctx.metrics.ask(self._samples)
        ctx.state.listen(self._topic_seen)

    async def run(self) -> None:
        await self._ctx.periodic.every(ROUND, self._settings.every, self._round)

    async def command(self, command: Command, scope: Scope) -> Answer | None:
        return None

    def status(self) -> Mapping[str, Any]:
        row = self._status
        shown = {name: value for name, value in asdict(row).items() if name not in ("at_ms", "term")}
        return {**shown, "cause": row.cause.to_json()}

    def _samples(self) -> Iterator[Sample]:
        """Yield the metrics of the row of the last comparison; none while another replica leads."""
        ctx = self._ctx
        row = ctx.state.get(AclStatus, "sync")
        if row is None or not ctx.is_acting:
            return
        counts = {"copied": row.copied, "left-out": row.left_out, "owned": row.owned, "revoked": row.revoked}
        for state, count in counts.items():
            yield Sample(metrics.ACLS, (str(ctx.flow), state), count)

    def _topic_seen(self, row: Row) -> None:
        """Start a round for a newly mirrored topic: its readers should not wait for the interval."""
        if not isinstance(row, MirroredTopic):
            return
        if row.phase != "mirrored":
            self._mirrored.discard(row.source_topic)
        elif row.source_topic not in self._mirrored:
            self._mirrored.add(row.source_topic)
            self._ctx.periodic.trigger(ROUND)

    def _replicates(self, topic: str) -> bool:
        """Return whether the ACLs of a topic are copied, by its name or by topic-sync's row.

        On one cluster under two aliases the ACLs of copies are not copied.
        """
        return self._ctx.settings.replicates(topic, one_cluster=self._one_cluster) or topic in self._mirrored

    async def _round(self) -> None:
        try:
            await self._sync()
        except AclsUnsupported as unsupported:
            await self._set_phase("not-supported", unsupported.reason)
        except NoAuthorizer as none:
            await self._set_phase("no-authorizer", none.reason)
        except OAuthRules as oauth:
            await self._set_phase("oauth", oauth.reason)
        except NotPermitted as denied:
            await self._set_phase("not-permitted", denied.to_reason())
        except ClusterUnreachable:
            raise
        except RequestRefused as refused:
            await self._set_phase("failing", refused.to_reason())

    async def _sync(self) -> None:
        ctx = self._ctx
        self._one_cluster = await ctx.source.cluster_id() == await ctx.target.cluster_id()
        source = await read_acls(ctx.source, self._resources)
        target = await read_acls(ctx.target, self._resources)
        planned = plan(source, target, await self._verdict(source))
        self._report_unknown(planned)
        await self._own.claim(planned.expected, frozenset(planned.missing))
        added = await self._add_missing(planned.missing)
        reviewed = review(self._own.bindings(), source, target, planned.expected, self._resources)
        decided = self._decide(reviewed)
        deleted = await self._delete_owned(reviewed, decided)

        set_attributes(added=len(added.done), deleted=len(deleted.done), revoked=len(reviewed.revoked))
        troubles = [*added.refused.values(), *deleted.refused.values()]
        phase, cause = _phase_after(troubles)
        await self._set_phase(
            phase,
            cause,
            copied=planned.present + len(added.done),
            left_out=len(planned.left_out),
            left_out_for=planned.left_out_counts,
            left_out_named=planned.left_out_names,
            revoked=len(reviewed.revoked) + len(reviewed.silent) - len(deleted.done),
            notes=decided.notes,
        )

    async def _verdict(self, source: Iterable[AclBinding]) -> Verdict:
        """Return the function that judges each binding of the source, by the topics that exist now."""
        candidates, rule = None, self._rule
        rows = self._ctx.state.all(MirroredTopic)
        if self._ctx.settings.renames:
            rule = rule.with_renames(rows)
        if self._settings.prefixed and any(b.pattern == "PREFIXED" and b.resource == "TOPIC" for b in source):
            ctx = self._ctx
            candidates = PrefixCandidates.from_listings(
                await ctx.source.topic_names(), await ctx.target.topic_names(), copy_owners(rows), rule
            )
        follows = partial(should_replicate_group, groups=self._ctx.settings.groups) if self._settings.groups else None
        return partial(judge_with, rule=rule, prefixes=candidates, groups=follows)

    async def _add_missing(self, missing: Sequence[AclBinding]) -> AclsChanged:
        """Create claimed bindings on the target.

        One that the target refuses is not ours, even if another client creates it later.
        """
        ctx = self._ctx
        if not missing:
            return AclsChanged()
        ctx.must_act()
        added = acls_changed(ctx.target, missing, await ctx.target.create_acls(missing))
        await self._own.release(added.refused, ReasonCode.ACL_REFUSED.to_reason())
        self._added.increase(len(added.done))
        await asyncio.gather(*(ctx.event("AclAdded", b.name, str(b), **_detail(b)) for b in added.done))
        return added

    def _decide(self, reviewed: Review) -> Deletions:
        ctx, settings = self._ctx, self._settings
        now = ctx.clock.monotonic()
        self._history = self._history.with_reading(ctx.term, now, reviewed.revoked)
        if not settings.delete:
            return Deletions()
        return deletions(
            reviewed,
            self._history,
            now,
            limit=settings.delete_max,
            shared=[str(flow) for flow in settings.shared],
            source=ctx.flow.source,
            target=ctx.flow.target,
        )

    async def _delete_owned(self, reviewed: Review, decided: Deletions) -> AclsChanged:
        gone_bindings = {own.binding for own in reviewed.gone}
        begun = {binding for binding in gone_bindings if self._own.being_deleted(binding)}
        await self._own.release(sorted(gone_bindings - begun), ReasonCode.ACL_ABSENT.to_reason())
        await self._report_deleted(begun)  # by an earlier round, which did not come to say so
        due = [own.binding for own in decided.due]
        if not due:
            return AclsChanged()
        deleted = await self._own.delete(due)
        await self._report_deleted(deleted.done)
        return deleted

    async def _report_deleted(self, bindings: Collection[AclBinding]) -> None:
        """Report deleted bindings, then release them.

        A process that is killed in between reports them twice, rather than never.
        """
        ordered = sorted(bindings)
        await asyncio.gather(*(self._ctx.event("AclDeleted", b.name, str(b), **_detail(b)) for b in ordered))
        await self._own.release(ordered, ReasonCode.ACL_REVOKED.to_reason())
        self._deleted.increase(len(ordered))

    def _report_unknown(self, planned: AclPlan) -> None:
        unknown = frozenset(planned.unknown)
        for binding in sorted(unknown - self._reported):
            self._ctx.log.warn("ACL left out", f"{binding}: an operation this release cannot name", **_detail(binding))
        self._reported = unknown

    async def _set_phase(self, phase: str, cause: Reason, *, notes: tuple[str, ...] = (), **counts: Any) -> None:
        """Write the row, and log once when the phase, its cause or a note changes."""
        before = self._ctx.state.get(AclStatus, "sync")
        row = AclStatus(
            phase=phase, cause=cause, notes=(*self._tokens, *notes), owned=len(self._own.bindings()), **counts
        )
        self._status = row
        set_attributes(phase=phase, copied=row.copied)
        if not await self._ctx.state.write_if_changed(row):
            return
        if before is None or (before.phase, before.cause) != (phase, cause):
            text = (
                row.reason or f"{row.copied} bindings on {self._ctx.flow.target}, {row.left_out} of the source left out"
            )
            level = logging.WARNING if phase in ("not-permitted", "failing") else logging.INFO
            self._ctx.log.info(f"ACLs {phase}", text, level=level, phase=phase)
        for remark in row.notes:
            if before is None or remark not in before.notes:
                self._ctx.log.warn("ACLs", remark)


def _phase_after(troubles: Collection[ClusterError]) -> tuple[str, Reason]:
    """Return phase and cause after a round with these errors of the target."""
    if not troubles:
        return "in-sync", NO_REASON
    unknown = next((trouble for trouble in troubles if isinstance(trouble, RequestUnsupported)), None)
    if unknown is not None:
        return "not-supported", AclsUnsupported(unknown.alias).reason
    denied = any(isinstance(trouble, NotPermitted) for trouble in troubles)
    causes = {trouble.to_reason() for trouble in troubles}
    text = "; ".join(sorted(map(format_sentence, causes)))
    cause = causes.pop() if len(causes) == 1 else ReasonCode.ACLS_REFUSED.to_reason(text=text)
    return "not-permitted" if denied else "failing", cause


def _detail(binding: AclBinding) -> dict[str, Any]:
    return {
        "principal": binding.principal,
        "host": binding.host,
        "operation": binding.operation,
        "permission": binding.permission,
        "topic": binding.name,
        "resource": binding.resource,
        "pattern": binding.pattern,
    }
