"""The trial of a target, on clusters in memory that do with producer ids what the test says."""

from pathlib import Path

import pytest

from lockstep_config import load
from lockstep_data_plane.core.append_trial import AppendFault
from lockstep_data_plane.provenance.target_trial import TargetTrial
from lockstep_data_plane.wire.cluster import KafkaProtocolError
from lockstep_protocol.events import decode_event
from lockstep_protocol.names import Flow, events_topic
from tests.support.flow_context import FILE
from tests.support.memory_cluster import MemoryLog
from tests.unit.data_plane.engine_scene import EngineCluster

NOT_LEADER, DENIED = 6, 29


class Target:
    """One cluster, seen by two clients."""

    def __init__(self, folder: Path) -> None:
        file = folder / "mm2.properties"
        file.write_text(FILE)
        settings = load(file, {}).flow(Flow("A", "B"))
        self.log = MemoryLog().append(range(3))
        self.clients = EngineCluster("B"), EngineCluster("B")
        for client in self.clients:
            client.create(events_topic(settings.flow, settings.group_id), self.log)
        self.trial = TargetTrial(settings, self.clients)

    def behave(self, **how: bool) -> None:
        for client in self.clients:
            for name, value in how.items():
                setattr(client, name, value)


@pytest.fixture
def target(tmp_path: Path) -> Target:
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


async def test_target_trial_where_ids_are_refused_appends_nothing(target: Target) -> None:
    target.behave(takes_ids=False)
    assert await target.trial.find_faults() == (AppendFault.IDS_REFUSED,)
    assert target.log.end == 3


async def test_target_trial_that_fails_for_a_moment_is_tried_again(target: Target) -> None:
    target.clients[0].append_codes.append(NOT_LEADER)
    assert await target.trial.find_faults() == ()


async def test_target_trial_that_is_not_permitted_finds_nothing(target: Target) -> None:
    target.clients[0].append_codes.append(DENIED)
    with pytest.raises(KafkaProtocolError):
        await target.trial.find_faults()
