"""How a flow appends to a target that does not do with producer ids what Kafka does."""

from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_config import FlowSettings
from lockstep_data_plane.core.append_trial import AppendFault, AppendMode
from lockstep_data_plane.driver.flow_origin import FlowOrigin
from lockstep_data_plane.provenance.producer_ids import settle_appends, try_target
from lockstep_kafka.common.errors import AppendsUnsafe
from lockstep_rules.policy import IdentityReplicationPolicy
from lockstep_runtime.flow.context import FlowContext
from lockstep_state.names import events_topic
from lockstep_state.reasons.reason_catalogue import ReasonCode
from lockstep_state.rows.state_rows import Origin
from tests.support.flow_context import flow_context, flow_settings, read_row
from tests.support.memory_cluster import MemoryLog
from tests.unit.data_plane.slot_loop_scene import ScriptedCluster

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
TRANSACTIONS = ("find_coordinator", "add_partitions_to_txn", "end_txn")


@pytest.fixture
def settings(tmp_path: Path) -> FlowSettings:
    return flow_settings(tmp_path)


@pytest.fixture
def clients(settings: FlowSettings, monkeypatch: pytest.MonkeyPatch) -> tuple[ScriptedCluster, ScriptedCluster]:
    """The two clients of the trial, of one cluster."""
    both, log = (ScriptedCluster("B"), ScriptedCluster("B")), MemoryLog()
    for client in both:
        client.create(events_topic(settings.flow, settings.group_id), log)
    remaining = list(both)
    monkeypatch.setattr("lockstep_data_plane.provenance.target_trial.connect_cluster", lambda *_: remaining.pop(0))
    return both


@pytest.mark.usefixtures("clients")
async def test_target_like_kafka_gets_sequences(settings: FlowSettings) -> None:
    assert await try_target(settings) == (AppendMode.SEQUENCES, ())


async def test_target_that_loses_ids_gets_transactions(
    settings: FlowSettings, clients: tuple[ScriptedCluster, ScriptedCluster]
) -> None:
    for client in clients:
        client.keeps_ids = False
    mode, faults = await try_target(settings)
    assert mode is AppendMode.TRANSACTIONS
    assert AppendFault.IDS_LOST in faults


@pytest.mark.parametrize("api", TRANSACTIONS)
async def test_target_that_loses_ids_without_transactions_is_read_back(
    api: str, settings: FlowSettings, clients: tuple[ScriptedCluster, ScriptedCluster]
) -> None:
    for client in clients:
        client.keeps_ids, client.unknown_apis = False, [api]
    mode, faults = await try_target(settings)
    assert mode is AppendMode.READ_BACK
    assert faults


async def test_target_that_loses_ids_gets_no_copies_of_the_same_names(
    settings: FlowSettings, clients: tuple[ScriptedCluster, ScriptedCluster]
) -> None:
    for client in clients:
        client.keeps_ids, client.unknown_apis = False, TRANSACTIONS
    mode, faults = await try_target(replace(settings, policy=IdentityReplicationPolicy()))
    assert mode is None
    assert faults


def test_target_without_a_way_has_a_reason_with_its_faults() -> None:
    trouble = AppendsUnsafe("B", AppendFault.IDS_LOST.words)
    assert trouble.to_reason().code == ReasonCode.APPENDS_UNSAFE
    assert str(trouble).startswith("cluster B does not keep producer id, epoch and sequence of a batch in its log. ")


@pytest.mark.parametrize(
    ("appends", "in_transactions", "reads_back"),
    [("", False, False), ("sequences", False, False), ("transactions", True, False), ("read-back", False, True)],
)
def test_slots_get_the_settings_that_the_trial_chose(
    appends: str, in_transactions: bool, reads_back: bool, tmp_path: Path
) -> None:
    origin = FlowOrigin(flow_context(tmp_path, "data-plane"))
    assert not origin.settings.data_plane.exactly_once
    origin._origin = Origin(
        producer_id=1, source="A", target="B", origin_cluster_id="a", target_cluster_id="b", appends=appends
    )
    assert origin.settings.data_plane.exactly_once == in_transactions
    assert origin.settings.data_plane.read_back == origin.reads_back == reads_back


def origin_of(appends: str) -> Origin:
    return Origin(
        producer_id=1, source="A", target="B", origin_cluster_id="a", target_cluster_id="B", appends=appends, term=1
    )


async def test_origin_without_a_mode_is_tried_while_the_source_is_away(
    tmp_path: Path, clients: tuple[ScriptedCluster, ScriptedCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row was written while the file asked for transactions, which it does no more."""
    for client in clients:
        client.keeps_ids = False
    ctx = flow_context(tmp_path, "data-plane")
    events: list[str] = []

    async def cluster_id() -> str:
        return "B"

    async def event(_: FlowContext, kind: str, *texts: str, **detail: object) -> None:
        events.append(kind)

    monkeypatch.setattr(ctx.target, "cluster_id", cluster_id)
    monkeypatch.setattr(FlowContext, "event", event)
    read_row(ctx, origin_of(""))
    origin = FlowOrigin(ctx)
    await origin.take_last()
    assert origin.settings.data_plane.exactly_once
    assert events == ["AppendModeChosen"]


async def test_origin_that_reads_back_gets_no_copies_of_the_same_names(tmp_path: Path) -> None:
    """The file has got another policy since the trial."""
    ctx = flow_context(tmp_path, "data-plane", lines=f"replication.policy.class = {IDENTITY}\n")
    with pytest.raises(AppendsUnsafe):
        await settle_appends(ctx, origin_of("read-back"))
    assert (await settle_appends(ctx, origin_of("sequences"))).appends == "sequences"
