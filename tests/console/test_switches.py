"""A drill and a switchover from the page, of a real application. The console is killed in the middle."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from tests.support.broker import Broker
from tests.support.browser import NO_BROWSER, Chromium, find_browser
from tests.support.console_page import ConsolePage
from tests.support.console_process import TOKEN, ConsoleProcess
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.switch_scene import WITHIN, SwitchScene

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

NETWORK = r"net::ERR_|Failed to load resource"
"""What a browser says about requests to a console that was killed."""


@pytest.fixture
def scene(tmp_path: Path, brokers: tuple[Broker, Broker]) -> Iterator[SwitchScene]:
    if find_browser() is None:
        pytest.skip(NO_BROWSER)
    with SwitchScene(tmp_path, *brokers).running() as running:
        yield running


def phase_of(page: ConsolePage, title: str) -> Locator:
    """Return the state that stands beside the title of a switch."""
    heading = page.page.get_by_role("heading", name=title, exact=True)
    return page.page.locator(".section-head", has=heading).locator(".state")


async def begin(page: ConsolePage, *, drill: bool) -> None:
    """Check a switchover and begin it, as soon as the check finds nothing against it."""
    form = page.page.get_by_role("button", name="Check", exact=True)
    box = page.page.get_by_role("checkbox", name=re.compile("^Drill"))
    await box.set_checked(drill)
    title = "Switch over (drill)" if drill else "Switch over"
    go = page.page.get_by_role("button", name=f"{title} ...", exact=True)

    async def can_begin() -> str | None:
        await form.click()
        await expect(page.page.get_by_text(re.compile("It can begin|It would be refused"))).to_be_visible(
            timeout=60_000
        )
        return title if await go.count() == 1 else None

    _: str = await eventually(can_begin, within=WITHIN, every=1.0, what="the check finds nothing against the switch")
    dialog = await page.act(title, label=f"{title} ...")
    await expect(dialog).to_contain_text(re.compile("lose", re.IGNORECASE))
    await dialog.get_by_role("button", name="Close").click()


async def test_drill_and_switchover_go_on_when_the_console_is_killed(chromium: Chromium, scene: SwitchScene) -> None:
    flow, port = str(scene.there), free_port()
    scene.app.go_on()
    with ConsoleProcess(scene.file, token=TOKEN, port=port) as console:
        console.wait_ready()
        async with (
            chromium.open(console.address, allowed=[NETWORK]) as one,
            chromium.open(console.address, allowed=[NETWORK], scheme="dark") as other,
        ):
            page, looker = ConsolePage(one), ConsolePage(other)
            await page.show("switch", flow)
            await looker.show("switch", flow)
            await page.sign_in(TOKEN)
            await begin(page, drill=True)
            for seen in (page, looker):
                await expect(phase_of(seen, f"Switchover (drill) of {flow}")).to_contain_text(
                    "done", timeout=WITHIN * 1000
                )
            row = scene.last()
            assert row is not None
            assert (row.drill, row.phase, scene.hooks()) == (True, "done", [])
            scene.app.go_on()

            await begin(page, drill=False)
            await eventually(lambda: "fence" in scene.hooks(), within=WITHIN, every=0.05, what="the fence is called")
            console.kill()
            console.start().wait_ready()

            def is_done() -> bool:
                row = scene.last()
                return row is not None and not row.drill and row.phase == "done"

            await eventually(is_done, within=WITHIN, every=0.5, what="the switch goes on without its console")
            for seen in (page, looker):
                await expect(phase_of(seen, f"Switchover of {flow}")).to_contain_text("done", timeout=60_000)
            # The step in which the console was killed was carried out again.
            assert list(dict.fromkeys(scene.hooks())) == ["before", "fence", "redirect", "after"]
            assert scene.is_on(scene.there.target)
            async with one.page.expect_download() as download:
                await page.page.get_by_role("button", name="Evidence as JSON").click()
            evidence = json.loads(Path(await (await download.value).path()).read_text())
            assert (evidence["phase"], evidence["lost"], evidence["late"]) == ("done", 0, 0)
        scene.app.go_on()
    scene.app.stop_when_read()
    assert scene.app.read_twice == {}
