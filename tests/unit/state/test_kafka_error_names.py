"""Error codes have Kafka's names in every text."""

import re

import pytest
from confluent_kafka import KafkaError
from kio.schema.errors import ErrorCode

from lockstep_state.kafka.kafka_error_names import error_name
from lockstep_state.kafka.kafka_errors import error_sentence
from lockstep_state.kafka.librdkafka_errors import error_text
from tests.support.source_modules import REPOSITORY


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_error_has_the_name_of_kio(code: ErrorCode) -> None:
    assert error_name(code.value) == code.name.upper()


@pytest.mark.parametrize("code", range(-1, 140))
def test_no_text_of_an_error_is_a_bare_number(code: int) -> None:
    for text in (error_name(code), error_sentence(code), error_text(KafkaError(code)) if code > 0 else ""):
        assert not re.search(r"error \d+|Err-\d+", text), text
    if code in {error.value for error in ErrorCode}:
        assert error_name(code) in error_sentence(code)


def test_refusal_of_a_broker_has_its_words_and_the_name() -> None:
    assert error_text(KafkaError(44, "too small.")) == "too small (POLICY_VIOLATION)"
    assert error_text(KafkaError(107)) == "INELIGIBLE_REPLICA", "librdkafka has a number for it"
    assert error_text(KafkaError(KafkaError._TRANSPORT, "refused")) == "refused"


def test_no_message_in_code_is_made_of_a_bare_code() -> None:
    sources = [path for folder in ("shared", "services") for path in (REPOSITORY / folder).rglob("src/**/*.py")]
    made = [
        f"{path.relative_to(REPOSITORY)}: {line.strip()}"
        for path in sources
        for line in path.read_text("utf-8").splitlines()
        if re.search(r'f".*(?<!exit )\b(error|code) \{\w*\.?(code|error_code|errno)', line)
        and "does not know" not in line
    ]
    assert made == []
