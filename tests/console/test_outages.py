"""A cluster or the console goes away: an open page says so within five seconds, and goes on when it is back."""

import re
import time
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.support.broker import Broker
from tests.support.browser import NO_BROWSER, Chromium, find_browser
from tests.support.console_page import ConsolePage
from tests.support.console_process import ConsoleProcess
from tests.support.fleet_scene import FleetScene, FleetSize
from tests.support.ports import free_port

pytestmark = pytest.mark.long

SAYS_WITHIN_S = 5.0
BACK_WITHIN_S = 60.0
AWAY = re.compile("cannot be reached|does not answer|unknown|not known", re.IGNORECASE)
NETWORK = r"net::ERR_|Failed to load resource"


@pytest.fixture
def scene(tmp_path: Path, brokers: tuple[Broker, Broker]) -> FleetScene:
    """A flow between clusters of the test's own, which nobody moves: its target may be away."""
    if find_browser() is None:
        pytest.skip(NO_BROWSER)
    made = FleetScene(tmp_path, *brokers, FleetSize(flows=1, topics=1, partitions=3))
    made.create()
    return made


@pytest.mark.parametrize("side", ["source", "target"])
async def test_page_says_that_a_broker_is_gone_and_that_it_is_back(
    chromium: Chromium, scene: FleetScene, side: str
) -> None:
    broker = scene.a if side == "source" else scene.b
    alias = scene.flows[0].source if side == "source" else scene.flows[0].target
    gone = re.compile(rf"cluster {alias}\b.*(cannot be reached|does not answer)", re.IGNORECASE)
    with ConsoleProcess(scene.file) as console:
        console.wait_ready()
        async with chromium.open(console.address) as watched:
            page = ConsolePage(watched)
            await page.show("overview")
            await expect(page.page.locator("body")).not_to_contain_text(gone)
            broker.kill()
            began = time.monotonic()
            await page.sees(gone, within_s=30)
            took = time.monotonic() - began
            if side == "target":
                await page.sees(re.compile(r"unknown for \d+ s"))
            broker.start()
            await expect(page.page.locator("body")).not_to_contain_text(gone, timeout=BACK_WITHIN_S * 1000)
        print(f"the page said that the {side} is gone after {took:.1f} s")  # noqa: T201 - a figure, for who runs it with -s
        assert took <= SAYS_WITHIN_S


async def test_page_says_that_the_console_is_gone_and_goes_on_with_the_next_one(
    chromium: Chromium, scene: FleetScene
) -> None:
    port = free_port()
    with ConsoleProcess(scene.file, port=port) as console:
        console.wait_ready()
        async with chromium.open(console.address, allowed=[NETWORK]) as watched:
            page = ConsolePage(watched)
            await page.show("overview")
            banner = page.page.get_by_text(re.compile("does not answer|has ended the stream|has sent nothing"))
            await expect(banner).to_have_count(0)
            console.kill()
            await expect(banner.first).to_be_visible(timeout=SAYS_WITHIN_S * 1000)
            console.start().wait_ready()
            await expect(banner).to_have_count(0, timeout=BACK_WITHIN_S * 1000)
