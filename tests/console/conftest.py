"""A browser for the whole run, and a small fleet of flows that is written down on the shared clusters."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.conftest import Pair
from tests.support.browser import NO_BROWSER, Chromium, find_browser
from tests.support.console_process import TOKEN, ConsoleProcess
from tests.support.fleet_scene import FleetScene, FleetSize

SMALL = FleetSize(flows=2, topics=3, partitions=40)


@pytest.fixture(scope="session")
async def chromium() -> AsyncIterator[Chromium]:
    path = find_browser()
    if path is None:
        pytest.skip(NO_BROWSER)
    async with Chromium(path) as browser:
        yield browser


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory, pair: Pair) -> Iterator[FleetScene]:
    """Two flows whose slots go on."""
    if find_browser() is None:
        pytest.skip(NO_BROWSER)
    scene = FleetScene(tmp_path_factory.mktemp("fleet"), pair.a, pair.b, SMALL)
    scene.create()
    with scene.moving():
        yield scene


@pytest.fixture(scope="session")
def console(fleet: FleetScene) -> Iterator[ConsoleProcess]:
    """A console that everybody may read, and who has `TOKEN` may act on."""
    with ConsoleProcess(fleet.file, token=TOKEN) as process:
        yield process.wait_ready()
