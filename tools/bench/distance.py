"""A long way to a broker: a TCP proxy that adds delay to every byte, in a process of its own.

It gives delay alone: no loss, no slow start, no window smaller than what it may hold. Each direction of each connection
has a thread that reads and one that writes what is due, so that bytes per second are not changed.
"""

import queue
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support import processes
from tests.support.eventually import wait_until
from tests.support.ports import free_port

CHUNK = 256 << 10
UNDER_WAY = 512  # chunks of a direction: more than any client here asks for at once
LISTENING_WITHIN_S = 20.0


class Distance:
    """Where a broker is reached from afar: `Broker(behind=distance)` gets a listener for it.

    The port is the same for every delay; somebody listens there only within `away`.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self._to: tuple[str, int] | None = None

    def forward_to(self, host: str, port: int) -> None:
        """Where the broker listens for those who come this way."""
        self._to = host, port

    @contextmanager
    def away(self, round_trip_s: float, log: Path) -> Iterator[str]:
        """The bootstrap address at which each request and each answer takes half of the time longer.

        Raises NeverHappened when the proxy does not listen in time.
        """
        assert self._to is not None, "no broker is behind it"
        host, port = self._to
        command = [sys.executable, "-m", "tools.bench.distance", str(self.port), host, str(port), str(round_trip_s / 2)]
        process = processes.spawn(command, output=log)
        try:
            wait_until(self._listening, within=LISTENING_WITHIN_S, what="the delaying proxy listens")
            yield f"127.0.0.1:{self.port}"
        finally:
            processes.end(process)

    def _listening(self) -> bool:
        with socket.socket() as attempt:
            attempt.settimeout(1)
            return attempt.connect_ex(("127.0.0.1", self.port)) == 0


def _serve(port: int, to: tuple[str, int], delay_s: float) -> None:
    with socket.create_server(("127.0.0.1", port), backlog=128) as listening:
        while True:
            client, _ = listening.accept()
            threading.Thread(target=_connect, args=(client, to, delay_s), daemon=True).start()


def _connect(client: socket.socket, to: tuple[str, int], delay_s: float) -> None:
    try:
        broker = socket.create_connection(to)
    except OSError:
        client.close()  # the broker is away: the client sees just that
        return
    for end in (client, broker):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for origin, destination in ((client, broker), (broker, client)):
        under_way: queue.Queue[tuple[float, bytes]] = queue.Queue(UNDER_WAY)
        threading.Thread(target=_read, args=(origin, under_way, delay_s), daemon=True).start()
        threading.Thread(target=_hand_on, args=(under_way, destination), daemon=True).start()


def _read(origin: socket.socket, under_way: queue.Queue[tuple[float, bytes]], delay_s: float) -> None:
    chunk = b"?"
    while chunk:
        try:
            chunk = origin.recv(CHUNK)
        except OSError:
            chunk = b""
        under_way.put((time.monotonic() + delay_s, chunk))


def _hand_on(under_way: queue.Queue[tuple[float, bytes]], destination: socket.socket) -> None:
    """Ends with the end of the stream, which is passed on like any byte."""
    broken = False
    while True:
        due, chunk = under_way.get()
        early = due - time.monotonic()
        if early > 0:
            time.sleep(early)
        if not chunk:
            break
        if broken:
            continue  # drained, or the reading thread would wait for room for ever
        try:
            destination.sendall(chunk)
        except OSError:
            broken = True
    # Both ways: Kafka's clients and brokers close whole connections, and half a one would stay for ever.
    with suppress(OSError):
        destination.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), (sys.argv[2], int(sys.argv[3])), float(sys.argv[4]))
