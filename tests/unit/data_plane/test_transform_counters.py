"""The counts of transforms go on over restarts of slots."""

from lockstep_data_plane.driver.slot_counters import TransformCounters
from lockstep_state.rows.state_rows import SlotStatus


def status(slot: int, run: str, *counts: int, name: str = "pii", phase: str = "started") -> SlotStatus:
    records_in, records_out, failed, evaluating_ms, held = counts
    row = (name, f"v-{run}", records_in, records_out, failed, evaluating_ms, held)
    return SlotStatus(slot=slot, phase=phase, run=run, transforms=(row,))


def test_counts_of_all_slots_are_added_and_go_on_behind_a_restart() -> None:
    counters = TransformCounters()
    counters.update(status(0, "a", 10, 5, 1, 200, 30))
    counters.update(status(1, "b", 4, 4, 0, 100, 7))
    assert counters.totals() == {"pii": (14, 9, 1, 300, 37)}
    counters.update(status(0, "c", 3, 1, 0, 50, 2))
    assert counters.totals() == {"pii": (17, 10, 1, 350, 9)}
    counters.update(status(1, "b", 4, 4, 0, 100, 7, phase="released"))
    assert counters.totals()["pii"].held_bytes == 2
    assert counters.versions == {"pii": "v-b"}


def test_transforms_are_counted_apart() -> None:
    counters = TransformCounters()
    counters.update(status(0, "a", 1, 1, 0, 1, 0))
    counters.update(status(0, "a", 2, 0, 0, 1, 0, name="other"))
    assert {name: totals.records_in for name, totals in counters.totals().items()} == {"pii": 1, "other": 2}
