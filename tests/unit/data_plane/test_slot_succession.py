"""When a run of a slot makes room for a later one."""

from dataclasses import replace
from pathlib import Path

import pytest

from lockstep_data_plane.slot.slot_spec import SlotSpec
from lockstep_data_plane.slot.slot_succession import SlotSuccession
from lockstep_state.rows.state_rows import Leader, SlotStatus
from tests.support.flow_context import flow_settings


def succession(folder: Path, *, reads_back: bool = True) -> SlotSuccession:
    settings = flow_settings(folder)
    settings = replace(settings, data_plane=replace(settings.data_plane, read_back=reads_back))
    return SlotSuccession(SlotSpec(settings=settings, slot=0, run="mine", producer_id=1, instance="one", term=7))


def said(run: str, phase: str = "started") -> SlotStatus:
    return SlotStatus(slot=0, phase=phase, run=run)


def test_later_run_of_a_slot_ends_the_earlier_one_that_reads_back(tmp_path: Path) -> None:
    mine = succession(tmp_path)
    assert not mine.see_status(said("before"))
    assert not mine.see_status(said("mine"))
    assert not mine.see_status(said("before")), "it wakes up late"
    assert mine.see_status(said("later"))
    assert mine.successor == "run later"
    assert not mine.see_status(said("later")), "which is said once"


def test_later_run_of_a_slot_ends_none_that_brokers_refuse(tmp_path: Path) -> None:
    mine = succession(tmp_path, reads_back=False)
    mine.see_status(said("mine"))
    assert not mine.see_status(said("later"))
    assert not mine.successor


@pytest.mark.parametrize("reads_back", [True, False])
def test_other_leader_ends_a_run_once(tmp_path: Path, reads_back: bool) -> None:
    mine = succession(tmp_path, reads_back=reads_back)
    assert mine.see_leader(Leader(service="data-plane", instance="two"), 8)
    assert mine.successor == "two"
    assert not mine.see_leader(Leader(service="data-plane", instance="three"), 9)


@pytest.mark.parametrize(("phase", "cleanly"), [("released", True), ("started", False)])
def test_run_before_ended_cleanly_if_it_was_released(tmp_path: Path, phase: str, cleanly: bool) -> None:
    mine = succession(tmp_path)
    assert mine.ended_cleanly
    mine.see_status(said("before", phase))
    mine.see_status(said("mine"))
    assert mine.ended_cleanly is cleanly
