"""The trial of a target shows of a real broker that appends are a compare-and-swap, and that it has transactions."""

from pathlib import Path

from lockstep_config import load
from lockstep_data_plane.provenance.target_trial import TargetTrial
from lockstep_state.names import Flow, events_topic
from tests.conftest import Pair
from tests.support.clusters import create_topic


async def test_target_trial_of_a_real_broker_finds_no_fault(pair: Pair, file: Path, flow: Flow) -> None:
    settings = load(file, {}).flow(flow)
    create_topic(pair.b.bootstrap, events_topic(flow, settings.group_id))
    trial = TargetTrial(settings)
    try:
        assert await trial.find_faults() == ()
        assert await trial.has_transactions()
        assert await trial.find_faults() == ()
    finally:
        await trial.close()
