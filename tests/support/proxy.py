"""A TCP proxy in front of a broker whose connections can be cut, delayed and held on demand.

It runs an event loop in a thread of its own, so that sync and async tests use it alike: every method returns once it
has taken effect. Bytes are forwarded untouched, but for `answer_as`. What is *held* waits in the proxy: it is delivered
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

from kio.schema.index import api_key_map

from tests.support.cluster_profile import ClusterProfile
from tests.support.profiled_exchange import ProfiledExchange

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
class _Connection:
    client: asyncio.StreamWriter
    used_at: float
    """When something last passed on it, in seconds of the proxy's clock."""
    forgotten: bool = False
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class Proxy:
    """Listens on 127.0.0.1 once it is made, on a free port or the given one; `Broker(behind=proxy)` tells it where to
    forward."""

    def __init__(self, port: int = 0) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        self._to: tuple[str, int] | None = None
        self._refusing = False
        self._answered_apis: Collection[int] | None = None
        self._profile = ClusterProfile()
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
        """Return how many are open now."""
        return len(self._connections)

    @property
    def answered(self) -> int:
        """Return bytes handed to clients so far."""
        return self._answers.passed

    def carried(self) -> dict[int, int]:
        """Return bytes forwarded in both directions so far, by the client's own port; ended connections are
        remembered."""
        return dict(self._carried)

    @property
    def requested(self) -> int:
        """Return bytes handed to the broker so far."""
        return self._requests.passed

    def forward_to(self, host: str, port: int) -> None:
        """Lead new connections to this address."""
        self._to = (host, port)

    def cut(self) -> int:
        """Reset every open connection; what is in transit is lost. New ones are served. Returns how many it cut."""
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

    def answer_as(self, profile: ClusterProfile) -> None:
        """As a cluster of another kind: new connections are answered by the profile, those that are open are cut."""
        self._profile = profile
        self.cut()

    def announce(self, newest: Mapping[int, int]) -> None:
        """As an older broker: new connections are told these newest versions of APIs, by the key of each."""
        self.answer_as(ClusterProfile(versions={api_key_map[key]: (0, version) for key, version in newest.items()}))

    def refuse(self) -> None:
        """Cut every connection, and each new one at once, until heal()."""
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

    def restore(self) -> None:
        """Be as at the beginning: everything passes, and the brokers behind answer as they are."""
        self.heal()
        if self._profile != ClusterProfile():
            self.answer_as(ClusterProfile())

    def close(self) -> None:
        """Cut everything and end the thread. Idempotent."""
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
        exchange = ProfiledExchange(self._profile, {self._to: ("127.0.0.1", self.port)})

        def carry(size: int) -> None:
            self._carried[client] += size
            connection.used_at = self._loop.time()

        def pass_request(chunk: bytes) -> bytes | None:
            answered, idle_s = self._answered_apis, exchange.profile.idle_s
            connection.forgotten |= idle_s is not None and self._loop.time() - connection.used_at > idle_s
            rewritten = exchange.pass_requests(chunk)
            connection.forgotten |= answered is not None and any(api not in answered for api in exchange.take_begun())
            return None if connection.forgotten else rewritten

        def pass_answer(chunk: bytes) -> bytes | None:
            return None if connection.forgotten else exchange.pass_answers(chunk)

        connection.tasks = [
            asyncio.create_task(_forward(reader, broker_writer, self._requests, carry, pass_request)),
            asyncio.create_task(_forward(broker_reader, writer, self._answers, carry, pass_answer)),
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
    rewrite: Callable[[bytes], bytes | None],
) -> None:
    """Forward until either side ends. `rewrite` returns what is forwarded; None: the chunk is thrown away."""
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
            rewritten = rewrite(chunk)
            if rewritten is None:
                continue
            way.passed += len(chunk)  # before the write: who has read the chunk finds it counted
            carry(len(chunk))
            writer.write(rewritten)
            await writer.drain()

    try:
        async with asyncio.TaskGroup() as both:
            reading = both.create_task(read())
            await write()
            reading.cancel()
    except* OSError:
        pass  # one side reset the connection; the caller resets the other


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST, as a failed network does, so that neither side takes it for an orderly end."""
    raw = writer.get_extra_info("socket")
    if raw is not None:
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()
