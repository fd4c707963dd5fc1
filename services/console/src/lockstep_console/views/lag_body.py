"""The history of a flow's lag as JSON values. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from lockstep_rules.offsets.lag_history import (
    BLOCK_MS,
    SAMPLE_MS,
    WORST_SAMPLE_MS,
    block_of,
    read_history,
    read_worst,
)
from lockstep_state.rows.state_rows import LagBlock, Row, WorstLags

TAIL = 12
"""Samples of what is new. Each is sent several times, so that one that came late is there too."""


def lag_body(rows: Mapping[str, Row], now_ms: int, hours: int) -> dict[str, Any]:
    """Return the lag of the last hours: a value each ten seconds, and each minute of the worst partitions.

    Null is unknown. `least_...` are the values of those partitions whose lag is known.
    """
    return _body(rows.values(), now_ms, hours)


def lag_tail(find: Callable[[str], Row | None], now_ms: int) -> dict[str, Any]:
    """Return the last `TAIL` samples of the same, and the worst partitions of the last twenty minutes at most.

    Args:
        find: Returns a row by its key.
        now_ms: The present time in Unix milliseconds.
    """
    blocks = [block_of(now_ms - BLOCK_MS)[0], block_of(now_ms)[0]]
    rows = [find(f"{kind}/{block}") for kind in (LagBlock.kind, WorstLags.kind) for block in blocks]
    body = _body([row for row in rows if row is not None], now_ms, 1)
    series = {name: values[-TAIL:] for name, values in body.items() if isinstance(values, tuple)}
    skipped = len(body["lag_ms"]) - TAIL
    return {**body, **series, "begins_ms": body["begins_ms"] + skipped * SAMPLE_MS}


def _body(rows: Iterable[Row], now_ms: int, hours: int) -> dict[str, Any]:
    rows = list(rows)
    history = read_history((row for row in rows if isinstance(row, LagBlock)), now_ms, hours)
    worst = read_worst((row for row in rows if isinstance(row, WorstLags)), now_ms, hours)
    return {
        "step_s": SAMPLE_MS // 1000,
        **asdict(history),
        "worst": [{"step_s": WORST_SAMPLE_MS // 1000, **asdict(each)} for each in worst],
    }
