"""What a slot knows of the origins of batches, for deliveries that wait behind others."""

import asyncio
from typing import Any

import pytest

from lockstep_data_plane.core.provenance import OWN
from lockstep_data_plane.provenance import origin_lookup
from lockstep_data_plane.provenance.origin_lookup import OriginLookup
from tests.support.batch_bytes import batch, records
from tests.unit.data_plane.test_origin_filter import Rows, Rule


async def test_origins_that_are_forgotten_still_decide_what_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A delivery that waits until its records are evaluated is classified after others were learnt."""
    monkeypatch.setattr(origin_lookup, "KNOWN_AT_MOST", 1)
    lookup = object.__new__(OriginLookup)
    rows: Any = Rows()
    lookup._source_origins, lookup._learning = rows, asyncio.Lock()
    lookup._origins, lookup._former_origins = {-1: OWN}, {}
    monkeypatch.setattr(lookup, "_rule", Rule)
    waits, comes = (batch(records(0, 1), producer=(number, 0, 0)) for number in (5, 6))
    await lookup.look_up([5])
    await lookup.look_up([6])
    assert [lookup.copy_producer_id(each) for each in (waits, comes)] == [OWN, OWN]
    assert lookup._origins.keys() == {-1, 6}
