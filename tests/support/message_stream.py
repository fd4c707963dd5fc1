"""The messages of a consumer, one after the other, as long as some arrive."""

import time
from collections.abc import Callable, Iterator

from confluent_kafka import Consumer, Message

CHUNK = 10_000
WAIT_S = 0.2  # librdkafka waits so long for the rest of a chunk, also at the end of the log


def read_messages(consumer: Consumer, silent_s: float, missing: Callable[[], str]) -> Iterator[Message]:
    """Yield the messages of the consumer, errors and ends of partitions too. The caller ends it. Raises TimeoutError if
    nothing arrives for so many seconds; ``missing`` then says what has not been read."""
    heard = time.monotonic()
    while True:
        messages = consumer.consume(CHUNK, WAIT_S)
        if messages:
            heard = time.monotonic()
        elif time.monotonic() - heard > silent_s:
            raise TimeoutError(f"{missing()}, nothing for {silent_s:.0f} s")
        yield from messages
