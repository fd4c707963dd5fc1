"""The text of an error of librdkafka, for people. Pure.

librdkafka appends the state of the connection, the time in it, and the number of equal errors that it suppressed:
`(after 0ms in state CONNECT, 1 identical error(s) suppressed)`. No operator can act on that. It also makes the same
trouble have another text each time.
"""

import re
from typing import Protocol

_TIMING = re.compile(
    r"\s*\((?:after \d+ms in state \w+(?:, \d+ identical error\(s\) suppressed)?|\d+ identical error\(s\) suppressed)\)"
)


class LibrdkafkaError(Protocol):
    """A `confluent_kafka.KafkaError`."""

    def str(self) -> str: ...


def error_text(error: LibrdkafkaError) -> str:
    """Return what an error says, without librdkafka's own bookkeeping."""
    return without_timing(error.str())


def without_timing(text: str) -> str:
    """Return a text of librdkafka without the time, the state and the count behind it."""
    return _TIMING.sub("", text)
