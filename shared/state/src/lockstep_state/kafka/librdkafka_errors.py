"""The texts of librdkafka's errors, for people. Pure.

librdkafka appends the state of the connection, the time in it, and the number of equal errors that it suppressed:
`(after 0ms in state CONNECT, 1 identical error(s) suppressed)`. No operator can act on that. It also makes the texts of
the same error differ.
"""

import re
from typing import Protocol

from lockstep_state.kafka.kafka_error_names import error_name

_TIMING = re.compile(
    r"\s*\((?:after \d+ms in state \w+(?:, \d+ identical error\(s\) suppressed)?|\d+ identical error\(s\) suppressed)\)"
)


_WITHOUT_NAME = re.compile(r"Err-\d+\?")
"""librdkafka's text for an error of the protocol that is newer than itself."""


class LibrdkafkaError(Protocol):
    """The interface of `confluent_kafka.KafkaError`."""

    def str(self) -> str: ...

    def code(self) -> int: ...


def error_text(error: LibrdkafkaError) -> str:
    """Return the text of an error without librdkafka's own bookkeeping, and with Kafka's name if a broker sent it."""
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
