"""A slot that compares reads as many bytes a second as it may, of all partitions together."""

import time

from lockstep_data_plane.verify.log_comparison import ReadLimit


async def seconds(limit: ReadLimit, *sizes: int) -> float:
    began = time.monotonic()
    for size in sizes:
        await limit.count(size)
    return time.monotonic() - began


async def test_limit_pauses_for_what_is_over_it() -> None:
    limit = ReadLimit(1_000_000)
    assert await seconds(limit, 1_000_000) < 0.1, "what was left unused in a second"
    assert 0.2 <= await seconds(limit, 100_000, 150_000) < 0.6


async def test_no_limit_never_pauses() -> None:
    assert await seconds(ReadLimit(None), 10**12) < 0.1


async def test_changed_limit_holds_from_then_on() -> None:
    limit = ReadLimit(1)
    limit.change(None)
    assert await seconds(limit, 10**12) < 0.1
    limit.change(1_000_000)
    await limit.count(1_000_000)
    limit.change(1_000_000)
    assert await seconds(limit, 200_000) >= 0.1, "the same limit goes on"
