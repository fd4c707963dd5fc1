"""Keep every service of a run alive until somebody ends it (decisions: `restart_policy.py`; processes:
`service_process.py`)."""

import asyncio
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from lockstep_cli.exit_codes import INTERRUPTED
from lockstep_cli.restart_policy import EndRun, decide, ending
from lockstep_cli.service_process import Child, answers_ready, start
from lockstep_runtime.util.asyncio_util import set_within, unless_set

GRACE = timedelta(seconds=9.5)
"""How long services may drain: they end within nine seconds, and everything together is promised within ten."""

UNCLEAN = 1
"""Exit code when a service had to be killed."""

_LAST_WORDS = timedelta(seconds=3)
"""How long what a service leaves behind may take to end: Spark's JVM ends when it sees that its driver has."""

_ASK_READY_EVERY = timedelta(milliseconds=200)

_NEXT_AFTER = timedelta(seconds=5)
"""How long a service may keep the next one waiting at the start. All at once, they and Spark's JVM would only compete
for the cores. One after the other, as soon as each is under way, all are there sooner, and so is the first record."""

Say = Callable[[str, str], None]
"""(level, message): one event of the run itself."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a line of a service says to the run. `address`: where its pages are, if the line has it. `under_way`: the
    most costly part of its start is over."""

    address: str | None = None
    under_way: bool = False


Hear = Callable[[str, str], Heard]
"""(service, line): takes a line that a service wrote."""


class Supervisor:
    """All the services of one run. `commands` maps a service to what `python -m` starts for it, in the order in which
    they start. `together`: services that start with the one before them."""

    def __init__(
        self, commands: Mapping[str, Sequence[str]], *, say: Say, hear: Hear, together: Collection[str] = ()
    ) -> None:
        self._commands = commands
        self._together = together
        self._say = say
        self._hear = hear
        self._running: dict[str, Child] = {}
        self._ready: dict[str, float] = {}
        self._served: set[str] = set()
        """Services that reported an address: they could use their configuration."""
        self._turns = {name: asyncio.Event() for name in commands}
        self._under_way = {name: asyncio.Event() for name in commands}
        self._stopping = asyncio.Event()
        self._at_once = asyncio.Event()
        self._exit_code = 0
        self._started_at = 0.0
        self._all_were_ready = False

    async def run(self) -> int:
        """Start everything, keep it alive, and return the exit code once nothing is left running."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupted)
        for asked in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(asked, self.stop)
        self._started_at = loop.time()
        # A thread for each service waits for its end; pidfds would do without, but only on Linux.
        with ThreadPoolExecutor(max_workers=len(self._commands), thread_name_prefix="wait") as threads:
            try:
                async with asyncio.TaskGroup() as tasks:
                    keeping = [tasks.create_task(self._keep(name, threads)) for name in self._commands]
                    tasks.create_task(self._end_when_asked(keeping))
                    tasks.create_task(unless_set(self._stopping, self._give_turns()))
            finally:
                for child in self._running.values():
                    child.kill()
        return self._exit_code

    def stop(self, exit_code: int = 0) -> None:
        """Let every service drain and end; the run then ends with `exit_code`. A second call changes nothing."""
        if not self._stopping.is_set():
            self._exit_code = exit_code
            self._stopping.set()

    def _interrupted(self) -> None:
        if self._stopping.is_set():
            self._at_once.set()
        self.stop()

    async def _end_when_asked(self, keeping: Sequence[asyncio.Task[None]]) -> None:
        await self._stopping.wait()
        self._say("info", "ending: the services drain (Ctrl-C again ends them at once)")
        for child in self._running.values():
            child.terminate()
        at_once = asyncio.ensure_future(self._at_once.wait())
        all_ended = asyncio.gather(*keeping)
        seconds = GRACE.total_seconds()
        await asyncio.wait((all_ended, at_once), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        at_once.cancel()
        if all_ended.done():
            self._say("info", "ended")
        elif self._at_once.is_set():
            self._exit_code = INTERRUPTED
            self._say("warning", f"ended at once: killed {', '.join(self._running)}")
        else:
            self._exit_code = self._exit_code or UNCLEAN
            for name in self._running:
                self._say("error", f"{name} did not end within {seconds:g} s of being asked to, killed")
        for child in self._running.values():
            child.kill()

    async def _keep(self, name: str, threads: ThreadPoolExecutor) -> None:
        """Start a service, again and again as `restart_policy.decide` says, until the run is stopping."""
        loop = asyncio.get_running_loop()
        crashes = 0
        await unless_set(self._stopping, self._turns[name].wait())
        while not self._stopping.is_set():
            child = await start(name, self._commands[name], threads)
            self._running[name] = child
            started_at = loop.time()
            if self._stopping.is_set():  # asked while it was being started
                child.terminate()
            exit_code = await self._watch_until_ended(child)
            ended_at = loop.time()
            self._under_way[name].set()
            del self._running[name]
            ready_at = self._ready.pop(name, ended_at)
            if self._stopping.is_set():
                if exit_code > 0:
                    self._say("warning", f"{name} ended with exit code {exit_code} while draining")
                return
            lived, worked = timedelta(seconds=ended_at - started_at), timedelta(seconds=ended_at - ready_at)
            decision = decide(crashes, exit_code, lived, worked, served=name in self._served)
            self._say("error", ending(name, exit_code, decision))
            if isinstance(decision, EndRun):
                self.stop(decision.exit_code)
                return
            crashes = decision.time
            await set_within(self._stopping, decision.delay.total_seconds())

    async def _give_turns(self) -> None:
        """Let each service start once those before it are under way, have ended, or have had their time."""
        before: list[str] = []
        for name in self._commands:
            if name not in self._together:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_NEXT_AFTER.total_seconds()):
                        for other in before:
                            await self._under_way[other].wait()
                before.clear()
            self._turns[name].set()
            before.append(name)

    async def _watch_until_ended(self, child: Child) -> int:
        """Listen to a service until it has ended and nothing is left of it; returns its exit code."""
        listening = asyncio.ensure_future(self._listen(child))
        try:
            exit_code = await child.ended()
            await asyncio.wait((listening,), timeout=_LAST_WORDS.total_seconds())
            if (left := child.kill()) and not self._at_once.is_set():
                self._say("warning", f"{child.name} left {left} processes behind, killed")
            # With the last holder of the output gone its end comes at once: the deadline is for one that left the
            # session.
            await asyncio.wait((listening,), timeout=_LAST_WORDS.total_seconds())
        finally:
            listening.cancel()
        return exit_code

    async def _listen(self, child: Child) -> None:
        asking: asyncio.Future[None] | None = None
        try:
            async for line in child.lines():
                heard = self._hear(child.name, line)
                if heard.under_way:
                    self._under_way[child.name].set()
                if heard.address and asking is None:
                    self._served.add(child.name)
                    asking = asyncio.ensure_future(self._ask_until_ready(child.name, heard.address))
        finally:
            if asking is not None:
                asking.cancel()

    async def _ask_until_ready(self, name: str, address: str) -> None:
        while not await answers_ready(address):
            await asyncio.sleep(_ASK_READY_EVERY.total_seconds())
        self._ready[name] = asyncio.get_running_loop().time()
        if self._all_were_ready:
            self._say("info", f"{name} is ready again")
        elif self._ready.keys() == self._commands.keys():
            self._all_were_ready = True
            seconds_s = asyncio.get_running_loop().time() - self._started_at
            self._say("info", f"ready: {', '.join(self._commands)}, after {seconds_s:.1f} s")
