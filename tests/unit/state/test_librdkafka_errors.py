"""Texts of librdkafka's errors without its own additions."""

import re

import pytest
from confluent_kafka import KafkaError

from lockstep_state.kafka.librdkafka_errors import error_text, without_timing
from tests.support.source_modules import REPOSITORY

REFUSED = "127.0.0.1:9/bootstrap: Connect to ipv4#127.0.0.1:9 failed: Connection refused"


@pytest.mark.parametrize(
    "behind",
    [
        "",
        " (after 0ms in state CONNECT)",
        " (after 0ms in state CONNECT, 1 identical error(s) suppressed)",
        " (after 12034ms in state APIVERSION_QUERY, 30 identical error(s) suppressed)",
        " (2 identical error(s) suppressed)",
    ],
)
def test_error_has_no_timing_and_no_count(behind: str) -> None:
    assert without_timing(REFUSED + behind) == REFUSED
    assert error_text(KafkaError(KafkaError._TRANSPORT, REFUSED + behind)) == REFUSED
    assert without_timing(f"a{behind}: b") == "a: b"


def test_other_brackets_of_an_error_are_kept() -> None:
    text = "Failed to resolve 'b:9092': nodename nor servname provided (after a while)"
    assert without_timing(text) == text


def test_error_of_a_client_is_shown_through_one_function() -> None:
    sources = [path for folder in ("shared", "services") for path in (REPOSITORY / folder).rglob("src/**/*.py")]
    assert len(sources) > 300
    raw = [str(path.relative_to(REPOSITORY)) for path in sources if re.search(r"\.str\(\)", path.read_text("utf-8"))]
    assert raw == ["shared/state/src/lockstep_state/kafka/librdkafka_errors.py"]
