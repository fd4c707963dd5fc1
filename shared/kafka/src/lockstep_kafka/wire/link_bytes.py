"""Counts of the bytes of Kafka's protocol between us and a cluster, by the brokers' racks (no I/O)."""

from collections.abc import Iterator


class LinkCount:
    """The bytes on the connections to the brokers of one rack: whole requests and whole answers."""

    __slots__ = ("received", "sent")

    def __init__(self) -> None:
        self.sent = self.received = 0


class LinkBytes:
    """The counts of one cluster.

    A broker without a rack, or with a rack that is not known yet, counts under "".
    """

    def __init__(self) -> None:
        self._counts: dict[str, LinkCount] = {}

    def of_rack(self, rack: str) -> LinkCount:
        """Return the count to which a connection adds."""
        return self._counts.setdefault(rack, LinkCount())

    def totals(self) -> Iterator[tuple[str, str, int]]:
        """Yield (direction, rack, bytes): `sent` is to the brokers, `received` from them."""
        for rack, count in sorted(self._counts.items()):
            yield "sent", rack, count.sent
            yield "received", rack, count.received
