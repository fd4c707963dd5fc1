"""Topics that the log cleaner has been through: with gaps between offsets, as every old compacted topic has them."""

from tests.support import clusters
from tests.support.clusters import Record
from tests.support.eventually import wait_until

CONFIGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "segment.ms": "50",  # the cleaner never touches the segment that is being written
    "delete.retention.ms": "86400000",
}


def compacted_topic(bootstrap: str, topic: str, *, keys: int = 5, records: int = 200, batch: int = 7) -> list[Record]:
    """Create a topic of one partition, write `records` to it, and wait until the superseded ones are cleaned away.

    Every fourth record has a key of its own and stays; the others share `keys` keys. `batch` records go into one batch,
    so gaps lie inside batches as well as between them. Returns what is left.
    """
    clusters.create_topic(bootstrap, topic, configs=CONFIGS)
    settings = {"batch.num.messages": str(batch), "linger.ms": "20"}
    written = [
        Record(
            key=f"once-{number}".encode() if number % 4 == 0 else f"key-{number % keys}".encode(),
            value=b"%d" % number,
            headers=(("number", b"%d" % number),),
        )
        for number in range(records)
    ]
    clusters.produce(bootstrap, topic, written, idempotent=True, settings=settings)
    return compact(bootstrap, topic, to_at_most=records // 4 + keys * 2)


def compact(bootstrap: str, topic: str, *, to_at_most: int, within: float = 60.0) -> list[Record]:
    """Make the broker roll and clean until at most so many records are left. Return them.

    Each attempt writes one record more, with a key of its own: only an append rolls a segment.
    """
    attempts = iter(range(1_000))

    def cleaned() -> list[Record] | None:
        clusters.produce(bootstrap, topic, [Record(key=b"roll", value=b"%d" % next(attempts))])
        records = clusters.read_topic(bootstrap, topic)
        return records if len(records) <= to_at_most else None

    return wait_until(cleaned, within=within, every=0.2, what=f"{topic} is compacted") or []
