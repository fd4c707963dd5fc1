"""10,000 partitions in 40 flows: the page shows them, and only the rows in sight exist."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.support.browser import NO_BROWSER, Chromium, find_browser
from tests.support.console_page import ConsolePage
from tests.support.console_process import ConsoleProcess
from tests.support.fleet_scene import FleetScene, FleetSize, large_brokers

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

SIZE = FleetSize(flows=40, topics=10, partitions=25)
MOST_ROWS = 80
SHOWN_WITHIN_MS = 120_000


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[FleetScene]:
    if find_browser() is None:
        pytest.skip(NO_BROWSER)
    with large_brokers() as (a, b):
        scene = FleetScene(tmp_path, a, b, SIZE)
        scene.create()
        with scene.moving(every_s=2.0, share=0.1):
            yield scene


async def test_flows_and_partitions_of_a_large_fleet_are_shown(chromium: Chromium, fleet: FleetScene) -> None:
    flow = str(fleet.flows[-1])
    of_a_flow = SIZE.topics * SIZE.partitions
    with ConsoleProcess(fleet.file) as console:
        console.wait_ready(120)
        async with chromium.open(console.address) as watched:
            page = ConsolePage(watched)
            await page.show("overview")
            await expect(page.page.locator("li.flow-line")).to_have_count(SIZE.flows)
            await expect(page.page.locator("li.flow-line", has_text=f"{flow}:")).to_be_visible(timeout=SHOWN_WITHIN_MS)
            await page.show("partitions", flow)
            table = page.page.get_by_role("region", name="Partitions")
            await expect(table.locator("table")).to_have_attribute("aria-rowcount", str(of_a_flow + 1))
            assert await table.locator("tbody tr").count() < MOST_ROWS
            await table.evaluate("region => { region.scrollTop = region.scrollHeight; }")
            last = table.locator(f'tr[aria-rowindex="{of_a_flow + 1}"]')
            await expect(last).to_contain_text("load-")
            assert await table.locator("tbody tr").count() < MOST_ROWS
            await page.page.get_by_label("Filter by name").fill("load-03-24")
            await expect(table.locator("table")).to_have_attribute("aria-rowcount", "2")
