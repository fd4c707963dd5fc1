"""What somebody does in the console, in words of its screens. Elements are named as a screen reader names them."""

import re
from collections.abc import Mapping
from urllib.parse import quote

from playwright.async_api import Locator, Page, expect

from tests.support.browser import WatchedPage

PATIENCE_MS = 20_000
FLOW_SCREENS: Mapping[str, str] = {
    "flow": "",
    "partitions": "/partitions",
    "topics": "/topics",
    "groups": "/groups",
    "switch": "/switch",
    "verify": "/verify",
    "plan": "/plan",
    "events": "/events",
    "records": "/records",
}
"""The screens of a flow, by their names, with what follows the flow in their addresses."""

READING = re.compile(r"Reading [a-z ]*\.\.\.")
"""What stands where something is being read."""


def address_of(screen: str, flow: str) -> str:
    """Return the path of a screen: `overview`, `clusters`, or one of a flow."""
    if screen in FLOW_SCREENS:
        return f"/#/flows/{quote(flow, safe='')}{FLOW_SCREENS[screen]}"
    return "/#/" if screen == "overview" else f"/#/{screen}"


class ConsolePage:
    """The console in a page."""

    def __init__(self, watched: WatchedPage) -> None:
        self.watched = watched
        self.page: Page = watched.page

    async def show(self, screen: str, flow: str = "") -> None:
        """Open a screen, and wait until all of it is read."""
        await self.watched.go(address_of(screen, flow))
        await self.settle()

    async def settle(self) -> None:
        """Wait until there is a heading and nothing is being read."""
        await expect(self.page.locator("h1").first).to_be_visible(timeout=PATIENCE_MS)
        await expect(self.page.locator("body")).not_to_contain_text(READING, timeout=PATIENCE_MS)

    async def sees(self, text: str | re.Pattern[str], *, within_s: float = PATIENCE_MS / 1000) -> None:
        """Wait until the page shows a text."""
        await expect(self.page.locator("body")).to_contain_text(
            text, timeout=within_s * 1000, ignore_case=isinstance(text, str) or None
        )

    async def sign_in(self, token: str) -> None:
        """Type a token into the dialog that a button opens which needs one."""
        await self.page.get_by_role("button", name="Sign in").first.click()
        dialog = self.page.get_by_role("dialog", name="Sign in")
        await dialog.get_by_label("Token").fill(token)
        await dialog.get_by_role("button", name="Sign in").click()

    async def act(self, title: str, *, within: Locator | None = None, label: str = "") -> Locator:
        """Press a button, confirm what it does, and send it. Return the dialog, which shows the outcome as it comes.

        `label`: that of the button, if it is not the dialog's title.
        """
        await (within or self.page.locator("main")).get_by_role("button", name=label or title, exact=True).first.click()
        dialog = self.page.get_by_role("dialog", name=title)
        await expect(dialog).to_contain_text("It loses")
        typed = dialog.get_by_role("textbox")
        if await typed.count():
            await typed.fill(await dialog.locator("label strong").inner_text())
        else:
            await dialog.get_by_role("checkbox").check()
        await dialog.get_by_role("button", name=title, exact=True).click()
        return dialog

    async def focused(self) -> str:
        """Return the name of the element that the keyboard is at."""
        name: str = await self.page.evaluate(
            """() => {
              const at = document.activeElement;
              const named = at.getAttribute("aria-label") || at.innerText || "";
              return (named || (at.labels && at.labels[0] ? at.labels[0].innerText : "") || at.tagName).trim();
            }"""
        )
        return name

    async def tab_to(self, name: str | re.Pattern[str], *, most: int = 120) -> None:
        """Press Tab until the keyboard is at an element with this name. Raises AssertionError if none has it."""
        seen = []
        for _ in range(most):
            await self.page.keyboard.press("Tab")
            seen.append(await self.focused())
            if seen[-1] == name if isinstance(name, str) else name.search(seen[-1]):
                return
        raise AssertionError(f"the keyboard does not reach {name}: {seen}")
