"""ACL sync beyond MirrorMaker 2's rule, between real clusters: prefixes, groups, and taking back what is ours."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AclBinding as ConfluentAcl

from lockstep_acl_sync.app import AclSync
from lockstep_acl_sync.binding_ledger import BindingLedger
from lockstep_config import load
from lockstep_kafka.common.errors import LeadershipLost
from lockstep_rules.acls.binding_ownership import MIN_REVOKED_S
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.acl_binding import AclBinding
from lockstep_state.names import state_topic
from lockstep_state.rows.state_rows import AclStatus, CopiedAcl, Leader, Row, decode_row
from tests.support.acls import AclScene, acl, acls_of, add, remove, remove_all, until
from tests.support.acting_context import acting_context
from tests.support.broker import Broker
from tests.support.clusters import Record, create_topic, produce
from tests.support.control import read_so_far
from tests.support.services import ServiceProcess

ALLOWED = ("ALLOW", "READ", "User:anna")
EVERY_SECOND = "sync.topic.acls.interval.seconds = 1"


@pytest.fixture
def scene(tmp_path: Path, broker_a: Broker, broker_b: Broker) -> AclScene:
    return AclScene(tmp_path, broker_a, broker_b)


def rows(scene: AclScene) -> dict[str, CopiedAcl]:
    """By principal, as they stand."""
    rows = (decode_row(r.key, r.value) for r in read_so_far(scene.b.bootstrap, state_topic(scene.flow)) if r.key)
    return {row.principal: row for row in rows if isinstance(row, CopiedAcl)}


def write(scene: AclScene, row: Row) -> None:
    key, value = row.encode()
    produce(scene.b.bootstrap, state_topic(scene.flow), [Record(key=key, value=value, partition=0)])


def readers(scene: AclScene) -> set[str]:
    return {principal for _, _, principal in acls_of(scene.b, scene.remote())}


def test_prefixes_and_groups_are_copied_where_asked_for(scene: AclScene) -> None:
    mark = scene.mark
    create_topic(scene.a.bootstrap, f"wide-{mark}-hidden")
    add(
        scene.a,
        acl(f"orders-{mark}", pattern="PREFIXED"),
        acl(f"wide-{mark}", pattern="PREFIXED"),
        acl(f"app-{mark}", "ALL", resource="GROUP"),
        acl(f"app-{mark}", "DELETE", resource="GROUP"),
        acl(f"other-{mark}", resource="GROUP"),
    )
    keys = ("prefixed", "groups", "delete")
    with scene.service(*(f"lockstep.acls.{key} = true" for key in keys), f"groups = app-{mark}", EVERY_SECOND):
        row = scene.in_phase("in-sync")
        assert acls_of(scene.b, f"{scene.flow.source}.orders-{mark}", pattern="PREFIXED") == {ALLOWED}
        assert acls_of(scene.b, f"{scene.flow.source}.wide-{mark}", pattern="PREFIXED") == set()
        assert acls_of(scene.b, f"app-{mark}", "GROUP") == {ALLOWED}
        assert acls_of(scene.b, f"other-{mark}", "GROUP") == set()
        named = {binding: why for binding, why in row.left_out_named if mark in binding}
        assert named[f"ALLOW READ on TOPIC wide-{mark} (PREFIXED) for User:anna from *"] == "too-wide"
        assert named[f"ALLOW DELETE on GROUP app-{mark} (LITERAL) for User:anna from *"] == "group-operation"
        assert sum(count for _, count in row.left_out_for) == row.left_out
        assert row.owned == row.copied == 2

        # A source that has lost all it had to say about groups takes nothing back.
        remove_all(scene.a, "GROUP")
        row = until(lambda: (row := scene.row()) and row.revoked == 1 and row)
        assert row.notes[0].startswith(f"{scene.flow.source} has no ACLs about groups at all")
        assert acls_of(scene.b, f"app-{mark}", "GROUP") == {ALLOWED}


@pytest.mark.long
def test_revoked_own_acl_is_revoked_on_the_target(scene: AclScene) -> None:
    def granted(*principals: str) -> list[ConfluentAcl]:
        return [acl(scene.topic, principal=f"User:{name}") for name in principals]

    asked = ("lockstep.acls.delete = true", "lockstep.acls.delete.max = 2", EVERY_SECOND)
    add(scene.a, *granted("anna", "bert", "carl", "dora", "local"))
    add(scene.b, acl(scene.remote(), principal="User:local"))
    with scene.service(*asked) as process:
        until(lambda: (row := scene.row()) and row.owned == 4 and row.copied == 5)
        assert rows(scene).keys() == {"User:anna", "User:bert", "User:carl", "User:dora"}

        # More than two at once: none, however often it looks.
        remove(scene.a, *granted("anna", "bert", "carl", "local"))
        row = until(lambda: (row := scene.row()) and row.revoked == 3 and row)
        assert "lockstep.acls.delete.max=2 at once" in row.notes[0]
        first_look = row.at_ms
        assert process.status(str(scene.flow))["revoked"] == 3
        until(lambda: time.time() * 1e3 - first_look > 1e3 * (MIN_REVOKED_S + 1.5), what="looks that agree")
        assert readers(scene) == {"User:anna", "User:bert", "User:carl", "User:dora", "User:local"}

        # One comes back, and the other two looks agree about.
        add(scene.a, *granted("carl"))
        until(lambda: readers(scene) == {"User:carl", "User:dora", "User:local"})
        until(lambda: {e.detail["principal"] for e in scene.events_of_kind("AclDeleted")} == {"User:anna", "User:bert"})
        until(lambda: (row := scene.row()) and (row.owned, row.revoked, row.notes) == (2, 0, ()))
        assert {name for name, row in rows(scene).items() if row.phase == "released"} == {"User:anna", "User:bert"}


@asynccontextmanager
async def leading(scene: AclScene, *lines: str) -> AsyncIterator[FlowContext]:
    """A context that acts for the flow, as the runtime makes it."""
    settings = load(scene.file(*lines), {}).flow(scene.flow)
    async with acting_context("acl-sync", settings) as ctx:
        yield ctx


async def test_a_round_ends_what_a_killed_one_began(scene: AclScene) -> None:
    """Killed between the row and the binding, between the row and the deletion, and before it said that it deleted."""

    def granted(name: str) -> AclBinding:
        return AclBinding(name=scene.remote(), principal=f"User:{name}", operation="READ", permission="ALLOW")

    begun = {granted(name): scene.topic for name in ("new", "kept", "gone")}
    add(scene.a, acl(scene.topic, principal="User:new"), acl(scene.topic, principal="User:kept"))
    add(scene.b, acl(scene.remote(), principal="User:kept"))
    async with leading(scene) as ctx:
        await BindingLedger(ctx).claim(begun, begun)
        deleting = [replace(rows(scene)[f"User:{name}"], phase="deleting") for name in ("kept", "gone")]
        await ctx.state.write_all(deleting)
        before = rows(scene)

    async with leading(scene, "lockstep.acls.delete = true") as ctx:
        sync = asyncio.create_task(AclSync(ctx).run())
        while ctx.state.get(AclStatus, "sync") is None and not sync.done():
            await ctx.state.changed(ctx.state.position)
        sync.cancel()
        after = rows(scene)
    assert readers(scene) == {"User:new", "User:kept"}
    assert {name: row.phase for name, row in after.items()} == {
        "User:new": "owned",
        "User:kept": "owned",
        "User:gone": "released",
    }
    assert after["User:new"] == before["User:new"]
    assert [e.detail["principal"] for e in scene.events_of_kind("AclDeleted")] == ["User:gone"]


async def test_replaced_leader_revokes_nothing(scene: AclScene) -> None:
    """It has not read yet that another one leads, and thinks that it acts: its own rows tell it."""
    binding = AclBinding(name=scene.remote(), principal="User:anna", operation="READ", permission="ALLOW")
    add(scene.b, acl(scene.remote()))
    async with leading(scene) as ctx:
        own = BindingLedger(ctx)
        await own.claim({binding: scene.topic}, [binding])
        write(scene, Leader(service="acl-sync", instance="two"))
        with pytest.raises(LeadershipLost):
            await own.delete([binding])
        assert acls_of(scene.b, scene.remote()) == {ALLOWED}
        row = ctx.state.get(CopiedAcl, *rows(scene)["User:anna"].identity())
        assert row is not None
        assert row.phase == "owned"  # what it wrote does not count

    # The next leader finds what is ours, and may delete it.
    async with leading(scene) as ctx:
        own = BindingLedger(ctx)
        assert [one.binding for one in own.bindings()] == [binding]
        assert (await own.delete([binding])).done == (binding,)
        assert own.being_deleted(binding)
        assert acls_of(scene.b, scene.remote()) == set()


@pytest.mark.long
def test_leader_that_wakes_revokes_nothing(scene: AclScene) -> None:
    """It froze having looked once; another one took the ACL back, and made it again when it was granted again."""
    asked = ("lockstep.acls.delete = true", EVERY_SECOND)
    flow = str(scene.flow)
    add(scene.a, acl(scene.topic), acl(scene.topic, principal="User:kept"))
    with scene.service(*asked, instance="one") as one, scene.service(*asked, instance="two") as two:
        both = (one, two)
        until(lambda: all(0 < len(process.status(flow)["partitions"]) < 6 for process in both), what="work is divided")
        old, _ = until(lambda: sorted(both, key=lambda one: -one.status(flow)["acting"]) if acts(both, flow) else ())
        until(lambda: (row := scene.row()) and row.owned == 2)
        remove(scene.a, acl(scene.topic))
        until(lambda: (row := scene.row()) and row.revoked == 1)
        psutil.Process(old.pid).suspend()
        assert scene.events_of_kind("AclDeleted") == []
        until(lambda: readers(scene) == {"User:kept"}, what="the other one takes it back")
        add(scene.a, acl(scene.topic))
        until(lambda: readers(scene) == {"User:anna", "User:kept"})
        claims = leaders(scene)
        psutil.Process(old.pid).resume()
        until(lambda: old.said("standing down"))
        woken = time.monotonic()
        until(lambda: time.monotonic() - woken > MIN_REVOKED_S + 3, what="rounds enough")
        assert readers(scene) == {"User:anna", "User:kept"}
        assert len(scene.events_of_kind("AclDeleted")) == 1
        assert rows(scene)["User:anna"].phase == "owned"
        assert leaders(scene) <= claims + 2, "the group may give it its work back, but it does not fight for it"


def acts(replicas: Sequence[ServiceProcess], flow: str) -> bool:
    return [process.status(flow)["acting"] for process in replicas].count(True) == 1


def leaders(scene: AclScene) -> int:
    """How often somebody claimed to lead."""
    return sum(r.key == b"leader/acl-sync" for r in read_so_far(scene.b.bootstrap, state_topic(scene.flow)))
