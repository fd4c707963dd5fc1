"""The rows about our own bindings on the target, written before the bindings are created (decision 0023)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, replace

from lockstep_acl_sync.apply import AclsChanged, acls_changed
from lockstep_rules.acls.binding_ownership import RELEASED, OwnedBinding, owned_bindings
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.acl_binding import AclBinding
from lockstep_state.reasons.reason import NO_REASON, Reason
from lockstep_state.rows.state_rows import CopiedAcl

OWNED, DELETING = "owned", "deleting"


class BindingLedger:
    """The `acl-binding` rows of a flow. Reading never waits; a write is in the rows when it returns."""

    def __init__(self, ctx: FlowContext) -> None:
        self._ctx = ctx

    def bindings(self) -> list[OwnedBinding]:
        """Return all bindings that are ours, including those being deleted."""
        return owned_bindings(self._rows())

    async def claim(self, expected: Mapping[AclBinding, str], missing: Collection[AclBinding]) -> None:
        """Claim the `missing` bindings before they are created. `expected` has all bindings that belong on the target.

        A binding that was being deleted and is wanted again stays ours. One that existed before stays another owner's.
        """
        rows = [row for row in self._rows() if self._ctx.state.differs(row)]  # a replica that does not lead wrote it
        now = self._ctx.clock.wall_ms()
        for binding, source_name in expected.items():
            row = self._ctx.state.get(CopiedAcl, *_row(binding).identity())
            if row is not None and row.phase == DELETING:
                rows.append(replace(row, phase=OWNED, cause=NO_REASON))
            elif binding in missing and (row is None or row.phase == RELEASED):
                rows.append(replace(_row(binding), source_name=source_name, since_ms=now))
        await self._ctx.state.write_all(rows)

    async def release(self, bindings: Iterable[AclBinding], cause: Reason) -> None:
        """Record that bindings are not ours any more, or gone."""
        await self._write(bindings, RELEASED, cause)

    def being_deleted(self, binding: AclBinding) -> bool:
        """Return whether a replica began to delete the binding and has not recorded the result."""
        row = self._ctx.state.get(CopiedAcl, *_row(binding).identity())
        return row is not None and row.phase == DELETING

    async def delete(self, due: Collection[AclBinding]) -> AclsChanged:
        """Delete bindings on the target. Raises LeadershipLost, with nothing deleted, if another replica leads.

        A write returns when it is read back, and with it every record before it. So an instance that acts behind it led
        at the offset of its rows in the log, and a later leader finds them `deleting`.
        """
        await self._write(due, DELETING, NO_REASON)
        self._ctx.must_act()
        bindings, target = sorted(due), self._ctx.target
        return acls_changed(target, bindings, await target.delete_acls(bindings))

    def _rows(self) -> list[CopiedAcl]:
        return self._ctx.state.all(CopiedAcl)

    async def _write(self, bindings: Iterable[AclBinding], phase: str, cause: Reason) -> None:
        rows = (self._ctx.state.get(CopiedAcl, *_row(binding).identity()) for binding in bindings)
        await self._ctx.state.write_all([replace(row, phase=phase, cause=cause) for row in rows if row is not None])


def _row(binding: AclBinding) -> CopiedAcl:
    return CopiedAcl(**asdict(binding))
