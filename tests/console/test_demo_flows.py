"""The flows of the demo as they are seen: they move, and nobody loads the page again."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from tests.support.browser import NO_BROWSER, Chromium, find_browser
from tests.support.console_page import ConsolePage
from tests.support.console_process import ConsoleProcess
from tests.support.demo_stage import DemoStage
from tests.support.eventually import eventually
from tools.demo.scene import FLOWS, GROUP

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


async def number_in(cell: Locator) -> int:
    return int(re.sub(r"\D", "", await cell.inner_text()) or -1)


async def test_flows_of_the_demo_are_seen_moving(chromium: Chromium, tmp_path: Path) -> None:
    if find_browser() is None:
        pytest.skip(NO_BROWSER)
    with DemoStage(tmp_path) as stage, ConsoleProcess(stage.file) as console:
        console.wait_ready()
        async with chromium.open(console.address) as watched:
            page = ConsolePage(watched)
            await page.show("overview")
            for flow in FLOWS:
                card = page.page.locator("li.flow-line", has=page.page.get_by_role("link", name=str(flow), exact=True))
                await expect(card).to_contain_text(re.compile(rf"{flow}: (fine|behind|.* topics)"), timeout=60_000)
            await page.show("partitions", str(FLOWS[0]))
            row = page.page.get_by_role("row", name=re.compile("orders-0"))
            titles = [title.strip() for title in await page.page.locator("thead th").all_inner_texts()]
            cell = row.locator("th, td").nth(next(n for n, title in enumerate(titles) if title.startswith("Copied to")))
            begun = await number_in(cell)
            asked = len(watched.requested)

            async def moved() -> int | None:
                copied_to = await number_in(cell)
                return copied_to if copied_to > begun else None

            _: int = await eventually(moved, within=30, every=0.25, what="the copy of orders-0 moves on the page")
            assert all("/api/v1/" in request for request in watched.requested[asked:]), "the page is not loaded again"
            await page.show("groups", str(FLOWS[0]))
            await page.sees(GROUP)
            await page.sees(re.compile("exact|behind"))
            await page.show("events", str(FLOWS[0]))
            await page.sees("TopicCreated" if await page.page.get_by_text("TopicCreated").count() else "opic created")
            await watched.go(f"/#/flows/{FLOWS[0].source}-%3E{FLOWS[0].target}/records?topic=checkpoints")
            await page.settle()
            await page.sees(GROUP)
