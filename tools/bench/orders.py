"""Order-like JSON records of about 470 bytes: what the bench copies, and how a source topic is filled with them.

Bodies are drawn from a pool so that loading is bound by the brokers, not by the generator. The pool (about 2 MB) is far
wider than the window of any codec in Kafka's batches, so the repetition does not flatter the compression.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.support.clusters import Headers, Record, produce

POOL = 5_000
PRODUCTS = (
    "espresso beans 1 kg", "filter paper no. 4", "hand grinder", "travel mug 350 ml", "milk jug 600 ml", "descaler",
    "tamper 58 mm", "cleaning brush", "knock box", "scale 0.1 g", "cold brew bottle", "gift card",
)  # fmt: skip
STREETS = (
    "Lindenweg", "Rue de la Gare", "High Street", "Via Roma", "Calle Mayor", "Prinsengracht", "Hauptstrasse",
    "Kirkegata",
)  # fmt: skip
CITIES = ("Leipzig", "Lyon", "Leeds", "Torino", "Valencia", "Utrecht", "Graz", "Bergen", "Gent", "Porto")
FLUSHED_WITHIN_S = 300.0
PAYMENTS = ("card", "invoice", "transfer", "voucher")


@dataclass(frozen=True, slots=True)
class Orders:
    """Numbered orders; the same seed and number always give the same key and value."""

    bodies: tuple[str, ...]

    @classmethod
    def drawn(cls, seed: int = 1, pool: int = POOL) -> "Orders":
        draw = random.Random(seed)
        return cls(tuple(_body(draw) for _ in range(pool)))

    def key(self, number: int) -> bytes:
        return b"customer-%06d" % (number * 7919 % 1_000_000)

    def value(self, number: int) -> bytes:
        """Return a JSON object."""
        return f'{{"order_id":"{number:012d}",{self.bodies[number % len(self.bodies)]}}}'.encode()


def _body(draw: random.Random) -> str:
    items = ",".join(
        f'{{"sku":"{draw.randrange(10**8):08d}","name":"{draw.choice(PRODUCTS)}","quantity":{draw.randint(1, 9)},'
        f'"price_cents":{draw.randint(199, 24_999)}}}'
        for _ in range(3)
    )
    return (
        f'"customer":{{"id":{draw.randrange(10**6)},"name":"customer {draw.randrange(10**5)}"}},'
        f'"ship_to":{{"street":"{draw.choice(STREETS)} {draw.randint(1, 220)}","city":"{draw.choice(CITIES)}"}},'
        f'"items":[{items}],"currency":"EUR","status":"accepted","payment":"{draw.choice(PAYMENTS)}",'
        f'"created":"2025-0{draw.randint(1, 9)}-1{draw.randint(0, 9)}T'
        f'{draw.randint(10, 23)}:{draw.randint(10, 59)}:00Z"'
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """``record_bytes`` is the mean of key and value before compression."""

    records: int
    record_bytes: float


def load(
    bootstrap: str,
    topic: str,
    *,
    records: int,
    partitions: int,
    codec: str = "none",
    batch_bytes: int = 1 << 14,
    key_of: Callable[[int], bytes] | None = None,
    headers_of: Callable[[int], Headers] = lambda number: (),
) -> Loaded:
    """Write orders, dealt to the partitions in turn, so that each holds the same number.

    Raises KafkaException and TimeoutError.

    ``key_of`` a number is the order's own key where nothing is given. Without a producer id: the stored batches can
    then be produced again just as they lie.
    """
    orders, size = Orders.drawn(), 0
    draw_key = key_of or orders.key

    def drawn() -> Iterator[Record]:
        nonlocal size
        for number in range(records):
            key, value = draw_key(number), orders.value(number)
            size += len(key) + len(value)
            yield Record(key, value, headers_of(number), partition=number % partitions)

    settings: dict[str, str | bool] = {
        "linger.ms": "50",  # long enough that batches fill, so their size is what was asked for
        "batch.size": str(batch_bytes),
        "batch.num.messages": "1000000",
        "queue.buffering.max.messages": "500000",
        "queue.buffering.max.kbytes": "512000",
        "acks": "all",
        "delivery.report.only.error": True,
    }
    produce(bootstrap, topic, drawn(), codec=codec, settings=settings, within=FLUSHED_WITHIN_S)
    return Loaded(records=records, record_bytes=size / max(1, records))
