"""Fetchers of `fetch_scene.py`."""

from collections.abc import AsyncIterator

import pytest

from lockstep_config.flow.model import FetchSettings
from lockstep_data_plane.fetch.fetcher import Fetcher
from tests.unit.data_plane.fetch_scene import fetcher_with


@pytest.fixture
async def fetcher() -> AsyncIterator[Fetcher]:
    """With a rack."""
    made = fetcher_with(FetchSettings(rack="here"))
    yield made
    await made.close()


@pytest.fixture
async def rackless() -> AsyncIterator[Fetcher]:
    made = fetcher_with(FetchSettings())
    yield made
    await made.close()
