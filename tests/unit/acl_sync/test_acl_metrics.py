"""What acl-sync shows of ACLs on /metrics: only the replica that acts shows any."""

from pathlib import Path

import pytest

from lockstep_acl_sync.app import AclSync
from lockstep_protocol.rows.state_rows import AclStatus, Row
from lockstep_runtime.flow.context import FlowContext
from tests.support.flow_context import leading, read_row


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


async def test_replica_that_lost_the_lead_shows_no_acls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ctx = leading(tmp_path, "acl-sync", (0, 5))
    sync = AclSync(ctx)

    async def written(row: Row) -> bool:
        read_row(ctx, row)
        return False

    monkeypatch.setattr(ctx.state, "write_if_changed", written)
    await sync._set_phase("in-sync", "", copied=4)
    assert 'lockstep_acls{flow="A->B",state="copied"} 4.0' in page(ctx)
    ctx.leadership.assigned(())
    assert "lockstep_acls{" not in page(ctx)
