"""The parser of `bootstrap.servers`. This module is pure."""

import re

from lockstep_config.resolve.value_typos import find_placeholder
from lockstep_config.text.values import BadValue, split_list

HOST = re.compile(r"\[?[0-9A-Za-z._%:-]+\]?")
"""The form of a host, as in Kafka's `Utils.HOST_PORT_PATTERN`."""


def parse_servers(text: str) -> tuple[str, ...]:
    """Return the addresses.

    Raises:
        BadValue: There is no address, or one is no HOST:PORT.
    """
    servers = split_list(text)
    if not servers:
        raise BadValue("is empty: write HOST:PORT, several between commas")
    for server in servers:
        host, colon, port = server.rpartition(":")
        host = host.rpartition("://")[2]
        if not (host and colon and port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65_536):
            raise BadValue(f"has {server!r}, which is no HOST:PORT")
        if not HOST.fullmatch(host) or find_placeholder(host):
            raise BadValue(f"has {server!r}, and {host!r} is no host")
    return servers
