"""Metrics of acl-sync: only the leader shows ACLs."""

from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_acl_sync.app import AclSync
from lockstep_kafka.common.errors import NotPermitted
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.acl_binding import AclBinding
from lockstep_state.reasons.reason import NO_REASON
from lockstep_state.rows.state_rows import AclStatus, Row
from tests.support.flow_context import leading, read_row

BINDING = AclBinding("t", "User:u", "READ", "ALLOW")


def page(ctx: FlowContext) -> str:
    return ctx.metrics.exposition().decode()


def test_acls_are_counted_from_the_row_of_the_last_comparison(tmp_path: Path) -> None:
    """Also by a new leader, before its first round."""
    ctx = leading(tmp_path, "acl-sync", (0, 5))
    AclSync(ctx)
    assert "lockstep_acls{" not in page(ctx), "not compared yet"
    read_row(ctx, AclStatus(phase="in-sync", copied=4, left_out=3, owned=2, revoked=1))
    for state, count in {"copied": 4, "left-out": 3, "owned": 2, "revoked": 1}.items():
        assert f'lockstep_acls{{flow="A->B",state="{state}"}} {count}.0' in page(ctx)


async def test_acls_deleted_are_counted_once_though_their_events_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx = leading(tmp_path, "acl-sync", (0, 5))
    sync = AclSync(ctx)
    failures = 2

    async def event(*_what: object, **_detail: object) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise NotPermitted("B", "to write", "topic events")

    async def release(*_what: object) -> None: ...

    monkeypatch.setattr(ctx, "event", event)
    monkeypatch.setattr(sync._own, "release", release)
    bindings = [replace(BINDING, name=f"t{number}") for number in range(3)]
    for _ in range(2):
        with pytest.raises(NotPermitted):
            await sync._report_deleted(bindings[:1])
    await sync._report_deleted(bindings)
    assert 'lockstep_acls_deleted_total{flow="A->B"} 3.0' in page(ctx)


async def test_replica_that_lost_the_lead_shows_no_acls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = leading(tmp_path, "acl-sync", (0, 5))
    sync = AclSync(ctx)

    async def written(row: Row) -> bool:
        read_row(ctx, row)
        return False

    monkeypatch.setattr(ctx.state, "write_if_changed", written)
    await sync._set_phase("in-sync", NO_REASON, copied=4)
    assert 'lockstep_acls{flow="A->B",state="copied"} 4.0' in page(ctx)
    ctx.leadership.assigned(())
    assert "lockstep_acls{" not in page(ctx)
