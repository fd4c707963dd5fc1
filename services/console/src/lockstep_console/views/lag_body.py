"""The history of a flow's lag as JSON values. Pure."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from lockstep_rules.offsets.lag_history import SAMPLE_MS, WORST_SAMPLE_MS, read_history, read_worst
from lockstep_state.rows.state_rows import LagBlock, Row, WorstLags


def lag_body(rows: Mapping[str, Row], now_ms: int, hours: int) -> dict[str, Any]:
    """Return the lag of the last hours: a value each ten seconds, and each minute of the worst partitions.

    Null is unknown. `least_...` are the values of those partitions whose lag is known.
    """
    history = read_history((row for row in rows.values() if isinstance(row, LagBlock)), now_ms, hours)
    worst = read_worst((row for row in rows.values() if isinstance(row, WorstLags)), now_ms, hours)
    return {
        "step_s": SAMPLE_MS // 1000,
        **asdict(history),
        "worst": [{"step_s": WORST_SAMPLE_MS // 1000, **asdict(each)} for each in worst],
    }
