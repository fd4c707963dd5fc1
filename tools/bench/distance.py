"""A long way to a broker: the tests' TCP proxy, which adds delay to every byte, in a process of its own.

It gives delay alone: no loss, no slow start, no window smaller than what a client asks for at once.
"""

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import processes
from tests.support.eventually import wait_until
from tests.support.ports import free_port
from tests.support.proxy import Proxy

LISTENING_WITHIN_S = 20.0


class Distance:
    """Where a broker is reached from afar: `Broker(behind=distance)` gets a listener for it.

    The port is the same for every delay; somebody listens there only within `away`.
    """

    def __init__(self) -> None:
        self.port = free_port()
        self._to: tuple[str, int] | None = None

    def forward_to(self, host: str, port: int) -> None:
        """Lead those who come this way to where the broker listens."""
        self._to = host, port

    @contextmanager
    def away(self, round_trip_s: float, log: Path) -> Iterator[str]:
        """Yield the bootstrap address at which each request and each answer takes half of the time longer.

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


if __name__ == "__main__":
    with Proxy(port=int(sys.argv[1])) as proxy:
        proxy.delay(requests=float(sys.argv[4]), answers=float(sys.argv[4]))
        proxy.forward_to(sys.argv[2], int(sys.argv[3]))
        threading.Event().wait()
