"""Count the bytes of Kafka's protocol between us and the brokers of a cluster, by the brokers' racks (no I/O)."""

from collections.abc import Iterator


class LinkCount:
    """What went over the connections to the brokers of one rack, requests and answers whole."""

    __slots__ = ("received", "sent")

    def __init__(self) -> None:
        self.sent = self.received = 0


class LinkBytes:
    """The counts of one cluster. A broker without a rack, or whose rack is not known yet, counts under ""."""

    def __init__(self) -> None:
        self._counts: dict[str, LinkCount] = {}

    def of_rack(self, rack: str) -> LinkCount:
        """Return the count to which a connection adds."""
        return self._counts.setdefault(rack, LinkCount())

    def totals(self) -> Iterator[tuple[str, str, int]]:
        """Return (direction, rack, bytes): `sent` is to the brokers, `received` from them."""
        for rack, count in sorted(self._counts.items()):
            yield "sent", rack, count.sent
            yield "received", rack, count.received
