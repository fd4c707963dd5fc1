"""The seeds' resources become what is kept in `golden`."""

from pathlib import Path

import pytest

from tests.chart.golden import OUTLINES, WHOLE, golden, outlines, whole
from tests.chart.helm import NEEDS_PINNED_HELM

pytestmark = NEEDS_PINNED_HELM

STALE = "look at what changed, and write it anew: python -m tests.chart.golden"


@pytest.mark.parametrize("seed", WHOLE, ids=lambda seed: seed.stem)
def test_everything_of_a_seed(seed: Path) -> None:
    assert whole(seed) == golden(seed).read_text(), STALE


def test_the_outline_of_every_seed() -> None:
    assert len(WHOLE) == 4
    assert outlines() == OUTLINES.read_text(), STALE
