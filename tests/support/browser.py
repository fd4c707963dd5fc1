"""Debian's Chromium with the console in it, driven by Playwright: what somebody sees and does.

A page keeps what no page of the console may do. These are an error on the browser's console, an exception, a dialog of
the browser, a breach of the content security policy and a request to another host. `WatchedPage.check` raises for them.
"""

import gzip
import hashlib
import os
import re
import shutil
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Request, async_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
NO_BROWSER = "no browser: install Debian's package chromium, or name a Chromium with the variable CHROMIUM"
ARGUMENTS = (
    "--no-sandbox",  # containers and continuous integration run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # what leads elsewhere fails, whatever asked for it
)
REPORTED_BREACH = "content security policy: "
REPORT_BREACHES = f"""
document.addEventListener("securitypolicyviolation", (breach) =>
  console.error("{REPORTED_BREACH}" + breach.violatedDirective + " " + breach.blockedURI));
"""
AXE = Path(__file__).parent / "axe" / "axe.min.js.gz"
AXE_SHA256 = "66a8aaa95a8b044a7fd74a5435873bf04ff65a1ca75567c921b7509742085a14"
SERIOUS = ("serious", "critical")

Scheme = Literal["light", "dark"]


@dataclass(frozen=True, slots=True)
class Screen:
    """The size of a window in CSS pixels."""

    width: int
    height: int


DESKTOP, PHONE = Screen(1280, 800), Screen(360, 740)


def find_browser() -> str | None:
    """Return the path of a Chromium on this machine; None: there is none."""
    named = os.environ.get("CHROMIUM")
    return next((path for name in ([named] if named else NAMES) if (path := shutil.which(name))), None)


class WatchedPage:
    """A page of a browser, and what went wrong in it. Use it within `Chromium.open`."""

    def __init__(self, page: Page, address: str) -> None:
        """`address`: the only host that the page may ask for anything."""
        self.page = page
        self.address = address
        self.faults: list[str] = []
        self.requested: list[str] = []
        """The address of each request, in order."""
        self._allowed: list[re.Pattern[str]] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.faults.append(f"exception: {error}"))
        page.on("request", self._see_request)
        page.on("dialog", self._dismiss)

    def allow(self, *patterns: str) -> None:
        """Let faults pass that match one of these regular expressions: the test provokes them."""
        self._allowed += map(re.compile, patterns)

    async def go(self, path: str = "/", **options: Any) -> Self:
        """Open a path of the console. Links of the console are fragments, which need no answer."""
        await self.page.goto(f"{self.address}{path}", **options)
        return self

    def check(self) -> None:
        """Raise AssertionError with each fault that was not allowed."""
        faults = [fault for fault in self.faults if not any(allowed.search(fault) for allowed in self._allowed)]
        assert not faults, "\n".join(faults)

    async def text(self) -> str:
        """Return what the page shows as text."""
        return await self.page.locator("body").inner_text()

    async def accessibility_faults(self) -> Sequence[str]:
        """Return what axe-core finds that is serious or critical, one line for each element.

        The page has to be opened with `bypass_csp`, for axe-core comes from the test.
        """
        await self.page.add_script_tag(content=axe_source())
        found: Mapping[str, Any] = await self.page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{violation['id']} ({violation['impact']}): {' '.join(map(str, node['target']))}: {node['html'][:200]}"
            for violation in found["violations"]
            if violation["impact"] in SERIOUS
            for node in violation["nodes"]
        ]

    async def scrolls_sideways(self) -> bool:
        """Return whether the page is wider than its window."""
        wider: bool = await self.page.evaluate(
            "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )
        return wider

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _see_request(self, request: Request) -> None:
        self.requested.append(request.url)
        if not is_of(request.url, self.address):
            self.faults.append(f"request to another host: {request.url}")

    async def _dismiss(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        await dialog.dismiss()


def is_of(url: str, address: str) -> bool:
    """Return whether a URL is of this scheme, host and port, or has its content in itself."""
    asked, own = urlsplit(url), urlsplit(address)
    return asked.scheme in ("data", "blob", "about") or (asked.scheme, asked.netloc) == (own.scheme, own.netloc)


class Chromium:
    """A browser without a window and with a profile of its own. An async context manager."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._ends = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as ends:
            playwright = await ends.enter_async_context(async_playwright())
            self._browser: Browser = await playwright.chromium.launch(executable_path=self._path, args=[*ARGUMENTS])
            ends.push_async_callback(self._browser.close)
            self._ends = ends.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._ends.aclose()

    @property
    def version(self) -> str:
        return self._browser.version

    @asynccontextmanager
    async def open(
        self,
        address: str,
        *,
        scheme: Scheme = "light",
        screen: Screen = DESKTOP,
        bypass_csp: bool = False,
        allowed: Collection[str] = (),
        **options: Any,
    ) -> AsyncIterator[WatchedPage]:
        """Yield an empty page of a session of its own. At its end the page is checked, unless the test failed."""
        context: BrowserContext = await self._browser.new_context(
            viewport={"width": screen.width, "height": screen.height},
            color_scheme=scheme,
            reduced_motion="reduce",
            bypass_csp=bypass_csp,
            locale="en-GB",
            timezone_id="UTC",
            **options,
        )
        try:
            await context.add_init_script(REPORT_BREACHES)
            watched = WatchedPage(await context.new_page(), address)
            watched.allow(*allowed)
            try:
                yield watched
            except BaseException:
                print(f"--- the page\n{await _last_text(watched)}\n--- its faults\n" + "\n".join(watched.faults))  # noqa: T201 - for whoever reads the failure
                raise
            watched.check()
        finally:
            await context.close()


async def _last_text(watched: WatchedPage) -> str:
    """Return what the page shows, or why that cannot be read: it is about a test that failed already."""
    try:
        return (await watched.page.locator("body").inner_text(timeout=2_000))[:3_000]
    except Exception as exc:  # noqa: BLE001 - the failure of the test is what counts
        return repr(exc)


def axe_source() -> str:
    """Return axe-core as one script. Raises AssertionError if it is not the one that was taken from its registry."""
    script = gzip.decompress(AXE.read_bytes())
    assert hashlib.sha256(script).hexdigest() == AXE_SHA256, f"{AXE} is not as it was taken: see README.md beside it"
    return script.decode()
