"""The reason of a copy that the target does not acknowledge for lack of in-sync replicas."""

import pytest

from lockstep_rules.offsets.stalled_copy import why_stalled
from lockstep_state.reasons.reason import NO_REASON
from lockstep_state.reasons.reason_catalogue import format_sentence
from lockstep_state.rows.state_rows import MirroredTopic


def topic(*configs: tuple[str, str]) -> MirroredTopic:
    return MirroredTopic(source_topic="t", target_topic="A.t", target_configs=configs)


def test_too_few_replicas_are_a_reason_with_their_numbers() -> None:
    cause = why_stalled(topic(("min.insync.replicas", "2")), 4, 1, 3)
    assert cause.to_json() == {
        "code": "not-enough-replicas",
        "details": {"in_sync": 1, "least": 2, "partition": "A.t-4", "replicas": 3},
    }
    assert format_sentence(cause) == (
        "NOT_ENOUGH_REPLICAS: A.t-4 has 1 of 3 replicas in sync, min.insync.replicas is 2"
    )


@pytest.mark.parametrize(
    ("least", "in_sync"), [(("min.insync.replicas", "2"), 2), (("min.insync.replicas", "2"), None), (("x", "2"), 0)]
)
def test_replicas_that_suffice_or_are_unknown_are_no_reason(least: tuple[str, str], in_sync: int | None) -> None:
    assert why_stalled(topic(least), 0, in_sync, 3) == NO_REASON
