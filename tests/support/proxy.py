"""A TCP proxy in front of a broker whose connections can be cut, delayed and held on demand.

It runs an event loop in a thread of its own, so that sync and async tests use it alike: every method returns once it
has taken effect. Bytes are forwarded untouched, but for `announce`. What is *held* waits in the proxy: it is delivered
by `heal()`, and lost if the connection is cut first. Holding the answers and then cutting leaves requests of unknown
outcome.
"""

import asyncio
import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeVar

from tests.support.announced_versions import AnnouncedVersions

T = TypeVar("T")
CHUNK = 64 * 1024
IN_TRANSIT = 256  # chunks per direction that may be under way: 16 MiB, more than a client has in flight


@dataclass(eq=False)
class _Direction:
    """One way through the proxy, for all connections together."""

    flows: asyncio.Event
    delay: float = 0.0
    passed: int = 0


@dataclass(eq=False)
class _Requests:
    """Finds the requests in what a client sends. Each has its length, four bytes, and the key of its API, two."""

    _left: int = 0
    """Bytes of the present request that are still to come."""
    _head: bytes = b""

    def begun(self, chunk: bytes) -> list[tuple[int, int]]:
        """Return the key of the API and the size of each request that begins in the next bytes."""
        found = []
        while chunk:
            if self._left:
                passed = min(self._left, len(chunk))
                self._left, chunk = self._left - passed, chunk[passed:]
                continue
            wanted = 6 - len(self._head)
            self._head, chunk = self._head + chunk[:wanted], chunk[wanted:]
            if len(self._head) == 6:
                size = int.from_bytes(self._head[:4])
                found.append((int.from_bytes(self._head[4:]), size))
                self._left, self._head = size - 2, b""
        return found


