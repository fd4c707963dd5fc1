"""`make console-figures`: what a console of 10,000 partitions in 40 flows takes, in its process and in a browser.

The rows, topics and clusters are real, and no service runs. What is measured is printed; nothing is asserted.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from playwright.async_api import expect

from tests.support.browser import NO_BROWSER, Chromium, find_browser
from tests.support.console_page import ConsolePage
from tests.support.console_process import ConsoleProcess
from tests.support.fleet_scene import FleetScene, FleetSize, large_brokers

SIZE = FleetSize(flows=40, topics=10, partitions=25)
LOADS = 5
SETTLED_AFTER_S = 30.0
MEASURED_S = 30.0
MIB = 1 << 20
PAINT = """() => performance.getEntriesByName("first-contentful-paint").map((entry) => entry.startTime)[0]"""


@dataclass(frozen=True, slots=True)
class CpuUse:
    """The processor time of processes up to now, in seconds."""

    processes: Sequence[psutil.Process]
    seconds: float
    at: float

    @classmethod
    def of(cls, processes: Sequence[psutil.Process]) -> "CpuUse":
        alive = [process for process in processes if process.is_running()]
        used = sum(times.user + times.system for times in (process.cpu_times() for process in alive))
        return cls(alive, used, time.monotonic())

    def share_since(self) -> float:
        """Return the share of one core that was used since, in percent."""
        later = CpuUse.of(self.processes)
        return 100 * (later.seconds - self.seconds) / (later.at - self.at)


def browser_processes() -> list[psutil.Process]:
    """Return the processes of the browser that this process has started."""
    return [child for child in psutil.Process().children(recursive=True) if "chrom" in child.name()]


async def measure_share(processes: Sequence[psutil.Process]) -> float:
    use = CpuUse.of(processes)
    await asyncio.sleep(MEASURED_S)
    return use.share_since()


async def measure_loads(chromium: Chromium, console: ConsoleProcess) -> tuple[list[float], list[float]]:
    """Return the milliseconds to the first paint, and to a line for each flow, of some loads without a cache."""
    paints, wholes = [], []
    for _ in range(LOADS):
        async with chromium.open(console.address) as watched:
            began = time.perf_counter()
            await watched.go("/")
            await expect(watched.page.locator("li.flow-line")).to_have_count(SIZE.flows, timeout=60_000)
            wholes.append(1000 * (time.perf_counter() - began))
            paints.append(float(await watched.page.evaluate(PAINT)))
    return paints, wholes


async def measure(path: str, fleet: FleetScene) -> None:
    def say(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    began = time.monotonic()
    with ConsoleProcess(fleet.file) as console:
        console.wait_ready(300)
        say(f"console: every flow was read {time.monotonic() - began:.1f} s after its start")
        process = psutil.Process(console.pid)
        await asyncio.sleep(SETTLED_AFTER_S)
        say(f"console: {await measure_share([process]):.1f} % of a core when nobody looks")
        say(f"console: {process.memory_info().rss / MIB:.0f} MiB resident")
        async with Chromium(path) as chromium:
            say(f"browser: {chromium.version}")
            paints, wholes = await measure_loads(chromium, console)
            for what, took in (("first paint", paints), ("a line for each flow", wholes)):
                say(f"browser: {what} after {statistics.median(took):.0f} ms (most {max(took):.0f} ms, {LOADS} loads)")
            for screen in ("overview", "partitions"):
                async with chromium.open(console.address) as watched:
                    await ConsolePage(watched).show(screen, str(fleet.flows[0]))
                    await asyncio.sleep(SETTLED_AFTER_S / 3)
                    used, served = await asyncio.gather(measure_share(browser_processes()), measure_share([process]))
                    say(f"browser: {used:.1f} % of a core with {screen} open and live; the console {served:.1f} %")
            say(f"console: {process.memory_info().rss / MIB:.0f} MiB resident afterwards")


def main() -> int:
    path = find_browser()
    if path is None:
        sys.stderr.write(f"{NO_BROWSER}\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="lockstep-console-") as folder, large_brokers() as (a, b):
        fleet = FleetScene(Path(folder), a, b, SIZE)
        fleet.create()
        with fleet.moving(every_s=1.0, share=0.1):
            asyncio.run(measure(path, fleet))
    return 0


if __name__ == "__main__":
    sys.exit(main())
