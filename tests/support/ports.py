"""Ports of this machine that tests listen on."""

import random
import socket

_GIVEN: set[int] = set()
"""Ports that were asked for, which whoever asked may not listen on yet."""


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on, below the range from which outgoing connections take theirs,
    and a different one at each call.

    So a broker finds its port still free when it is started again later.
    """
    for _ in range(200):
        port = random.randint(15_000, 32_000)
        if port in _GIVEN:
            continue
        with socket.socket() as attempt:
            try:
                attempt.bind(("127.0.0.1", port))
            except OSError:
                continue
            _GIVEN.add(port)
            return port
    raise OSError("no free port between 15000 and 32000")
