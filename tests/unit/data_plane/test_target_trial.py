"""The trial of a target, on clusters in memory that do with producer ids what the test says."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from lockstep_data_plane.core.append_trial import AppendFault
from lockstep_data_plane.provenance import target_trial
from lockstep_data_plane.provenance.target_trial import TargetTrial
from lockstep_kafka.wire.cluster import KafkaProtocolError
from lockstep_state.events import decode_event
from lockstep_state.names import events_topic
from tests.support.flow_context import flow_settings
from tests.support.memory_cluster import MemoryLog
from tests.unit.data_plane.slot_loop_scene import ScriptedCluster

NOT_LEADER, DENIED, FENCED = 6, 29, 90
TOO_LARGE, INVALID_TIMESTAMP, POLICY_VIOLATION, UNKNOWN_SERVER_ERROR = 10, 32, 44, -1


class Target:
    """One cluster, seen by two clients."""

    def __init__(self, folder: Path) -> None:
        settings = flow_settings(folder)
        self.log = MemoryLog().append(range(3))
        self.clients = ScriptedCluster("B"), ScriptedCluster("B")
        self.topic = events_topic(settings.flow, settings.group_id)
        for client in self.clients:
            client.create(self.topic, self.log)
        self.trial = TargetTrial(settings, self.clients)

    def behave(self, **how: Any) -> None:
        for client in self.clients:
            for name, value in how.items():
                setattr(client, name, value)


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    monkeypatch.setattr(target_trial, "PASSES_WITHIN_S", 0.6)
    monkeypatch.setattr(target_trial, "AGAIN_AFTER_S", 0.01)
    return Target(tmp_path)


async def test_target_trial_of_a_cluster_like_kafka_finds_nothing(target: Target) -> None:
    assert await target.trial.find_faults() == ()
    values = [r.value for stored in target.log._batches[1:] for r in stored.content]
    assert [decode_event(value or b"").kind for value in values] == ["AppendTried"] * 3


async def test_target_trial_without_producer_ids_in_the_log_finds_it(target: Target) -> None:
    target.behave(keeps_ids=False)
    assert AppendFault.IDS_LOST in await target.trial.find_faults()


async def test_target_trial_without_checked_sequences_finds_it(target: Target) -> None:
    target.behave(checks_sequences=False)
    faults = await target.trial.find_faults()
    assert {AppendFault.GAPS_TAKEN, AppendFault.REPEATS_TAKEN, AppendFault.EPOCHS_IGNORED} == set(faults)


async def test_target_trial_waits_for_what_is_not_yet_replicated(target: Target) -> None:
    """The leader moved a moment ago, and does not know yet what the replicas have."""
    target.log.unreplicated = 3
    asyncio.get_running_loop().call_later(0.1, setattr, target.log, "unreplicated", 0)
    assert await target.trial.find_faults() == ()


async def test_target_trial_of_transactions_like_kafkas_finds_them(target: Target) -> None:
    await target.clients[0].refresh([target.topic])
    assert await target.trial.has_transactions()


@pytest.mark.parametrize("how", ["keeps_ids_in_transactions", "aborts", "fences"])
async def test_target_trial_of_transactions_by_name_alone_finds_none(how: str, target: Target) -> None:
    await target.clients[0].refresh([target.topic])
    target.behave(**{how: False})
    assert not await target.trial.has_transactions()


async def test_target_trial_that_another_driver_fences_is_tried_again(target: Target) -> None:
    await target.clients[0].refresh([target.topic])
    target.clients[0].open_codes.append(FENCED)
    assert await target.trial.has_transactions()


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        ({"takes_ids": False}, AppendFault.IDS_REFUSED),
        ({"closes_on_ids": True}, AppendFault.IDS_REFUSED),
        ({"closes_on": ["init_producer_id"]}, AppendFault.IDS_ABSENT),
        ({"unknown_apis": ["init_producer_id"]}, AppendFault.IDS_ABSENT),
        ({"fencing_codes": [35]}, AppendFault.IDS_ABSENT),
    ],
    ids=str,
)
async def test_target_trial_without_ids_appends_without(
    how: dict[str, Any], fault: AppendFault, target: Target
) -> None:
    target.behave(**how)
    assert await target.trial.find_faults() == (fault,)
    (stored,) = target.log._batches[1:]
    assert stored.producer == (-1, -1, -1)


@pytest.mark.parametrize("missing", [[], ["init_producer_id"]], ids=str)
@pytest.mark.parametrize("code", [TOO_LARGE, INVALID_TIMESTAMP, UNKNOWN_SERVER_ERROR, DENIED])
async def test_target_trial_of_a_topic_that_refuses_all_finds_nothing(
    code: int, missing: list[str], target: Target
) -> None:
    """The events topic was created by somebody else, with limits of its own: that says nothing of producer ids."""
    target.clients[0].unknown_apis = missing
    target.clients[0].append_codes.extend([code] * 1000)
    with pytest.raises(KafkaProtocolError) as raised:
        await target.trial.find_faults()
    assert raised.value.code == code


@pytest.mark.parametrize(("client", "code"), [(0, POLICY_VIOLATION), (1, POLICY_VIOLATION), (0, NOT_LEADER)])
async def test_target_trial_that_is_refused_for_a_moment_is_tried_again(client: int, code: int, target: Target) -> None:
    target.clients[client].append_codes.append(code)
    assert await target.trial.find_faults() == ()


async def test_target_trial_that_closes_once_at_an_id_finds_nothing(target: Target) -> None:
    client = target.clients[0]
    client.closes_on = ["init_producer_id"]
    asyncio.get_running_loop().call_later(0.005, setattr, client, "closes_on", [])
    assert await target.trial.find_faults() == ()
