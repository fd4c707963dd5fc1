"""What a reader that copies nothing knows of the origins of batches."""

from typing import Any

import pytest

from lockstep_data_plane.provenance import origin_filter
from lockstep_data_plane.provenance.origin_filter import OriginFilter
from tests.support.batch_bytes import batch, records


class Rows:
    rows: tuple[()] = ()

    async def read(self) -> None: ...


class Rule:
    source = "here"

    def copies(self, origin: str) -> bool:
        return origin == self.source


async def test_origins_that_are_forgotten_are_learned_again_with_the_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origin_filter, "KNOWN_AT_MOST", 1)
    origins = object.__new__(OriginFilter)
    rows: Any = Rows()
    origins._rows, origins._copied = rows, {}
    monkeypatch.setattr(origins, "_rule", Rule)
    first, second, third = (batch(records(0, 1), producer=(number, 0, 0)) for number in (5, 6, 7))
    await origins.look_up(each for each in (first, second))
    await origins.look_up([first, third])
    assert [origins.copies(each) for each in (first, third)] == [True, True]
    assert origins._copied.keys() == {5, 7}
