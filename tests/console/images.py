"""`make console-images`: the screens of the console as docs/images has them, of the demo's flows.

Each is written as WebP of at most 60 kB. With a folder as its argument, it writes PNG files there instead.
"""

import asyncio
import base64
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.browser import DESKTOP, NO_BROWSER, PHONE, Chromium, Scheme, Screen, find_browser
from tests.support.clusters import delete_records, end_offsets
from tests.support.commands import lockstep
from tests.support.console_page import ConsolePage
from tests.support.console_process import TOKEN, ConsoleProcess
from tests.support.demo_stage import DemoStage
from tests.support.eventually import wait_until
from tests.support.source_modules import REPOSITORY
from tools.demo.scene import FLOWS

FOLDER = REPOSITORY / "docs" / "images"
MOST_BYTES = 60_000
QUALITIES = (80, 60, 40)
HALTED = "payments"
TRAFFIC_S = 60.0
"""Seconds of traffic before the first image: charts and sparklines have something to show."""


@dataclass(frozen=True, slots=True)
class Image:
    """One screen as it is kept. `press`: the button that is pressed before; `named`: its name, if not the screen's."""

    screen: str
    scheme: Scheme = "light"
    window: Screen = DESKTOP
    press: str = ""
    named: str = ""

    @property
    def name(self) -> str:
        size = "-phone" if self.window is PHONE else ""
        return f"console-{self.named or self.screen}{size}{'-dark' if self.scheme == 'dark' else ''}"


IMAGES = (
    Image("overview"),
    Image("overview", "dark"),
    Image("overview", window=PHONE),
    Image("flow", press="1 h"),
    Image("flow", "dark", PHONE, press="1 h"),
    Image("partitions"),
    Image("topics", "dark"),
    Image("groups"),
    Image("switch"),
    Image("verify"),
    Image("plan", "dark"),
    Image("events"),
    Image("records"),
    Image("clusters"),
)
DECIDING = (Image("overview", named="decision"), Image("overview", "dark", press="Skip", named="deciding"))
"""With a partition that is halted."""


async def encoded(page: ConsolePage, kind: str, quality: int) -> bytes:
    """Return what the window shows, as `webp` or `png`."""
    session = await page.page.context.new_cdp_session(page.page)
    wanted = {"format": kind} | ({"quality": quality} if kind == "webp" else {})
    answer = await session.send("Page.captureScreenshot", wanted)
    await session.detach()
    return base64.b64decode(answer["data"])


async def write(folder: Path, kind: str, image: Image, page: ConsolePage) -> None:
    """Write an image with the best quality with which it is small enough. Raises ValueError if none is."""
    for quality in QUALITIES:
        content = await encoded(page, kind, quality)
        if kind == "png" or len(content) <= MOST_BYTES:
            (folder / f"{image.name}.{kind}").write_bytes(content)
            sys.stdout.write(f"{folder / image.name}.{kind}: {len(content):,} bytes\n")
            return
    raise ValueError(f"{image.name} has {len(content):,} bytes")


def halt_partitions(stage: DemoStage) -> None:
    """Take the next records of a topic from the source while it is not copied."""
    flow, broker = stage.flows[str(FLOWS[0])], stage.brokers[FLOWS[0].source]
    scope = f"topic:{HALTED}"
    lockstep("pause", stage.file, scope, "--flow", str(flow), "--wait")
    time.sleep(2)
    for partition, end in end_offsets(broker.bootstrap, HALTED).items():
        delete_records(broker.bootstrap, HALTED, end, partition)
    lockstep("resume", stage.file, scope, "--flow", str(flow))
    wait_until(
        lambda: any(row.phase == "halted" for row in flow.progress(HALTED).values()), every=0.5, what="it is halted"
    )


async def write_all(path: str, folder: Path, kind: str, console: ConsoleProcess, images: Sequence[Image]) -> None:
    """Write these images. Raises ValueError, and AssertionError if a page breaks a rule."""
    async with Chromium(path) as chromium:
        for image in images:
            async with chromium.open(console.address, scheme=image.scheme, screen=image.window) as watched:
                page = ConsolePage(watched)
                await page.show(image.screen, str(FLOWS[0]))
                await page.sign_in(TOKEN)
                await page.page.get_by_role("dialog").wait_for(state="detached")
                await page.settle()
                if image.press:
                    await page.page.get_by_role("button", name=re.compile(image.press)).first.click()
                await asyncio.sleep(3)
                await page.page.mouse.move(0, 0)
                await write(folder, kind, image, page)


def main(arguments: list[str]) -> int:
    path = find_browser()
    if path is None:
        sys.stderr.write(f"{NO_BROWSER}\n")
        return 2
    folder, kind = (Path(arguments[0]), "png") if arguments else (FOLDER, "webp")
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="lockstep-demo-") as work,
        DemoStage(Path(work)) as stage,
        ConsoleProcess(stage.file, token=TOKEN) as console,
    ):
        console.wait_ready()
        time.sleep(TRAFFIC_S)
        flow = str(FLOWS[0])
        lockstep("verify", "run", stage.file, "--flow", flow)
        evidence = Path(work, "evidence")
        lockstep("switchover", stage.file, "--flow", flow, "--drill", "--allow-not-ready", "--evidence", evidence)
        time.sleep(TRAFFIC_S / 4)
        asyncio.run(write_all(path, folder, kind, console, IMAGES))
        halt_partitions(stage)
        asyncio.run(write_all(path, folder, kind, console, DECIDING))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
