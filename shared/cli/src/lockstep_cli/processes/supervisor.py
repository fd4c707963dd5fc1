"""The supervisor of a run, which keeps every process alive until somebody ends it.

The decisions are in `restart_policy.py`, the processes in `service_process.py`.
"""

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

from lockstep_cli.processes.restart_policy import EndRun, decide, end_sentence
from lockstep_cli.processes.service_process import Child, answers_ready, start
from lockstep_kafka.common.asyncio_util import set_within
from lockstep_ops.exit_codes import INTERRUPTED

GRACE = timedelta(seconds=9.5)
"""The time in which services may drain. They end within nine seconds, and everything is promised within ten."""

UNCLEAN = 1
"""Exit code when a service had to be killed."""

_LAST_WORDS = timedelta(seconds=3)
"""The time in which what a service leaves behind may end. Spark's JVM ends when it sees that its driver has."""

_ASK_READY_EVERY = timedelta(milliseconds=200)

LogEvent = Callable[[str, str], None]
"""A function that takes the level and the message of an event of the run itself."""


@dataclass(frozen=True, slots=True)
class ServicePages:
    """A service, and the address of its pages."""

    service: str
    address: str


ReadLine = Callable[[str, str], ServicePages | None]
"""A function that takes a process and a line of it, and returns the pages of a service if the line has an address."""


class Supervisor:
    """All the processes of one run.

    Args:
        commands: What `python -m` starts, by process.
        services: The services in a process, by process.
        log_event: It writes an event of the run.
        read_line: It takes a line that a process wrote.
        forget: It is called with the services of a process that has ended.
    """

    def __init__(
        self,
        commands: Mapping[str, Sequence[str]],
        services: Mapping[str, Sequence[str]],
        *,
        log_event: LogEvent,
        read_line: ReadLine,
        forget: Callable[[Sequence[str]], None] = lambda _: None,
    ) -> None:
        self._commands = commands
        self._services = services
        self._log_event = log_event
        self._read_line = read_line
        self._forget = forget
        self._running: dict[str, Child] = {}
        self._ready: dict[str, float] = {}
        """The time since when each service is ready."""
        self._served: set[str] = set()
        """Processes that reported an address: they could use their configuration."""
        self._stopping = asyncio.Event()
        self._at_once = asyncio.Event()
        self._exit_code = 0
        self._started_at = 0.0
        self._all_were_ready = False

    async def run(self) -> int:
        """Start everything, keep it alive, and return the exit code once nothing is left running."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupted)
        for signal_number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(signal_number, self.stop)
        self._started_at = loop.time()
        # A thread for each service waits for its end; pidfds would do without, but only on Linux.
        with ThreadPoolExecutor(max_workers=len(self._commands), thread_name_prefix="wait") as threads:
            try:
                async with asyncio.TaskGroup() as tasks:
                    keeping = [tasks.create_task(self._keep(name, threads)) for name in self._commands]
                    tasks.create_task(self._end_when_asked(keeping))
            finally:
                for child in self._running.values():
                    child.kill()
        return self._exit_code

    def stop(self, exit_code: int = 0) -> None:
        """Let every service drain and end. The run then ends with `exit_code`. A second call changes nothing."""
        if not self._stopping.is_set():
            self._exit_code = exit_code
            self._stopping.set()

    def _interrupted(self) -> None:
        if self._stopping.is_set():
            self._at_once.set()
        self.stop()

    async def _end_when_asked(self, keeping: Sequence[asyncio.Task[None]]) -> None:
        await self._stopping.wait()
        self._log_event("info", "ending: the services drain (Ctrl-C again ends them at once)")
        for child in self._running.values():
            child.terminate()
        at_once = asyncio.ensure_future(self._at_once.wait())
        all_ended = asyncio.gather(*keeping)
        seconds = GRACE.total_seconds()
        await asyncio.wait((all_ended, at_once), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        at_once.cancel()
        if all_ended.done():
            self._log_event("info", "ended")
        elif self._at_once.is_set():
            self._exit_code = INTERRUPTED
            self._log_event("warning", f"ended at once: killed {', '.join(self._running)}")
        else:
            self._exit_code = self._exit_code or UNCLEAN
            for name in self._running:
                self._log_event("error", f"{name} did not end within {seconds:g} s of being asked to, killed")
        for child in self._running.values():
            child.kill()

    async def _keep(self, name: str, threads: ThreadPoolExecutor) -> None:
        """Start a service, again and again as `restart_policy.decide` says, until the run is stopping."""
        loop = asyncio.get_running_loop()
        crashes = 0
        while not self._stopping.is_set():
            child = await start(name, self._commands[name], threads)
            self._running[name] = child
            started_at = loop.time()
            if self._stopping.is_set():  # asked while it was being started
                child.terminate()
            exit_code = await self._watch_until_ended(child)
            ended_at = loop.time()
            del self._running[name]
            self._forget(self._services[name])
            ready_at = max(self._ready.pop(service, ended_at) for service in self._services[name])
            if self._stopping.is_set():
                if exit_code > 0:
                    self._log_event("warning", f"{name} ended with exit code {exit_code} while draining")
                return
            lived, worked = timedelta(seconds=ended_at - started_at), timedelta(seconds=ended_at - ready_at)
            decision = decide(crashes, exit_code, lived, worked, served=name in self._served)
            self._log_event("error", end_sentence(name, exit_code, decision))
            if isinstance(decision, EndRun):
                self.stop(decision.exit_code)
                return
            crashes = decision.time
            await set_within(self._stopping, decision.delay.total_seconds())

    async def _watch_until_ended(self, child: Child) -> int:
        """Listen to a service until it has ended and nothing is left of it, and return its exit code."""
        listening = asyncio.ensure_future(self._listen(child))
        try:
            exit_code = await child.ended()
            await asyncio.wait((listening,), timeout=_LAST_WORDS.total_seconds())
            if (killed := child.kill()) and not self._at_once.is_set():
                self._log_event("warning", f"{child.name} left {killed} processes behind, killed")
            # With the last holder of the output gone its end comes at once: the deadline is for one that left the
            # session.
            await asyncio.wait((listening,), timeout=_LAST_WORDS.total_seconds())
        finally:
            listening.cancel()
        return exit_code

    async def _listen(self, child: Child) -> None:
        """Read the lines of a service. Each time one has the address of pages, ask them until they are ready."""
        questions: dict[str, asyncio.Future[None]] = {}
        try:
            async for line in child.lines():
                if (pages := self._read_line(child.name, line)) is None:
                    continue
                self._served.add(child.name)
                self._ready.pop(pages.service, None)  # it has started again within its process
                if (earlier := questions.get(pages.service)) is not None:
                    earlier.cancel()
                questions[pages.service] = asyncio.ensure_future(self._ask_until_ready(pages))
        finally:
            for question in questions.values():
                question.cancel()

    async def _ask_until_ready(self, pages: ServicePages) -> None:
        while not await answers_ready(pages.address):
            await asyncio.sleep(_ASK_READY_EVERY.total_seconds())
        self._ready[pages.service] = asyncio.get_running_loop().time()
        all_services = [service for services in self._services.values() for service in services]
        if self._all_were_ready:
            self._log_event("info", f"{pages.service} is ready again")
        elif self._ready.keys() == set(all_services):
            self._all_were_ready = True
            seconds = asyncio.get_running_loop().time() - self._started_at
            self._log_event("info", f"ready: {', '.join(all_services)}, after {seconds:.1f} s")
