"""Opening of a connection's socket: TCP, TLS, and keep-alive."""

import asyncio
import socket
import ssl
from typing import Any

ALIVE_AFTER_S, ALIVE_EVERY_S, ALIVE_TRIES = 60, 10, 3
"""Keep-alive settings of sockets: seconds before the first probe, seconds between two probes, and number of probes.

Load balancers silently forget a connection that is idle for some minutes (350 s at AWS, 240 s at Azure).
"""


async def dial(
    protocol: asyncio.BaseProtocol, host: str, port: int, ssl_context: ssl.SSLContext | None
) -> asyncio.Transport:
    """Connect to a broker, with this protocol as the receiver of its bytes.

    Args:
        protocol: The receiver.
        host: The host of the broker.
        port: The port of the broker.
        ssl_context: The context of TLS. None connects without TLS.

    Raises:
        OSError: The connection was not opened. Errors of the TLS handshake are among these errors.
    """
    try:
        transport, _ = await asyncio.get_running_loop().create_connection(lambda: protocol, host, port, ssl=ssl_context)
    except UnicodeError as exc:  # a part of the name is longer than 63 characters
        raise OSError(f"the name cannot be resolved: {exc}") from None
    _keep_alive(transport.get_extra_info("socket"))
    return transport


def _keep_alive(connected: Any) -> None:
    """Turn on keep-alive for a socket, or for asyncio's view of one.

    The system probes the other side if nothing passes for a minute, and ends the connection if there is no answer.
    """
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE" if hasattr(socket, "TCP_KEEPIDLE") else "TCP_KEEPALIVE", ALIVE_AFTER_S),  # the latter: macOS
        ("TCP_KEEPINTVL", ALIVE_EVERY_S),
        ("TCP_KEEPCNT", ALIVE_TRIES),
    ):
        if (option := getattr(socket, name, None)) is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, value)