@dataclass(eq=False)
class _Connection:
    client: asyncio.StreamWriter
    used_at: float
    """When something last passed on it, in seconds of the proxy's clock."""
    forgotten: bool = False
    requests: _Requests = field(default_factory=_Requests)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class Proxy:
    """Listens on a free port of 127.0.0.1 once it is made; `Broker(behind=proxy)` tells it where to forward."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._to: tuple[str, int] | None = None
        self._refusing = False
        self._answered_apis: Collection[int] | None = None
        self._announced: Mapping[int, int] = {}
        self._largest: Mapping[int, int] = {}
        self._connections: set[_Connection] = set()
        self._carried: Counter[int] = Counter()
        self._loop = asyncio.new_event_loop()
        self._requests = _Direction(asyncio.Event())
        self._answers = _Direction(asyncio.Event())
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._server = self._do(asyncio.start_server(self._serve, sock=self._socket))
        self.heal()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        """How many are open now."""
        return len(self._connections)

    @property
    def answered(self) -> int:
        """Bytes handed to clients so far."""
        return self._answers.passed

    def carried(self) -> dict[int, int]:
        """Bytes forwarded in both directions so far, by the client's own port; ended connections are remembered."""
        return dict(self._carried)

    @property
    def requested(self) -> int:
        """Bytes handed to the broker so far."""
        return self._requests.passed

    def forward_to(self, host: str, port: int) -> None:
        """Where new connections lead."""
        self._to = (host, port)

    def cut(self) -> int:
        """Resets every open connection; what is in transit is lost. New ones are served. Returns how many it cut."""
        return self._do(self._cut())

    def forget(self, *, silent_s: float = 0.0) -> int:
        """As a load balancer does with connections that were silent for so long: none of them ends, and what comes on
        one is thrown away. New ones are served. Returns how many it forgot."""

        async def forget_silent() -> int:
            latest = self._loop.time() - silent_s
            silent = [connection for connection in self._connections if connection.used_at <= latest]
            for connection in silent:
                connection.forgotten = True
            return len(silent)

        return self._do(forget_silent())

    def answer_only(self, *apis: int) -> None:
        """As a broker that is half alive: only requests of these APIs (keys of the protocol) are answered. A connection
        on which another one came stays open, and nothing is answered on it any more. Until heal()."""
        self._answered_apis = apis

    def close_above(self, largest: Mapping[int, int]) -> None:
        """As a broker that closes the connection instead of an answer: on requests larger than so many bytes, by the
        key of each API. 0: on all of them."""
        self._largest = largest

    def announce(self, newest: Mapping[int, int]) -> None:
        """As an older broker: new connections are told these newest versions of APIs, by the key of each."""
        self._announced = newest
        self.cut()

    def refuse(self) -> None:
        """Cuts every connection, and each new one at once, until heal()."""
        self._refusing = True
        self.cut()

    def hold(self, *, requests: bool = True, answers: bool = True) -> None:
        """Connections stay open and nothing passes in the directions named, until heal()."""

        async def close_gates() -> None:
            for held, direction in ((requests, self._requests), (answers, self._answers)):
                if held:
                    direction.flows.clear()

        self._do(close_gates())

    def delay(self, *, requests: float = 0.0, answers: float = 0.0) -> None:
        """Each byte takes this many seconds longer; how many bytes pass in a second is not changed."""
        self._requests.delay = requests
        self._answers.delay = answers

    def let_pass(self) -> None:
        """Everything passes again, what was held first; as late as it was made to."""

        async def open_gates() -> None:
            self._refusing, self._answered_apis = False, None
            for direction in (self._requests, self._answers):
                direction.flows.set()

        self._do(open_gates())

    def heal(self) -> None:
        """Everything passes at once again, what was held first."""
        self.delay()
        self.let_pass()

    def close(self) -> None:
        """Cuts everything and ends the thread. Idempotent."""
        if self._loop.is_closed():
            return

        async def stop() -> None:
            self._server.close()
            await self._cut()

        self._do(stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Coroutine[None, None, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _cut(self) -> int:
        cut = list(self._connections)
        for connection in cut:
            for task in connection.tasks:
                task.cancel()
        await asyncio.gather(*(task for connection in cut for task in connection.tasks), return_exceptions=True)
        return len(cut)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing or self._to is None:
            _reset(writer)
            return
        try:
            broker_reader, broker_writer = await asyncio.open_connection(*self._to)
        except OSError:
            _reset(writer)  # the broker is down: the client must see just that
            return
        connection = _Connection(writer, self._loop.time())
        client: int = writer.get_extra_info("peername")[1]
        announced = AnnouncedVersions(self._announced)

        def carry(size: int) -> None:
            self._carried[client] += size
            connection.used_at = self._loop.time()

        def is_thrown_away(request: bytes) -> bool:
            begun, answered = connection.requests.begun(request), self._answered_apis
            connection.forgotten |= answered is not None and any(api not in answered for api, _ in begun)
            if any(size > self._largest.get(api, size) for api, size in begun):
                raise ConnectionResetError("the broker closes the connection on such a request")
            announced.see_request(request)
            return connection.forgotten

        connection.tasks = [
            asyncio.create_task(_forward(reader, broker_writer, self._requests, carry, is_thrown_away, bytes)),
            asyncio.create_task(
                _forward(broker_reader, writer, self._answers, carry, lambda _: connection.forgotten, announced.lower)
            ),
        ]
        self._connections.add(connection)
        try:
            await asyncio.wait(connection.tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in connection.tasks:
                task.cancel()
            await asyncio.gather(*connection.tasks, return_exceptions=True)
            self._connections.discard(connection)
            _reset(writer)
            _reset(broker_writer)


async def _forward(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    way: _Direction,
    carry: Callable[[int], None],
    is_thrown_away: Callable[[bytes], bool],
    rewrite: Callable[[bytes], bytes],
) -> None:
    """Ends when either side does."""
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(IN_TRANSIT)
    clock = asyncio.get_running_loop().time

    async def read() -> None:
        while chunk := await reader.read(CHUNK):
            await under_way.put((clock() + way.delay, chunk))
        await under_way.put((clock(), b""))

    async def write() -> None:
        while True:
            due, chunk = await under_way.get()
            if due > clock():
                await asyncio.sleep(due - clock())
            await way.flows.wait()
            if not chunk:
                return
            if is_thrown_away(chunk):
                continue
            writer.write(rewrite(chunk))
            await writer.drain()
            way.passed += len(chunk)
            carry(len(chunk))

    try:
        async with asyncio.TaskGroup() as both:
            reading = both.create_task(read())
            await write()
            reading.cancel()
    except* OSError:
        pass  # one side reset the connection; the caller resets the other


def _reset(writer: asyncio.StreamWriter) -> None:
    """Closes with RST, as a failed network does, so that neither side takes it for an orderly end."""
    raw = writer.get_extra_info("socket")
    if raw is not None:
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()
