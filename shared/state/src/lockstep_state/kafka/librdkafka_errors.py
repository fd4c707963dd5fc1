"""The text of an error of librdkafka, for people. Pure.

librdkafka appends the state of the connection, the time in it, and the number of equal errors that it suppressed:
`(after 0ms in state CONNECT, 1 identical error(s) suppressed)`. No operator can act on that. It also makes the same
trouble have another text each time.
"""

import re
from typing import Protocol

from lockstep_state.kafka.kafka_error_names import error_name

_TIMING = re.compile(
    r"\s*\((?:after \d+ms in state \w+(?:, \d+ identical error\(s\) suppressed)?|\d+ identical error\(s\) suppressed)\)"
)


_WITHOUT_NAME = re.compile(r"Err-\d+\?")
"""How librdkafka calls an error of the protocol that is newer than itself."""


class LibrdkafkaError(Protocol):
    """A `confluent_kafka.KafkaError`."""

    def str(self) -> str: ...

    def code(self) -> int: ...


def error_text(error: LibrdkafkaError) -> str:
    """Return what an error says, without librdkafka's own bookkeeping. That of a broker has Kafka's name in it."""
    text = without_timing(error.str())
    if error.code() <= 0:  # librdkafka's own, which has no name in Kafka
        return text
    name = error_name(error.code())
    if not text or _WITHOUT_NAME.search(text):
        return name
    return text if name in text else f"{text.removesuffix('.')} ({name})"


def without_timing(text: str) -> str:
    """Return a text of librdkafka without the time, the state and the count behind it."""
    return _TIMING.sub("", text)
